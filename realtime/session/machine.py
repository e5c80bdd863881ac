"""The session as one pure step: (state, event, now) to effects. Nothing else changes it.

A step updates what listens, then what speaks, then the draft, in that order. Deadlines that have
come fire before the event that shows it. The machine never raises: every pair of state and signal
stands in `table.py`.
"""

from __future__ import annotations

from realtime.session import requests
from realtime.session.context import Context
from realtime.session.deadlines import Due
from realtime.session.drafting import DraftingRegion
from realtime.session.effects import Effect
from realtime.session.events import (
    AudioFrame,
    AudioLeaving,
    ClientClear,
    ClientCommit,
    ClientItemCreate,
    ClientItemDelete,
    ClientItemRetrieve,
    ClientItemTruncate,
    ClientRefused,
    ClientResponseCancel,
    ClientResponseCreate,
    ClientSessionUpdate,
    Disconnected,
    EgressDrained,
    Event,
    JudgeAnswered,
    JudgeFailed,
    Opened,
    PlaybackReported,
    Reconnected,
    ReplyAudio,
    ReplyFailed,
    ReplyFinished,
    ReplyText,
    ReplyToolCall,
    ReplyUsage,
    ReplyVoiced,
    ReplyWritten,
    ShutDown,
    Tick,
    TranscriptFailed,
    TranscriptFinal,
    TranscriptPartial,
)
from realtime.session.life import LifecycleRegion
from realtime.session.listening import ONSETS, ListeningRegion
from realtime.session.notices import ErrorRaised, ResponseUsage, ShownState, StateShown
from realtime.session.outcomes import Outcomes
from realtime.session.preparing import Preparation
from realtime.session.reply import Ending, Reply
from realtime.session.responding import (
    cancel_response,
    create_response,
    prompt_idle_user,
    stop_if_truncated,
    watch_for_idleness,
)
from realtime.session.shown import shown_state
from realtime.session.side import SideResponses
from realtime.session.speaking import SpeakingRegion
from realtime.session.states import Lifecycle, Speaking
from realtime.session.table import Guess, Hear, Live, Say
from realtime.session.turns import Turns

_ReplyEvent = (
    ReplyText
    | ReplyAudio
    | ReplyVoiced
    | ReplyToolCall
    | ReplyUsage
    | ReplyWritten
    | ReplyFinished
    | ReplyFailed
)


