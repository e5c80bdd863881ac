"""The lifecycle: a session opens, lives, may be parked while its client is gone, and closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.context import INVALID_REQUEST
from realtime.session.creation import Creation
from realtime.session.deadlines import Due
from realtime.session.effects import CloseTransport
from realtime.session.events import Disconnected, Opened, Reconnected, ShutDown
from realtime.session.identifiers import Identifiers
from realtime.session.notices import ErrorRaised, SessionCreated
from realtime.session.policy import PROFILES
from realtime.session.region import Region
from realtime.session.returning import cut_to_heard, find_rest, silence, tell_conversation
from realtime.session.states import Lifecycle, Speaking
from realtime.session.table import LIFECYCLE, Guess, Hear, Live, Say

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.drafting import DraftingRegion
    from realtime.session.listening import ListeningRegion
    from realtime.session.side import SideResponses
    from realtime.session.speaking import SpeakingRegion

GOING_AWAY = 1001  # the WebSocket code of a server that stops, or ends the session
MS_PER_MINUTE = 60_000


class LifecycleRegion(Region[Lifecycle, Live]):
    def __init__(
        self,
        ctx: Context,
        listening: ListeningRegion,
        speaking: SpeakingRegion,
        drafting: DraftingRegion,
        side: SideResponses,
    ) -> None:
        super().__init__(ctx, LIFECYCLE, Lifecycle.OPENING)
        self.listening = listening
        self.speaking = speaking
        self.drafting = drafting
        self.side = side
        self._resume_ms = 0.0
        self._owed: Creation | None = None  # to a client that is lost

    # ---- actions -------------------------------------------------------------------------------

    def open(self, event: object) -> Lifecycle:
        assert isinstance(event, Opened)
        ctx = self.ctx
        ctx.ids = Identifiers(event.seed)
        ctx.settings = event.settings
        ctx.policy = PROFILES.get(event.profile, PROFILES["browser"])
        ctx.drafts = event.drafts
        ctx.is_closely_paced = (
            event.lead_ms is not None and event.lead_ms <= ctx.policy.weighing_lead_ms
        )
        ctx.expires_at_s = event.expires_at_s
        ctx.bounds = event.bounds
        self._resume_ms = event.resume_ms
        ctx.lasts_ms = event.lasts_ms
        if event.lasts_ms is not None:
            ctx.deadlines.arm(Due.SESSION_END, ctx.now_ms + event.lasts_ms)
        ctx.session_id = ctx.ids.make("sess")
        ctx.conversation_id = ctx.ids.make("conv")
        ctx.tell(SessionCreated(ctx.session_id, ctx.settings, ctx.expires_at_s))
        self.listening.open()
        return Lifecycle.LIVE

    def park(self, event: object) -> Lifecycle:
        assert isinstance(event, Disconnected)
        ctx, speaking = self.ctx, self.speaking
        due, was_busy, awaits_tool = speaking.due, speaking.is_busy, ctx.tools.is_waiting
        lost_at_ms = silence(ctx, event)
        self._break_off()
        # What follows a tool's output goes on anyway.
        rest = None if awaits_tool else find_rest(ctx, speaking, lost_at_ms, was_busy)
        self._owed = (due if ctx.settings.creates_responses else None) or rest
        cut_to_heard(ctx)
        ctx.deadlines.arm(Due.RESUME, ctx.now_ms + self._resume_ms)
        return Lifecycle.PARKED

    def resume(self, event: object) -> Lifecycle:
        """The conversation as it was heard, then what was broken off or not answered."""
        assert isinstance(event, Reconnected)
        ctx, turns = self.ctx, self.listening.turns
        ctx.deadlines.disarm(Due.RESUME)
        ctx.position = max(ctx.position, event.position)
        ctx.tell(SessionCreated(ctx.session_id, ctx.settings, ctx.expires_at_s))
        tell_conversation(ctx)
        self.listening.buffer_start = ctx.position
        self.listening.open()
        turns.make_up()
        owed, self._owed = self._owed, None
        if owed is not None:
            waits_for = frozenset(turns.untranscribed)
            creation = Creation(
                owed.options, closing=owed.closing, text=owed.text, waits_for=waits_for
            )
            self.speaking.answer(Say.COMMIT, creation)
        return Lifecycle.LIVE

    def drain(self, event: object) -> Lifecycle:
        assert isinstance(event, ShutDown)
        if self.speaking.state is Speaking.IDLE:
            return self.close(None)
        self.ctx.deadlines.arm(Due.DRAIN, self.ctx.now_ms + event.within_ms)
        return Lifecycle.DRAINING

    def expire(self, _: object) -> Lifecycle:
        """The session's time is over; what is being said ends as by any other interruption."""
        ctx = self.ctx
        minutes = (ctx.lasts_ms or 0) / MS_PER_MINUTE
        unit = "minute" if minutes == 1 else "minutes"
        why = f"Your session hit the maximum duration of {minutes:g} {unit}."
        self._break_off()
        ctx.tell(ErrorRaised(INVALID_REQUEST, "session_expired", why))
        return self._end(why)

    def close(self, _: object) -> Lifecycle:
        if self.state is not Lifecycle.OPENING:
            self._break_off()
        return self._end("The session has ended.")

    def _end(self, why: str) -> Lifecycle:
        self.ctx.deadlines.clear()
        self.ctx.emit(CloseTransport(GOING_AWAY, why))
        return Lifecycle.CLOSED

    def _break_off(self) -> None:
        """End all that is under way; the conversation stays."""
        self.listening.fire(Hear.DISCONNECT)
        self.speaking.fire(Say.DISCONNECT)
        self.drafting.fire(Guess.ABORT)
        self.side.cancel_all()
        self.ctx.tools.forget()
        self.ctx.deadlines.clear(keep=Due.SESSION_END)
