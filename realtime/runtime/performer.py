"""Carries out what the machine asks for: each effect at once and in order."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from pipelines.types import HEARING_RATE_HZ, Samples, Urgency
from realtime.audio.fade import fade_out
from realtime.audio.quantise import to_float32, to_int16
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.conversation import SessionView
from realtime.runtime.egress import Egress, Frame
from realtime.runtime.hearing import Hearing
from realtime.runtime.item_audio import ItemAudio
from realtime.runtime.outlet import Clip, Outlet
from realtime.runtime.translate import (
    listen_request,
    prepare_request,
    recognise_request,
    reply_request,
)
from realtime.runtime.turn_audio import TurnAudio
from realtime.runtime.work import Works
from realtime.session.effects import (
    VOICE_LANE,
    Abort,
    AdoptReply,
    AskJudge,
    CloseTransport,
    CutLane,
    DropAudio,
    Effect,
    FileAudio,
    ForgetItemAudio,
    HoldLane,
    KeepAudio,
    Listen,
    Notify,
    NotifyDetail,
    Observe,
    PlayReply,
    PrepareReply,
    Recognise,
    RecogniseHandle,
    ReleaseLane,
    ResetHearing,
    StartReply,
    TellConversation,
    TrimItemAudio,
)
from realtime.session.items import Item, PartKind, Role
from realtime.session.notices import (
    ErrorRaised,
    InputCommitted,
    ItemAdded,
    ItemRetrieved,
    Notice,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
    TimeoutTriggered,
    TranscriptionFailed,
)
from realtime.session.speaking import NO_FIRST_OUTPUT, STALLED
from realtime.session.turns import TRANSCRIPT_LATE

log = logging.getLogger(__name__)

# What the machine gives up itself; of what a stage reports, whoever called it has told the log.
_LATE = (NO_FIRST_OUTPUT, STALLED, TRANSCRIPT_LATE)
_COUNTED: dict[type, Count] = {
    SpeechStarted: Count.SPEECH_STARTED,
    SpeechStopped: Count.SPEECH_STOPPED,
    InputCommitted: Count.TURNS_COMMITTED,
    TimeoutTriggered: Count.TURNS_TIMED_OUT,
}
_AUDIO_PARTS = (PartKind.INPUT_AUDIO, PartKind.OUTPUT_AUDIO)
_NOTHING = np.zeros(0, dtype=np.int16)
_FILED_TURNS = 8  # a turn is recognised soon after it has become an item, or never
_JUDGED_SAMPLES = 8 * HEARING_RATE_HZ  # the judge hears no more than the last 8 s


class Performer:
    """Owns nothing but the view of the settings; knows everyone who can do something."""

    def __init__(
        self,
        *,
        hearing: Hearing,
        items: ItemAudio,
        works: Works,
        egress: Egress,
        outlet: Outlet,
        metrics: Metrics,
        label: str,
    ) -> None:
        self._hearing = hearing
        self._items = items
        self._works = works
        self._egress = egress
        self._outlet = outlet
        self._metrics = metrics
        self._label = label
        self._filed: dict[int, str] = {}  # turns that became items, the latest ones
        self.view = SessionView()
        self._must_reset_detector = False

    def perform(self, effect: Effect) -> None:
        match effect:
            case Notify(notice):
                self._tell(notice)
            case NotifyDetail(detail):
                self._outlet.tell_detail(detail)
            case TellConversation():
                self._outlet.tell_conversation(effect)
            case KeepAudio(turn, start):
                self._hearing.keep(turn, start)
            case DropAudio(turn):
                self._hearing.drop(turn)
            case FileAudio():
                self._file(effect)
            case ForgetItemAudio(item_id):
                self._items.forget(item_id)
            case TrimItemAudio(item_id, audio_ms):
                self._items.trim(item_id, audio_ms)
            case ResetHearing():
                self._must_reset_detector = True
            case AskJudge(request, turn, start, end):
                first = max(start, end - _JUDGED_SAMPLES)
                self._works.judge(request, self._turn_audio(turn, first, end), end)
            case Listen():
                self._works.listen(listen_request(effect), self._follow(effect))
            case Recognise(request) if self._works.hear_out(request, effect.end):
                pass
            case Recognise():
                audio = self._turn_audio(effect.turn, effect.start, effect.end)
                self._works.recognise(recognise_request(effect), audio)
            case RecogniseHandle():
                recording = self._items.get(effect.audio_handle)
                samples = recording.joined() if recording else _NOTHING
                self._works.recognise(recognise_request(effect), to_float32(samples))
            case StartReply():
                self._works.reply(reply_request(effect), effect.output_format)
            case PrepareReply():
                self._works.reply(prepare_request(effect), self.view.output_format)
            case AdoptReply(request):
                self._works.hurry(request, Urgency.FIRST_AUDIO)
            case Abort(request):
                self._works.abort(request)
                self._egress.drop(request)
            case PlayReply():
                self._egress.attach(effect)
            case HoldLane(lane, request, fade_samples):
                fade = self._egress.hold(lane, request, fade_samples)
                if fade is not None:
                    self.send(fade)
            case ReleaseLane(lane):
                self._egress.release(lane)
            case CutLane():
                self._cut(effect)
            case Observe(timeline):
                self._metrics.turn(
                    label=self._label,
                    status=timeline.status,
                    drafted=timeline.drafted,
                    stamps_ms=[(stamp.name.lower(), at) for stamp, at in timeline.stamps_ms],
                    response_id=timeline.response_id,
                )
            case CloseTransport(code, reason):
                self._outlet.close(code, reason)

    def take_detector_reset(self) -> bool:
        """Whether the detector is to forget, asked between two frames; true once per wish."""
        wished, self._must_reset_detector = self._must_reset_detector, False
        return wished

    def send(self, frame: Frame) -> None:
        """A frame leaves: to the client, and into what can be retrieved of its item."""
        if frame.play.lane == VOICE_LANE:
            samples = to_int16(frame.samples)
            self._items.append(frame.play.item_id, samples, frame.format.rate_hz)
        self._outlet.send(frame)

    def _tell(self, notice: Notice) -> None:
        counted = _COUNTED.get(type(notice))
        if counted is not None:
            self._metrics.add(counted)
        match notice:
            case SessionCreated(settings=settings) | SessionUpdated(settings=settings):
                self.view = SessionView(settings.input_format, settings.output_format)
            case ItemAdded(item):
                for part in item.parts:
                    if part.audio_handle is not None:
                        self._items.link(item.id, part.audio_handle)
            case ItemRetrieved(item):
                self._outlet.tell_retrieved(item, self._clips(item))
                return
            case (
                ErrorRaised(code=code, message=message)
                | TranscriptionFailed(code=code, message=message)
            ) if code in _LATE:
                log.warning("%s: %s: %s", self._label, code, message)
            case _:
                pass
        self._outlet.tell(notice)

    def _clips(self, item: Item) -> dict[int, Clip]:
        """What is kept of an item's audio, by part: under the part's handle or the item's id."""
        of_user = item.role is Role.USER
        shown_in = self.view.input_format if of_user else self.view.output_format
        clips = dict[int, Clip]()
        for index, part in enumerate(item.parts):
            recording = self._items.get(part.audio_handle or item.id)
            if part.kind in _AUDIO_PARTS and recording is not None:
                clips[index] = Clip(tuple(recording.pieces), recording.rate_hz, shown_in)
        return clips

    def _file(self, effect: FileAudio) -> None:
        start, samples = self._hearing.take(effect.turn, effect.end)
        self._items.append(effect.item_id, samples, HEARING_RATE_HZ, start)
        self._filed[effect.turn] = effect.item_id
        if len(self._filed) > _FILED_TURNS:
            del self._filed[next(iter(self._filed))]

    def _turn_audio(self, turn: int, start: int, end: int) -> Samples:
        """A turn's audio, whether it is still being kept, is an item by now, or is just past."""
        recording = self._items.get(self._filed.get(turn, ""))
        if recording is None:
            return self._hearing.read(turn, start, end)
        whole = recording.joined()
        return to_float32(whole[max(0, start - recording.start) : max(0, end - recording.start)])

    def _follow(self, effect: Listen) -> TurnAudio:
        def read(start: int, end: int) -> Samples:
            return self._turn_audio(effect.turn, start, end)

        return TurnAudio(read, lambda: self._hearing.position, effect.start)

    def _cut(self, effect: CutLane) -> None:
        fade = self._egress.cut(effect.lane, effect.epoch, effect.request, effect.fade_samples)
        if fade is None:
            return
        # What the listener heard last lies before the frames that still waited for the socket.
        stale = self._outlet.first_stale(effect.lane)
        if stale is not None:
            samples = fade_out(stale.samples[: len(fade.samples)])
            fade = replace(fade, samples=samples)
        self.send(fade)