class Machine:
    """One conversation. Feed it events in order, with a clock that never goes back."""

    def __init__(self) -> None:
        ctx = self.ctx = Context()
        outcomes = Outcomes(ctx)
        self.turns = Turns(ctx, outcomes)
        self.speaking = SpeakingRegion(
            ctx,
            is_onset=lambda: self.listening.state in ONSETS,
            untranscribed=lambda: self.turns.untranscribed,
        )
        self.drafting = DraftingRegion(ctx)
        self.preparation = Preparation(ctx)
        self.listening = ListeningRegion(
            ctx, self.turns, self.speaking, self.drafting, self.preparation
        )
        self.side = SideResponses(ctx)
        self.life = LifecycleRegion(ctx, self.listening, self.speaking, self.drafting, self.side)
        outcomes.bind(self.turns, self.listening, self.speaking, self.drafting, self.side)
        self._shown: ShownState | None = None  # as the present client was told

    @property
    def lifecycle(self) -> Lifecycle:
        return self.life.state

    def next_deadline_ms(self) -> float | None:
        """When a Tick is due at the latest; None: never."""
        return self.ctx.deadlines.next_ms()

    def step(self, event: Event, now_ms: float) -> list[Effect]:
        """Take one event. Raises nothing, whatever the event."""
        ctx = self.ctx
        ctx.now_ms = max(ctx.now_ms, now_ms)
        ctx.effects = []
        ctx.client_event_id = None
        while (due := ctx.deadlines.take(ctx.now_ms)) is not None:
            self._expire(*due)
        ctx.client_event_id = getattr(event, "event_id", None)
        if self.life.state in (Lifecycle.LIVE, Lifecycle.DRAINING):
            self._handle(event)
        else:
            self._handle_life(event)
        self.drafting.check()
        if self.speaking.is_busy:
            self.preparation.stop()
        if self.life.state is Lifecycle.LIVE:
            watch_for_idleness(ctx, self.listening, self.speaking, self.turns)
        elif self.life.state is Lifecycle.DRAINING and self.speaking.state is Speaking.IDLE:
            self.life.fire(Live.SPOKEN_OUT)
        self._show_state()
        effects, ctx.effects = ctx.effects, []
        return effects

    def _show_state(self) -> None:
        """Once per step, whatever happened within it."""
        shown = None
        if self.life.state in (Lifecycle.LIVE, Lifecycle.DRAINING):
            shown = shown_state(self.ctx, self.listening, self.speaking, self.turns)
        if shown is not None and shown is not self._shown:
            self.ctx.show(StateShown(shown))
        self._shown = shown

    def _handle_life(self, event: Event) -> bool:
        """What concerns the session as a whole. False: the event is of another kind."""
        match event:
            case Opened():
                self.life.fire(Live.OPENED, event)
            case Disconnected(resumable):
                self.life.fire(Live.LOST if resumable else Live.GONE, event)
            case Reconnected():
                self.life.fire(Live.BACK, event)
            case ShutDown():
                self.life.fire(Live.SHUT_DOWN, event)
            case _:
                return False
        return True

    def _handle(self, event: Event) -> None:
        match event:
            case AudioFrame():
                self.ctx.flow.hear(self.ctx.now_ms)
                self.listening.hear(event)
            case JudgeAnswered(request, probability):
                self.listening.judge(request, probability)
            case JudgeFailed(request):
                self.listening.judge(request, None)
            case TranscriptFinal(request, text):
                self.turns.hear(request, text)
            case TranscriptFailed(request, code, message):
                self.turns.fail(request, code, message)
            case (
                ReplyText()
                | ReplyAudio()
                | ReplyVoiced()
                | ReplyToolCall()
                | ReplyUsage()
                | ReplyWritten()
                | ReplyFinished()
                | ReplyFailed()
            ):
                self._collect(event)
            case AudioLeaving(request, samples):
                self._leave(request, samples)
            case EgressDrained(request):
                self._drained(request)
            case TranscriptPartial(request, text):
                self.turns.glimpse(request, text)
            case Tick():
                pass  # the deadlines have fired already
            case PlaybackReported(item_id, played_ms):
                self.ctx.flow.notice(self.ctx.now_ms)
                self.ctx.playback.report(item_id, played_ms, self.ctx.now_ms)
            case Opened() | Disconnected() | Reconnected() | ShutDown():
                self._handle_life(event)
            case _:
                self._serve(event)

    def _serve(self, event: Event) -> None:
        """The client's own events."""
        ctx = self.ctx
        ctx.flow.notice(ctx.now_ms)
        match event:
            case ClientRefused(event_id, type_, code, message, param):
                ctx.tell(ErrorRaised(type_, code, message, param, event_id))
            case ClientSessionUpdate():
                self._update_session(event)
            case ClientCommit():
                self.listening.commit(event)
            case ClientClear():
                self.listening.clear(event)
            case ClientItemCreate():
                requests.create_item(ctx, event, self.turns)
            case ClientItemRetrieve():
                requests.retrieve_item(ctx, event)
            case ClientItemTruncate():
                if requests.truncate_item(ctx, event):
                    stop_if_truncated(event, self.speaking)
            case ClientItemDelete():
                requests.delete_item(ctx, event, self.turns)
            case ClientResponseCreate():
                create_response(ctx, event, self.speaking, self.side, self.turns)
            case ClientResponseCancel():
                cancel_response(event, self.speaking, self.side)
            case _:
                pass

    def _update_session(self, event: ClientSessionUpdate) -> None:
        ctx = self.ctx
        detection = ctx.settings.turn_detection
        if not requests.update_session(ctx, event):
            return
        if ctx.settings.turn_detection != detection:
            ctx.deadlines.disarm(Due.IDLE)
            self.listening.fire(Hear.DETECTION)
        if self.listening.patience.may_draft:
            # Instructions are the longest part of most prompts: read before anybody speaks.
            self.preparation.prepare(None)

    # ---- replies -------------------------------------------------------------------------------

    def _voice_reply(self, request: str) -> Reply | None:
        """The reply of the response under way, if it is this one."""
        response = self.speaking.response
        if response is None or response.is_done or response.reply is None:
            return None
        return response.reply if response.reply.request == request else None

    def _collect(self, event: _ReplyEvent) -> None:
        """Outputs gather in their reply, whoever may see it; those of dead requests in none."""
        request = event.request
        draft = self.drafting.reply
        if draft is not None and draft.request == request:
            if isinstance(event, ReplyFailed):
                self.drafting.fire(Guess.FAILED)  # the turn's own reply will say so, if it fails
            else:
                self._add(draft, event)
                self.listening.draft_grew()
            return
        reply = self._voice_reply(request)
        if reply is not None:
            self._add(reply, event)
            self.speaking.progress()
            return
        reply = self.side.find(request)
        if reply is not None:
            self._add(reply, event)
            self.side.progress(request)
        elif isinstance(event, ReplyFinished | ReplyFailed):
            self.preparation.settle(request)

    def _add(self, reply: Reply, event: _ReplyEvent) -> None:
        now_ms = self.ctx.now_ms
        match event:
            case ReplyText(_, text):
                reply.add_text(text, now_ms)
            case ReplyVoiced():
                reply.voiced_ms = now_ms
            case ReplyAudio(_, samples, text_end, words):
                reply.add_audio(samples, text_end, now_ms, words)
            case ReplyToolCall(_, index, call_id, name, arguments):
                reply.add_call(index, call_id, name, arguments, now_ms)
            case ReplyUsage(_, read, cached, written):
                reply.usage = ResponseUsage(read, cached, written)
                reply.last_output_ms = now_ms  # a model at work, though it shows nothing yet
            case ReplyWritten(_, reason):
                reply.written = Ending(reason)
                reply.last_output_ms = now_ms
            case ReplyFinished(_, reason, read, cached, written):
                reply.usage = ResponseUsage(read, cached, written)
                reply.ending = Ending(reason)
            case ReplyFailed(_, code, message):
                reply.ending = Ending(code=code or "reply_failed", message=message)

    def _leave(self, request: str, samples: int) -> None:
        response = self.speaking.response
        if self._voice_reply(request) is not None and response is not None:
            response.leave(self.ctx, samples)
        else:
            self.side.leave(request, samples)

    def _drained(self, request: str) -> None:
        reply = self._voice_reply(request)
        if reply is not None:
            if reply.ending is not None:
                self.speaking.fire(Say.DRAINED)
        else:
            self.side.settle(request)

    # ---- deadlines -----------------------------------------------------------------------------

    def _expire(self, due: Due, subject: str) -> None:
        match due:
            case Due.AUDIO_GAP:
                self.listening.gap()
            case Due.TRANSCRIPT:
                self.turns.expire(subject)
            case Due.HOLD:
                self.speaking.fire(Say.RELEASE)
            case Due.FIRST_OUTPUT:
                self.speaking.fire(Say.STARVED)
            case Due.STARVED if subject:
                self.side.starve(subject)
            case Due.STARVED:
                self.speaking.suspect_starvation()
            case Due.PLAYBACK_END:
                self.speaking.fire(Say.PLAYED)
            case Due.IDLE:
                prompt_idle_user(self.ctx, self.listening, self.speaking)
            case Due.TOOL:
                self.ctx.tools.give_up(subject)
            case Due.DRAIN | Due.RESUME | Due.SESSION_END:
                self.life.fire(Live.EXPIRED)
