"""The drafting region: a reply begun before the turn has ended. Nothing of it is on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from realtime.session.effects import AdoptReply
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.region import Region
from realtime.session.reply_request import shape_response, start_reply
from realtime.session.states import Drafting
from realtime.session.table import DRAFTING, Guess
from realtime.session.turn import Turn

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.reply import Reply


@dataclass(frozen=True, slots=True)
class DraftKey:
    """A draft answers one revision of one turn in one context; any other answer is stale."""

    turn: int
    revision: int
    version: tuple[int, int]


class DraftingRegion(Region[Drafting, Guess]):
    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx, DRAFTING, Drafting.NONE)
        self.reply: Reply | None = None
        self._key: DraftKey | None = None
        self._given: Reply | None = None

    def take(self, turn: Turn, version: tuple[int, int]) -> Reply | None:
        """The draft of exactly this turn, now the caller's; a draft of anything else dies."""
        self._given = None
        self.fire(Guess.TAKE, DraftKey(turn.number, turn.revision, version))
        given, self._given = self._given, None
        return given

    def check(self) -> None:
        """Drop the draft if the context has changed under it."""
        if self._key is not None and self._key.version != self.ctx.context_version:
            self.fire(Guess.STALE)

    # ---- actions -------------------------------------------------------------------------------

    def start(self, turn: object) -> Drafting:
        assert isinstance(turn, Turn)
        ctx = self.ctx
        unsaid = Item(
            turn.item_id,
            ItemKind.MESSAGE,
            role=Role.USER,
            parts=(Part(PartKind.INPUT_AUDIO, turn.text),),
        )
        self.reply = start_reply(ctx, shape_response(ctx), unsaid=unsaid, draft=True)
        self._key = DraftKey(turn.number, turn.revision, ctx.context_version)
        return Drafting.RUNNING

    def drop(self, _: object) -> Drafting:
        if self.reply is not None:
            self.ctx.abort(self.reply.request)
        return self._clear()

    def give(self, key: object) -> Drafting:
        if key != self._key or self.reply is None:
            return self.drop(None)
        self._given = self.reply
        self.ctx.emit(AdoptReply(self.reply.request))
        return self._clear()

    def _clear(self) -> Drafting:
        self.reply = None
        self._key = None
        return Drafting.NONE
