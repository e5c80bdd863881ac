"""How long a pause is waited out: the judge is asked in it, and its end is decided."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from realtime.session.effects import AskJudge
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.settings import Eagerness, SemanticVad, ServerVad
from realtime.session.trailing import trails_off

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.drafting import DraftingRegion
    from realtime.session.speaking import SpeakingRegion
    from realtime.session.turn import Turn
    from realtime.session.turns import Turns


class PauseEnd(Enum):
    """Why a turn ends in its pause."""

    SILENCE = "silence"  # server_vad counts to its own number
    JUDGED = "judged"  # semantic_vad believes that the speaker has finished


class Patience:
    """Looks at a turn that pauses; changes only what the judge is asked."""

    def __init__(
        self,
        ctx: Context,
        turns: Turns,
        speaking: SpeakingRegion,
        drafting: DraftingRegion,
    ) -> None:
        self.ctx = ctx
        self.turns = turns
        self.speaking = speaking
        self.drafting = drafting

    def end_of(self, turn: Turn) -> PauseEnd | None:
        """Whether the pause has been waited out by now; None: it goes on."""
        detection = self.ctx.settings.turn_detection
        if isinstance(detection, ServerVad):
            is_over = self._silence_ms(turn) >= detection.silence_duration_ms
            return PauseEnd.SILENCE if is_over else None
        if isinstance(detection, SemanticVad) and self._is_over(turn, detection.eagerness):
            return PauseEnd.JUDGED
        return None

    def silence_end(self, turn: Turn) -> int:
        """The exact position at which server_vad ends the turn."""
        detection = self.ctx.settings.turn_detection
        assert isinstance(detection, ServerVad)
        return turn.quiet_since + detection.silence_duration_ms * SAMPLES_PER_MS

    def ask(self, turn: Turn) -> None:
        """Put the next question to the judge when its time has come."""
        detection = self.ctx.settings.turn_detection
        if not isinstance(detection, SemanticVad):
            return
        asks_ms = self.ctx.policy.judge_asks_ms[detection.eagerness]
        silence_ms = self._silence_ms(turn)
        if (
            turn.judge_request is not None
            or turn.is_unjudged
            or self._is_waited_out(turn, detection.eagerness)
            or turn.asked >= len(asks_ms)
            or silence_ms < asks_ms[turn.asked]
        ):
            return
        while turn.asked < len(asks_ms) and silence_ms >= asks_ms[turn.asked]:
            turn.asked += 1
        turn.judge_request = self.ctx.ids.next_request("judge")
        self.ctx.emit(AskJudge(turn.judge_request, turn.number, turn.start, self.ctx.position))

    def settle(self, turn: Turn, request: str, probability: float | None) -> bool:
        """The judge answered, or failed; False: it was asked in a pause that is over."""
        if turn.judge_request != request:
            return False
        turn.judge_request = None
        if probability is None:
            turn.is_unjudged = True
        else:
            turn.probability = probability
        return True

    @property
    def may_draft(self) -> bool:
        """Whether an answer may be prepared before the turn has ended."""
        ctx = self.ctx
        return (
            ctx.drafts
            and ctx.settings.creates_responses
            and not self.turns.is_concluding
            and not self.speaking.is_busy
        )

    def _is_over(self, turn: Turn, eagerness: Eagerness) -> bool:
        """By the judge's last word on the pause, and by the words that were said."""
        policy, silence_ms = self.ctx.policy, self._silence_ms(turn)
        if silence_ms >= policy.longest_wait_ms[eagerness]:
            return True
        if not self._is_waited_out(turn, eagerness):
            return False
        # Nobody could hear an answer yet: to go on listening until then costs nothing.
        return silence_ms >= policy.settle_ms or not self._is_answer_coming(turn)

    def _is_waited_out(self, turn: Turn, eagerness: Eagerness) -> bool:
        policy, silence_ms = self.ctx.policy, self._silence_ms(turn)
        if turn.probability is None:
            # Without a judge the silence of its last question decides.
            return turn.is_unjudged and silence_ms >= policy.judge_asks_ms[eagerness][-1]
        trailing = trails_off(turn.text or "")
        return silence_ms >= policy.wait_ms(turn.probability, eagerness, trailing)

    def _is_answer_coming(self, turn: Turn) -> bool:
        if not self.may_draft:
            return False
        draft = self.drafting.reply
        if draft is None:
            return turn.recognition is not None
        return not draft.has_output and draft.ending is None

    def _silence_ms(self, turn: Turn) -> int:
        return (self.ctx.position - turn.quiet_since) // SAMPLES_PER_MS
