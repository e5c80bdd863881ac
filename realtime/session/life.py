"""The lifecycle: a session opens, lives, may be parked while its client is gone, and closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.deadlines import Due
from realtime.session.effects import CloseTransport
from realtime.session.events import Opened, ShutDown
from realtime.session.identifiers import Identifiers
from realtime.session.notices import SessionCreated
from realtime.session.policy import PROFILES
from realtime.session.region import Region
from realtime.session.states import Lifecycle, Speaking
from realtime.session.table import LIFECYCLE, Guess, Hear, Live, Say

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.drafting import DraftingRegion
    from realtime.session.listening import ListeningRegion
    from realtime.session.side import SideResponses
    from realtime.session.speaking import SpeakingRegion

GOING_AWAY = 1001  # the WebSocket code of a server that stops


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
        ctx.session_id = ctx.ids.make("sess")
        ctx.conversation_id = ctx.ids.make("conv")
        ctx.tell(SessionCreated(ctx.session_id, ctx.settings, ctx.expires_at_s))
        self.listening.open()
        return Lifecycle.LIVE

    def park(self, _: object) -> Lifecycle:
        self._break_off()
        self.ctx.deadlines.arm(Due.RESUME, self.ctx.now_ms + self.ctx.policy.resume_ttl_ms)
        return Lifecycle.PARKED

    def resume(self, _: object) -> Lifecycle:
        ctx = self.ctx
        ctx.deadlines.disarm(Due.RESUME)
        ctx.tell(SessionCreated(ctx.session_id, ctx.settings, ctx.expires_at_s))
        self.listening.open()
        return Lifecycle.LIVE

    def drain(self, event: object) -> Lifecycle:
        assert isinstance(event, ShutDown)
        if self.speaking.state is Speaking.IDLE:
            return self.close(None)
        self.ctx.deadlines.arm(Due.DRAIN, self.ctx.now_ms + event.within_ms)
        return Lifecycle.DRAINING

    def close(self, _: object) -> Lifecycle:
        if self.state is not Lifecycle.OPENING:
            self._break_off()
        self.ctx.deadlines.clear()
        self.ctx.emit(CloseTransport(GOING_AWAY, "The session has ended."))
        return Lifecycle.CLOSED

    def _break_off(self) -> None:
        """End all that is under way; the conversation stays."""
        self.listening.fire(Hear.DISCONNECT)
        self.speaking.fire(Say.DISCONNECT)
        self.drafting.fire(Guess.ABORT)
        self.side.cancel_all()
        self.ctx.tools.forget()
        self.ctx.deadlines.clear()
