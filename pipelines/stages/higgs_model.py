"""The Higgs engine as a model that the stage runtime steps."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from pipelines.higgs.assembly import HiggsVoice
from pipelines.higgs.cloning.preambles import ReferencePreambles
from pipelines.higgs.cloning.reference import ReferenceEncoder
from pipelines.higgs.engine import Outcome
from pipelines.higgs.refusal import Refusal, Wish, check
from pipelines.higgs.reply.reading import speed_tag
from pipelines.higgs.rows import Sampling
from pipelines.higgs.text.prompt import Preamble
from pipelines.runtime.slots import SlotResult, SlotState
from pipelines.stages.higgs_drawing import SEED_BITS, check_drawing, row_seed, sampling_of
from pipelines.stages.higgs_samples import preamble_of
from pipelines.types import SpeakRequest, SpeechDelta, StageError


class HiggsModel:
    """`pipelines.runtime.slots.SteppedModel` over an engine.

    preambles: of each voice by name, the first one the default. references: of voices that come
    with a request; None: none was encoded before. seed: of requests that name none; None: another
    for each.
    """

    def __init__(
        self,
        voice: HiggsVoice,
        preambles: Mapping[str, Preamble],
        sampling: Sampling,
        seed: int | None = None,
        references: ReferencePreambles | None = None,
    ) -> None:
        self._voice = voice
        self._preambles = preambles
        # Whoever writes a name in other capitals means the same voice.
        self._by_any_case = {name.casefold(): each for name, each in preambles.items()}
        self._default = next(iter(preambles.values()))
        self._sampling = sampling
        self._seed = seed
        self._references = references or listener(voice)

    @property
    def slots(self) -> int:
        return self._voice.engine.slots

    def open(self, slot: int, request: SpeakRequest) -> None:
        """Raises StageError where the model cannot do what is asked.

        A recording of a voice is encoded here, while those who speak wait.
        """
        drawing = request.drawing
        check_drawing(drawing)
        try:
            check(self._voice.member, Wish(speed=request.speed))
        except Refusal as error:
            raise StageError(error.code, error.message) from error
        self._voice.open(
            slot,
            self._preamble(request),
            sampling=sampling_of(drawing, self._sampling, self._voice.audio.codebook_size),
            seed=self._seed_of(drawing.seed),
            tag=speed_tag(request.speed),
            most_frames=drawing.most_frames,
            first_frames=drawing.first_frames or 0,
        )

    def feed(self, slot: int, chunk: str | None) -> None:
        self._voice.engine.feed(slot, chunk)

    def step(self, active: Sequence[int]) -> Mapping[int, SlotResult[SpeechDelta]]:
        outcomes = self._voice.engine.step(active)
        return {slot: _result(outcome) for slot, outcome in outcomes.items()}

    def close(self, slot: int) -> None:
        self._voice.engine.close(slot)

    def _preamble(self, request: SpeakRequest) -> Preamble:
        if request.sample is None:
            known = self._preambles.get(request.voice)
            return known or self._by_any_case.get(request.voice.casefold(), self._default)
        return preamble_of(request.sample, self._voice.member, self._references)

    def _seed_of(self, wanted: int | None) -> int:
        if wanted is not None:
            return row_seed(wanted)
        return secrets.randbits(SEED_BITS) if self._seed is None else self._seed


def listener(voice: HiggsVoice, model: str = "") -> ReferencePreambles:
    """What makes recordings into voices of this model, of which nothing is known yet."""
    codec = voice.encoder
    encoder = ReferenceEncoder(codec.encode, codec.config, model)
    return ReferencePreambles(encoder, voice.preamble, voice.positions)


def _result(outcome: Outcome) -> SlotResult[SpeechDelta]:
    state = SlotState.RUNNING
    if outcome.is_ended:
        state = SlotState.ENDED
    elif outcome.is_starved:
        state = SlotState.STARVED
    return SlotResult(state, outcome.outputs, outcome.again_s, outcome.error)
