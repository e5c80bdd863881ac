"""What follows when a turn has become an item, or nothing, or could not be heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.creation import Creation, Debt, Failure
from realtime.session.prompt import CONTINUE, heard_text
from realtime.session.table import Guess, Hear, Say

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.drafting import DraftingRegion
    from realtime.session.listening import ListeningRegion
    from realtime.session.side import SideResponses
    from realtime.session.speaking import SpeakingRegion
    from realtime.session.turn import Turn
    from realtime.session.turns import Turns


class Outcomes:
    """Connects the ends of turns to the speaking region: one answer for what belongs together."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def bind(
        self,
        turns: Turns,
        listening: ListeningRegion,
        speaking: SpeakingRegion,
        drafting: DraftingRegion,
        side: SideResponses,
    ) -> None:
        """Give the parts that need each other to each other, once."""
        self.turns = turns
        self.listening = listening
        self.speaking = speaking
        self.drafting = drafting
        self.side = side

    @property
    def _is_more_to_come(self) -> bool:
        """Whether the user is in a later turn already, which will be answered with this one."""
        return self.listening.is_in_turn or self.turns.is_concluding

    def turn_committed(self, turn: Turn, version: tuple[int, int]) -> None:
        speaking = self.speaking
        if self._is_more_to_come:
            self.drafting.fire(Guess.ABORT)
            if turn.wants_reply:
                speaking.debt = Debt.ANSWER
        elif not turn.wants_reply:
            self.drafting.fire(Guess.ABORT)
            speaking.debt = Debt.NOTHING
        elif speaking.is_busy:
            self.drafting.fire(Guess.ABORT)
            speaking.answer(Say.COMMIT, Creation(turn=turn))
        else:
            waits_for = frozenset(self.turns.untranscribed)
            draft = None
            if waits_for:
                self.drafting.fire(Guess.ABORT)
            else:
                draft = self.drafting.take(turn, version)
            speaking.answer(Say.COMMIT, Creation(turn=turn, draft=draft, waits_for=waits_for))

    def turn_discarded(self, turn: Turn) -> None:
        """Nothing was said. What the noise cut short goes on; what was asked is answered."""
        self.drafting.fire(Guess.ABORT)
        if self._is_more_to_come:
            return
        if turn.wants_reply:
            self._pay_debt()
        self.speaking.debt = Debt.NOTHING

    def turn_dropped(self) -> None:
        """The client forgets what was said; what it cut short stays cut, as the user wished."""
        if self._is_more_to_come:
            return
        if self.speaking.debt is Debt.ANSWER:
            self._pay_debt()
        self.speaking.debt = Debt.NOTHING

    def turn_failed(self, turn: Turn, code: str, message: str) -> None:
        self.drafting.fire(Guess.ABORT)
        if self._is_more_to_come:
            self._report(code, message)
            return
        self.speaking.debt = Debt.NOTHING
        if turn.wants_reply and not self.speaking.is_busy:
            creation = Creation(turn=turn, failure=Failure(code, message))
            self.speaking.answer(Say.COMMIT, creation)
        else:
            self._report(code, message)

    def _report(self, code: str, message: str) -> None:
        """Once: whoever is told of transcripts has been told that this one failed."""
        if self.ctx.settings.transcription is None:
            self.ctx.report_failure(code, message)

    def _pay_debt(self) -> None:
        speaking = self.speaking
        match speaking.debt:
            case Debt.NOTHING:
                pass
            case Debt.CONTINUATION:
                speaking.answer(Say.COMMIT, Creation(closing=CONTINUE, text=self._unheard_rest()))
            case Debt.ANSWER:
                waits_for = frozenset(self.turns.untranscribed)
                speaking.answer(Say.COMMIT, Creation(waits_for=waits_for))

    def _unheard_rest(self) -> str | None:
        """Of the reply that was interrupted for nothing."""
        ctx, response = self.ctx, self.speaking.response
        item = ctx.conversation.get((response and response.message_item_id) or "")
        if response is None or item is None:
            return None
        return response.unheard(heard_text(item, ctx.playback, ctx.now_ms))

    def turn_glimpsed(self, turn: Turn) -> None:
        self.turn_heard(turn)

    def turn_heard(self, turn: Turn) -> None:
        if turn is self.listening.turn:
            self.listening.fire(Hear.HEARD)

    def item_transcribed(self, item_id: str) -> None:
        self.speaking.transcribed(item_id)
        self.side.transcribed(item_id)

    def item_failed(self, item_id: str, code: str, message: str) -> None:
        self.speaking.transcription_failed(item_id, code, message)
        self.side.transcription_failed(item_id, code, message)
