"""The Higgs engine as a model that the stage runtime steps."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from pipelines.higgs.assembly import HiggsVoice
from pipelines.higgs.engine import Outcome
from pipelines.higgs.refusal import Refusal, Wish, check
from pipelines.higgs.reply.reading import speed_tag
from pipelines.higgs.rows import Sampling
from pipelines.higgs.text.prompt import Preamble
from pipelines.runtime.slots import SlotResult, SlotState
from pipelines.types import SpeakRequest, SpeechDelta, StageError

SEED_BITS = 31


class HiggsModel:
    """`pipelines.runtime.slots.SteppedModel` over an engine.

    preambles: of each voice by name, the first one the default.
    """

    def __init__(
        self,
        voice: HiggsVoice,
        preambles: Mapping[str, Preamble],
        sampling: Sampling,
        seed: int | None = None,
    ) -> None:
        self._voice = voice
        self._preambles = preambles
        self._default = next(iter(preambles.values()))
        self._sampling = sampling
        self._seed = seed

    @property
    def slots(self) -> int:
        return self._voice.engine.slots

    def open(self, slot: int, request: SpeakRequest) -> None:
        """Raises StageError where the model cannot do what is asked."""
        try:
            check(self._voice.member, Wish(speed=request.speed))
        except Refusal as error:
            raise StageError(error.code, error.message) from error
        self._voice.open(
            slot,
            self._preambles.get(request.voice, self._default),
            sampling=self._sampling,
            seed=secrets.randbits(SEED_BITS) if self._seed is None else self._seed,
            tag=speed_tag(request.speed),
        )

    def feed(self, slot: int, chunk: str | None) -> None:
        self._voice.engine.feed(slot, chunk)

    def step(self, active: Sequence[int]) -> Mapping[int, SlotResult[SpeechDelta]]:
        outcomes = self._voice.engine.step(active)
        return {slot: _result(outcome) for slot, outcome in outcomes.items()}

    def close(self, slot: int) -> None:
        self._voice.engine.close(slot)


def _result(outcome: Outcome) -> SlotResult[SpeechDelta]:
    state = SlotState.RUNNING
    if outcome.is_ended:
        state = SlotState.ENDED
    elif outcome.is_starved:
        state = SlotState.STARVED
    return SlotResult(state, outcome.outputs, outcome.again_s, outcome.error)
