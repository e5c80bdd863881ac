"""A whole voice of a few kilobytes: the true code on random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

from pipelines.higgs.codec.config import tiny_codec_config
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.plain import TorchCodec
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.engine import HiggsEngine
from pipelines.higgs.member import V3
from pipelines.higgs.model.decoder import TorchDecoder
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.reply.reading import Reading
from pipelines.higgs.reply.stream import SpeechStream
from pipelines.higgs.rows import Sampling
from pipelines.higgs.synthetic.models import random_parameters, tiny_config
from pipelines.higgs.synthetic.tokenizer import special_ids, synthetic_tokenizer
from pipelines.higgs.text.prompt import Preamble
from pipelines.higgs.text.script import V3Script
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.types import SpeechDelta, StageError

CONFIG = HiggsConfig.of(tiny_config())
STEP_S = 0.003  # what a step takes on the clock of these tests


@cache
def parameters(typical_rows: int = 25) -> HiggsParameters:
    return random_parameters(CONFIG, "cpu", torch.float32, 3, typical_rows=typical_rows)


@cache
def codec_model() -> CodecModel:
    return random_codec(tiny_codec_config())


@cache
def tokenizer() -> HiggsTokenizer:
    vocabulary = CONFIG.backbone.vocabulary_size
    return HiggsTokenizer(synthetic_tokenizer(special_ids(vocabulary)))


@cache
def script() -> V3Script:
    return V3Script(tokenizer())


def reference(frames: int = 20) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 32, (frames, 8)).astype(np.int32)


@dataclass
class Voice:
    """An engine on a clock that moves with its steps."""

    engine: HiggsEngine
    decoder: TorchDecoder
    codec: TorchCodec
    now_s: Callable[[], float]
    heard: dict[int, list[SpeechDelta]] = field(default_factory=dict)
    errors: dict[int, StageError] = field(default_factory=dict)

    def open(
        self,
        slot: int,
        seed: int = 1,
        preamble: Preamble | None = None,
        sampling: Sampling = V3.sampling,
        most_frames: int | None = None,
        first_frames: int = 0,
    ) -> SpeechStream:
        stream = SpeechStream(
            slot,
            preamble or script().preamble(),
            Reading(script(), V3),
            CONFIG.audio,
            V3,
            positions=self.decoder.positions,
            lag_samples=self.codec.lag_samples,
            sampling=sampling,
            seed=seed,
            most_frames=most_frames,
            first_frames=first_frames,
        )
        self.engine.open(slot, stream)
        self.heard[slot] = []
        self.errors.pop(slot, None)
        return stream

    def say(self, slot: int, *texts: str, **options: object) -> list[SpeechDelta]:
        """Speak texts one after the other in a slot, alone, to the end."""
        self.open(slot, **options)  # pyright: ignore[reportArgumentType]
        for text in texts:
            self.engine.feed(slot, text)
        self.engine.feed(slot, None)
        self.run({slot})
        self.engine.close(slot)
        return self.heard[slot]

    def run(self, slots: set[int]) -> None:
        """Step until all of these slots have ended or failed."""
        open_slots = set(slots)
        while open_slots:
            open_slots -= self.step(sorted(open_slots))

    def run_until_drawing(self, slot: int) -> None:
        """Step one stream until its prompt is fed."""
        while not self.engine.stream(slot).draws:
            self.step([slot])

    def step(self, slots: list[int]) -> set[int]:
        """One step; those that ended or failed by it."""
        over: set[int] = set()
        for slot, outcome in self.engine.step(slots).items():
            self.heard[slot] += outcome.outputs
            if outcome.error is not None:
                self.errors[slot] = outcome.error
            if outcome.is_ended or outcome.error is not None:
                over.add(slot)
        return over


def make_voice(
    *, streams: int = 4, prefixes: int = 0, positions: int = 600, typical_rows: int = 25
) -> Voice:
    decoder = TorchDecoder(
        CONFIG,
        parameters(typical_rows),
        slots=streams + prefixes,
        positions=positions,
        row_limit=64,
        device="cpu",
        is_rowwise=True,
    )
    codec = TorchCodec(codec_model(), streams)
    ticks = [0]

    def now_s() -> float:
        ticks[0] += 1
        return ticks[0] * STEP_S

    engine = HiggsEngine(
        decoder, codec, streams=streams, codebooks=CONFIG.audio.codebooks, now_s=now_s
    )
    return Voice(engine, decoder, codec, now_s)


def sound(deltas: list[SpeechDelta]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *(delta.samples for delta in deltas)])
