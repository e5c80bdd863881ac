"""Reading ahead: the language model reads what a reply will be asked with before it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.effects import PrepareReply, PromptMessage
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.reply_request import reply_prompt

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.turn import Turn


class Preparation:
    """At most one at a time; the newest is the one that a reply will need."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._request: str | None = None
        self._read: tuple[PromptMessage, ...] = ()

    def prepare(self, turn: Turn | None) -> None:
        """Read the conversation, and what the turn's speaker has surely said so far.

        The last word of a glimpse is left out: speech that goes on mostly revises it.
        """
        ctx = self.ctx
        if not ctx.drafts:
            return
        said = "" if turn is None else " ".join(turn.glimpse.split()[:-1])
        unsaid = None
        if turn is not None and said:
            part = Part(PartKind.INPUT_AUDIO, said)
            unsaid = Item(turn.item_id, ItemKind.MESSAGE, role=Role.USER, parts=(part,))
        messages = reply_prompt(ctx, unsaid=unsaid)
        if messages == self._read or not messages:
            return
        self.stop()
        self._read = messages
        self._request = ctx.ids.next_request("prepare")
        ctx.emit(
            PrepareReply(
                self._request,
                messages,
                ctx.settings.tools,
                ctx.settings.tool_choice,
                ctx.settings.truncation,
            )
        )

    def settle(self, request: str) -> None:
        """This request has ended; perhaps it was the preparation."""
        if request == self._request:
            self._request = None

    def stop(self) -> None:
        """Somebody needs the language model, or nobody needs the preparation any more."""
        if self._request is not None:
            self.ctx.abort(self._request)
            self._request = None
            self._read = ()
