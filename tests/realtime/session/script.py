"""A fake shell with a clock: tests say what happens, and read what the client was told.

Every effect is carried out as the shell would, every notice passes `WireOrder`, and the audio is
paced on the fake clock. Nothing sleeps: `wait` moves the clock from one due thing to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.effects import Effect
from realtime.session.events import Event
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.machine import Machine
from realtime.session.notices import Detail, HeardSoFar, Notice, StateShown
from realtime.session.settings import (
    Modality,
    ResponseOptions,
    ServerVad,
    SessionSettings,
    SettingsPatch,
    Transcription,
    TurnDetection,
)
from realtime.session.states import Drafting, Lifecycle, Listening, Speaking
from tests.realtime.session.paced_egress import PacedEgress
from tests.realtime.session.wire_order import WireOrder

FRAME_MS = 32
SAMPLES_PER_MS = 16
RATE_HZ = 24_000
SERVER_VAD = ServerVad()
N = TypeVar("N", bound=Notice)
E = TypeVar("E", bound=Effect)
Work = fx.Listen | fx.Recognise | fx.RecogniseHandle | fx.AskJudge | fx.StartReply | fx.PrepareReply


class Script:
    """`hears`: the text of every turn, or None to answer by hand; `judges` likewise."""

    def __init__(
        self,
        turn_detection: TurnDetection | None = SERVER_VAD,
        *,
        hears: str | None = "What time is it?",
        judges: float | None = 0.1,
        drafts: bool = False,
        profile: str = "browser",
        settings: SessionSettings | None = None,
        is_open: bool = True,
        lead_ms: float | None = None,
    ) -> None:
        self.machine = Machine()
        self.hears, self.judges = hears, judges
        self.now_ms = 1_000.0
        self.position = 0
        self.egress, self.wire = PacedEgress(), WireOrder()
        self.notices: list[Notice] = []
        self.details: list[Detail] = []
        self.effects: list[Effect] = []
        self.log: list[tuple[Event, float, list[Effect]]] = []
        self.works: dict[str, Work] = {}  # started, not aborted, not ended
        self.drafts: set[str] = set()  # of these nothing may be seen
        self.kept: set[int] = set()  # turns whose audio is kept
        self.after_step: Callable[[], None] = lambda: None
        self._answers: deque[Event] = deque()
        base = settings or SessionSettings(
            turn_detection=turn_detection, transcription=Transcription()
        )
        if is_open:
            self.step(ev.Opened(7, base, profile, drafts, 0, lead_ms))

    # ---- the shell -----------------------------------------------------------------------------

    def step(self, event: Event) -> list[Effect]:
        """Step one event, then what answers itself, then what may leave."""
        effects = self._step(event)
        while self._answers:
            answer = self._answers.popleft()
            self.works.pop(getattr(answer, "request", ""), None)
            effects += self._step(answer)
        self._pump()
        return effects

    def _step(self, event: Event) -> list[Effect]:
        effects = self.machine.step(event, self.now_ms)
        self.log.append((event, self.now_ms, list(effects)))
        self.effects += effects
        for effect in effects:
            self._perform(effect)
        self.after_step()
        return list(effects)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case fx.Notify(notice):
                self.notices.append(notice)
                self.wire.take(notice)
            case fx.NotifyDetail(detail):
                self.details.append(detail)
                self.wire.take_detail(detail)
            case fx.TellConversation(items):
                self.wire.take_conversation(items)
            case fx.Recognise(request) | fx.RecogniseHandle(request):
                self.works[request] = effect
                if self.hears is not None:
                    self._answers.append(ev.TranscriptFinal(request, self.hears))
            case fx.Listen(request):
                self.works[request] = effect
            case fx.PrepareReply(request):
                self.works[request] = effect
                self._answers.append(ev.ReplyFinished(request, "length"))
            case fx.AskJudge(request):
                self.works[request] = effect
                if self.judges is not None:
                    self._answers.append(ev.JudgeAnswered(request, self.judges))
            case fx.StartReply(request):
                self.works[request] = effect
                if effect.draft:
                    self.drafts.add(request)
                if effect.speak:
                    self.egress.open(request, effect.output_format.rate_hz)
            case fx.AdoptReply(request):
                self.drafts.remove(request)
            case fx.Abort(request):
                self.works.pop(request, None)
                self.egress.drop(request)
            case fx.PlayReply():
                assert effect.request not in self.drafts, "a draft is played"
                self.egress.attach(effect)
            case fx.HoldLane():
                play = self.egress.hold(effect, self.now_ms)
                if play is not None:
                    self.wire.take_audio(play.response_id, play.item_id, play.output_index)
            case fx.ReleaseLane(lane):
                self.egress.release(lane)
            case fx.CutLane():
                play = self.egress.cut(effect, self.now_ms)
                if play is not None:
                    self.wire.take_audio(play.response_id, play.item_id, play.output_index)
            case fx.KeepAudio(turn, start):
                assert self.machine.ctx.position - start <= 30_000 * SAMPLES_PER_MS
                self.kept.add(turn)
            case fx.DropAudio(turn) | fx.FileAudio(turn):
                self.kept.remove(turn)
            case fx.Observe(timeline):
                times = [at_ms for _, at_ms in timeline.stamps_ms]
                assert times == sorted(times)
            case _:
                pass

    def _pump(self) -> None:
        """Let everything leave that is due."""
        while (frame := self.egress.next_frame()) and frame[0] <= self.now_ms + 1e-6:
            _, request, total = frame
            self._step(ev.AudioLeaving(request, total))
            play = self.egress.replies[request].play if request in self.egress.replies else None
            if self.egress.commit(request, total, self.now_ms) and play is not None:
                self.wire.take_audio(play.response_id, play.item_id, play.output_index)
            self._drain()
        self._drain()

    def _drain(self) -> None:
        for request in self.egress.take_drained():
            self._step(ev.EgressDrained(request))

    def wait(self, ms: float) -> None:
        """Time passes; deadlines and frames come exactly when they are due."""
        end_ms = self.now_ms + ms
        while True:
            frame = self.egress.next_frame()
            deadline_ms = self.machine.next_deadline_ms()
            due = [at for at in (frame and frame[0], deadline_ms) if at is not None]
            at_ms = min(due, default=end_ms + 1)
            if at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            if deadline_ms is not None and deadline_ms <= self.now_ms:
                self.step(ev.Tick())
            else:
                self._pump()
        self.now_ms = end_ms

    # ---- the user ------------------------------------------------------------------------------

    def frame(self, speech: float) -> None:
        self.wait(FRAME_MS)
        self.position += FRAME_MS * SAMPLES_PER_MS
        self.step(ev.AudioFrame(self.position, speech, -30.0))

    def say(self, ms: int) -> None:
        """Speech for at least `ms`, in whole frames."""
        for _ in range(-(-ms // FRAME_MS)):
            self.frame(0.95)

    def silence(self, ms: int) -> None:
        for _ in range(-(-ms // FRAME_MS)):
            self.frame(0.01)

    def click(self) -> None:
        """A sound too short to be speech, and the quiet that shows it."""
        self.say(FRAME_MS)
        self.silence(96)

    def ask(self, ms: int = 640, silence_ms: int = 640) -> None:
        """One whole turn."""
        self.say(ms)
        self.silence(silence_ms)

    # ---- the stages, by hand -------------------------------------------------------------------

    def live(self, kind: type[E]) -> list[E]:
        return [work for work in self.works.values() if isinstance(work, kind)]

    @property
    def reply(self) -> str:
        """The request of the newest reply under way."""
        return self.live(fx.StartReply)[-1].request

    @property
    def prompt(self) -> list[tuple[str, str]]:
        """(role, text) of the last reply's messages."""
        started = [effect for effect in self.effects if isinstance(effect, fx.StartReply)]
        return [(message.role, message.text) for message in started[-1].messages]

    def hear(self, text: str) -> None:
        """Answer the oldest recognition."""
        asked = [w for w in self.works.values() if isinstance(w, fx.Recognise | fx.RecogniseHandle)]
        del self.works[asked[0].request]
        self.step(ev.TranscriptFinal(asked[0].request, text))

    def glimpse(self, text: str) -> None:
        """A partial transcript of the turn that is listened to."""
        self.step(ev.TranscriptPartial(self.live(fx.Listen)[-1].request, text))

    def verdict(self, probability: float) -> None:
        """The judge's answer to its question, which the silence may still have to bring."""
        for _ in range(80):
            if self.live(fx.AskJudge):
                break
            self.frame(0.01)
        request = self.live(fx.AskJudge)[0].request
        del self.works[request]
        self.step(ev.JudgeAnswered(request, probability))

    def write(self, text: str, request: str | None = None) -> None:
        self.step(ev.ReplyText(request or self.reply, text))

    def speak(
        self,
        ms: int,
        text_end: int = 10**6,
        request: str | None = None,
        words: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Audio whose end speaks the text up to `text_end`, by default all of it."""
        request = request or self.reply
        self.egress.add(request, ms * RATE_HZ // 1000)
        self.step(ev.ReplyAudio(request, ms * RATE_HZ // 1000, text_end, words))

    def call(self, name: str, arguments: str, index: int = 0, call_id: str = "call_a") -> None:
        self.step(ev.ReplyToolCall(self.reply, index, call_id, name, arguments))

    def finish(self, reason: str = "stop", request: str | None = None) -> None:
        request = request or self.reply
        self.works.pop(request, None)
        self.egress.finish(request)
        self.step(ev.ReplyFinished(request, reason, 10, 2, 5))

    def fail(self, request: str | None = None) -> None:
        request = request or self.reply
        self.works.pop(request, None)
        self.egress.finish(request)
        self.step(ev.ReplyFailed(request, "llm_unreachable", "The language model is gone."))

    def answer(self, text: str = "It is noon.", ms: int = 800, reason: str = "stop") -> None:
        """A whole reply at once; its audio leaves as the clock allows."""
        self.write(text)
        self.speak(ms)
        self.finish(reason)

    # ---- the client ----------------------------------------------------------------------------

    def commit(self) -> None:
        self.step(ev.ClientCommit("e_commit", self.position))

    def clear(self) -> None:
        self.step(ev.ClientClear("e_clear", self.position))

    def type(self, text: str, item_id: str = "", previous: str | None = None) -> None:
        part = Part(PartKind.INPUT_TEXT, text)
        item = Item(item_id, ItemKind.MESSAGE, role=Role.USER, parts=(part,))
        self.step(ev.ClientItemCreate("e_item", item, previous))

    def output(self, call_id: str, output: str = "{}") -> None:
        item = Item("", ItemKind.FUNCTION_CALL_OUTPUT, call_id=call_id, output=output)
        self.step(ev.ClientItemCreate("e_output", item))

    def create(self, **options: object) -> None:
        chosen = ResponseOptions(**options)  # pyright: ignore[reportArgumentType]
        self.step(ev.ClientResponseCreate("e_create", chosen))

    def cancel(self, response_id: str | None = None) -> None:
        self.step(ev.ClientResponseCancel("e_cancel", response_id))

    def truncate(self, item_id: str, ms: int) -> None:
        self.step(ev.ClientItemTruncate("e_truncate", item_id, 0, ms))

    def delete(self, item_id: str) -> None:
        self.step(ev.ClientItemDelete("e_delete", item_id))

    def update(self, **values: object) -> None:
        self.step(ev.ClientSessionUpdate("e_update", SettingsPatch(tuple(values.items()))))

    # ---- what happened -------------------------------------------------------------------------

    @property
    def states(self) -> tuple[Lifecycle, Listening, Speaking, Drafting]:
        machine = self.machine
        return (
            machine.life.state,
            machine.listening.state,
            machine.speaking.state,
            machine.drafting.state,
        )

    @property
    def hearing(self) -> Listening:
        return self.machine.listening.state

    @property
    def speaking(self) -> Speaking:
        return self.machine.speaking.state

    @property
    def drafting(self) -> Drafting:
        return self.machine.drafting.state

    def told(self, kind: type[N]) -> list[N]:
        return [notice for notice in self.notices if isinstance(notice, kind)]

    @property
    def shown(self) -> list[str]:
        """Every state that a watcher was shown."""
        return [detail.state.value for detail in self.details if isinstance(detail, StateShown)]

    @property
    def heard_so_far(self) -> list[str]:
        """Every transcript of speech under way."""
        return [detail.transcript for detail in self.details if isinstance(detail, HeardSoFar)]

    def done(self, kind: type[E]) -> list[E]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def names(self, since: int = 0) -> list[str]:
        """The kinds of notices, deltas of one text joined."""
        return list(_squeeze(type(notice).__name__ for notice in self.notices[since:]))

    @property
    def item_ids(self) -> list[str]:
        return [item.id for item in self.machine.ctx.conversation]


def text_only(**values: object) -> SessionSettings:
    return SessionSettings(modality=Modality.TEXT, **values)  # pyright: ignore[reportArgumentType]


def _squeeze(names: Iterable[str]) -> Iterable[str]:
    last = ""
    for name in names:
        if name != last or not name.endswith("Delta"):
            yield name
        last = name
