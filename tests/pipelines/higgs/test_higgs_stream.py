"""One reply without its devices: frames in, sound out, and what is told of it."""

from __future__ import annotations

import numpy as np

from pipelines.higgs.config import FRAME_SAMPLES, AudioConfig
from pipelines.higgs.member import V3
from pipelines.higgs.reply.reading import Reading
from pipelines.higgs.reply.stream import SpeechStream
from pipelines.higgs.rows import NO_DRAW
from pipelines.types import Samples, SpeechDelta
from tests.pipelines.higgs.voices import script

AUDIO = AudioConfig(codebooks=8, codebook_size=34)
TEXT = "Good morning, how are you today?"
LOUD, SILENT = 0.2, 0.0


class Rig:
    """A stream whose decoder draws `codes(row)` and whose codec sounds as `level(frame)` says."""

    def __init__(self, lag_samples: int = 0) -> None:
        self.stream = SpeechStream(
            0,
            script().preamble(),
            Reading(script(), V3),
            AUDIO,
            V3,
            positions=1000,
            lag_samples=lag_samples,
            sampling=V3.sampling,
            seed=1,
        )
        self.now_s = 0.0
        self.frames = 0
        self.seeds: list[int] = []
        self.deltas: list[SpeechDelta] = []
        self.chance = np.random.default_rng(3)

    def step(self, level: float, end: bool = False, code: int | None = None) -> None:
        """One row, and the sound of what is due."""
        self.now_s += 0.003
        for row in self.stream.sequence.take(64):
            if row.ramp != NO_DRAW:
                self.seeds.append(row.seed)
                drawn = self.chance.integers(0, 32, 8) if code is None else np.full(8, code)
                if end:
                    drawn[0] = AUDIO.end_code
                self.stream.accept(tuple(drawn.tolist()), self.stream.sequence.generation)
        job = self.stream.due(self.now_s)
        if job is not None:
            self.frames += len(job.codes)
            self.deltas += self.stream.hear(self.sound(len(job.codes), level), self.now_s)

    def sound(self, frames: int, level: float) -> Samples:
        noise = self.chance.uniform(-level, level, frames * FRAME_SAMPLES)
        return noise.astype(np.float32)

    @property
    def words(self) -> list[tuple[int, int]]:
        """Each word's end in the samples that left, and in the text."""
        found: list[tuple[int, int]] = []
        before = 0
        for delta in self.deltas:
            found += [(before + word.samples, word.text_end) for word in delta.words]
            before += len(delta.samples)
        return found

    @property
    def samples(self) -> int:
        return sum(len(delta.samples) for delta in self.deltas)


def test_nothing_is_told_before_the_first_sound() -> None:
    rig = Rig()
    rig.stream.push(TEXT)
    for _ in range(20):
        rig.step(SILENT)

    assert rig.deltas == []


def test_words_are_timed_from_the_first_sound_on() -> None:
    early, late = Rig(), Rig()
    for rig, silent in ((early, 0), (late, 12)):
        rig.stream.push(TEXT)
        for row in range(80):
            rig.step(SILENT if row < silent + 8 and silent else LOUD)

    assert len(late.words) > 2
    # Leading silence was left out, so the same words end about as late in what was heard.
    for (first, _), (second, _) in zip(early.words, late.words, strict=False):
        assert abs(first - second) < 6 * FRAME_SAMPLES


def test_a_chunk_that_begins_with_endless_silence_is_begun_anew_and_its_words_told_once() -> None:
    rig = Rig()
    rig.stream.push(TEXT)
    rig.stream.finish()
    for _ in range(80):
        rig.step(SILENT)
    assert len(set(rig.seeds)) == 2
    row = 0
    while not rig.stream.is_ended and row < 300:
        row += 1
        rig.step(LOUD, end=row == 90)
        rig.deltas += rig.stream.rest()

    ends = [text_end for _, text_end in rig.words]
    assert ends == sorted(set(ends)) and ends[-1] == len(TEXT)
    assert [at for at, _ in rig.words] == sorted(at for at, _ in rig.words)
    assert rig.deltas[-1].text_end == len(TEXT)


def test_a_second_silence_is_not_tried_again_but_cut() -> None:
    rig = Rig()
    rig.stream.push(TEXT)
    rig.stream.finish()
    for _ in range(400):
        rig.step(SILENT)
        rig.deltas += rig.stream.rest()

    assert len(set(rig.seeds)) == 2
    assert rig.stream.is_ended
    assert rig.deltas[-1].text_end == len(TEXT)


def test_silence_in_the_middle_ends_the_chunk_and_the_next_one_is_spoken() -> None:
    rig = Rig()
    rig.stream.push(TEXT)
    for _ in range(30):
        rig.step(LOUD)
    for _ in range(90):
        rig.step(SILENT)
    assert rig.stream.sequence.awaits_text
    heard = rig.samples
    rig.stream.push("And then?")
    for _ in range(40):
        rig.step(LOUD)

    assert rig.samples > heard


def test_a_loop_is_cut() -> None:
    rig = Rig()
    rig.stream.push("word " * 50)
    for _ in range(300):
        rig.step(LOUD, code=5)

    assert rig.stream.sequence.awaits_text
    assert rig.frames < 220
