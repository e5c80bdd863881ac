"""What a reply sounds like does not depend on its clock, and it ends with its last frame."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, AudioConfig
from pipelines.higgs.member import V3
from pipelines.higgs.reply.emission import MOST_FIRST_FRAMES
from pipelines.higgs.reply.lead_in import AUDIBLE, KEPT_SAMPLES, MOST_SAMPLES, LeadIn
from pipelines.higgs.reply.reading import Reading
from pipelines.higgs.reply.stream import SpeechStream
from pipelines.higgs.rows import NO_DRAW, Row
from pipelines.types import Samples, SpeechDelta
from tests.pipelines.higgs.voices import make_voice, script, sound
from tests.pipelines.waiting import UNHURRIED

AUDIO = AudioConfig(codebooks=8, codebook_size=34)
TEXTS = (
    "Good morning, how are you today? ",
    "It rains on the roof of the house. ",
    "The end of it is here, and now.",
)
LAG_FRAMES = 10
HUSH = 0  # a code that sounds like nothing
STEPS = 2_000  # no reply here takes as many


@dataclass
class Player:
    """A stream, a decoder that draws by a plan, and a codec whose sound is a function of the codes.

    hushes: of each attempt at a chunk, from which of its rows to which it is silent. loops: from
    which row of a chunk on all codes repeat. step_s: what a step takes. late_steps: by how many
    steps sound comes after its job.
    """

    hushes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)
    rows: int = 100  # of a chunk, and frames
    step_s: float = 0.003
    late_steps: int = 0
    first_frames: int = 0
    most_frames: int | None = None
    deltas: list[SpeechDelta] = field(default_factory=list)

    def play(self, *texts: str) -> Samples:
        """All of it; the lines are there from the start."""
        self.stream = SpeechStream(
            0,
            script().preamble(),
            Reading(script(), V3),
            AUDIO,
            V3,
            positions=3_000,
            lag_samples=LAG_FRAMES * FRAME_SAMPLES,
            sampling=V3.sampling,
            seed=1,
            first_frames=self.first_frames,
            most_frames=self.most_frames,
        )
        for text in texts:
            self.stream.push(text)
        self.stream.finish()
        arriving: deque[tuple[int, Samples]] = deque()
        waiting = np.zeros(0, np.float32)  # what the codec keeps back
        for step in range(STEPS):
            for row in self.stream.sequence.take(64):
                if row.ramp != NO_DRAW:
                    self.stream.accept(self._codes(row), self.stream.sequence.generation)
            job = self.stream.due(step * self.step_s)
            if job is not None:
                waiting = np.concatenate([waiting, *map(_sound_of, job.codes)])
                due = len(waiting)
                if not job.ends:
                    due = max(0, due - LAG_FRAMES * FRAME_SAMPLES)
                arriving.append((step + self.late_steps, waiting[:due]))
                waiting = waiting[due:]
            while arriving and arriving[0][0] <= step:
                self.deltas += self.stream.hear(arriving.popleft()[1], step * self.step_s)
            self.deltas += self.stream.rest()
            if self.stream.is_ended:
                return sound(self.deltas)
        raise AssertionError("it does not end")

    def _codes(self, row: Row) -> tuple[int, ...]:
        sequence = self.stream.sequence
        if row.ramp == self.rows:
            return (AUDIO.end_code,) * 8
        begin, end = self.hushes.get((sequence.chunk, sequence.attempt), (0, 0))
        if begin <= row.ramp < end:
            return (HUSH,) * 8
        if row.ramp >= self.loops.get(sequence.chunk, STEPS):
            return (7,) * 8
        chance = np.random.default_rng([row.seed, row.ramp])
        return tuple(chance.integers(1, 32, 8).tolist())


def _sound_of(codes: np.ndarray) -> Samples:
    level = 0.0 if (codes == HUSH).sum() > 4 else 0.2
    noise = np.random.default_rng(codes.tolist()).uniform(-level, level, FRAME_SAMPLES)
    return noise.astype(np.float32)


def words_of(player: Player) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    before = 0
    for delta in player.deltas:
        found += [(before + word.samples, word.text_end) for word in delta.words]
        before += len(delta.samples)
    return found


@pytest.mark.parametrize(
    ("plan", "frames"),
    [
        ({}, 300),
        ({"hushes": {(0, 0): (0, 9)}}, 295.5),
        ({"hushes": {(0, 0): (0, 130)}}, 347),
        ({"hushes": {(0, 0): (0, 130), (0, 1): (0, 130)}}, 309),
        ({"hushes": {(1, 0): (0, 130)}}, 362),
        ({"hushes": {(0, 0): (20, 200)}, "rows": 200}, 504),
        ({"hushes": {(1, 0): (40, 125)}, "rows": 200}, 524),
        ({"loops": {1: 30}, "rows": 200}, 575),
        ({"first_frames": 40, "hushes": {(0, 0): (0, 130)}}, 347),
        ({"most_frames": 150, "hushes": {(1, 0): (0, 130)}}, 150),
    ],
    ids=str,
)
def test_whoever_reads_and_how_fast_a_reply_sounds_alike(
    plan: dict[str, object], frames: float
) -> None:
    usual = Player(**plan).play(*TEXTS)  # type: ignore[arg-type]
    assert len(usual) / FRAME_SAMPLES == frames
    for step_s, late_steps in ((0.0001, 0), (0.02, 1), (0.05, 0), (0.3, 2)):
        other = Player(**plan, step_s=step_s, late_steps=late_steps).play(*TEXTS)  # type: ignore[arg-type]
        np.testing.assert_array_equal(usual, other)


@UNHURRIED
@given(
    silent=st.integers(0, MOST_SAMPLES + 3 * KEPT_SAMPLES),
    sizes=st.lists(st.integers(0, 4 * KEPT_SAMPLES), max_size=40),
)
def test_a_lead_in_does_not_depend_on_pieces(silent: int, sizes: list[int]) -> None:
    hum = np.full(silent, AUDIBLE / 2, np.float32)
    whole = np.concatenate([hum, np.full(2 * CODEC_RATE_HZ, 0.5, np.float32)])
    lead_in = LeadIn()
    edges = np.minimum(np.cumsum(sizes), len(whole)).astype(int)
    heard = np.concatenate([lead_in.trim(piece) for piece in np.split(whole, edges)])
    dropped = min(max(0, silent - KEPT_SAMPLES), MOST_SAMPLES)
    np.testing.assert_array_equal(heard, whole[dropped:])
    assert lead_in.trimmed_samples == dropped


@pytest.mark.parametrize("frames", [1, 9, 11, 99, 100, 101, 150, 200, 201, 299])
def test_a_reply_ends_with_its_last_frame_whatever_is_left_to_say(frames: int) -> None:
    whole = Player()
    sounded = whole.play(*TEXTS)
    short = Player(most_frames=frames)
    np.testing.assert_array_equal(short.play(*TEXTS), sounded[: frames * FRAME_SAMPLES])
    # What was not said is not told.
    begun = -(-frames // whole.rows)
    assert short.deltas[-1].text_end <= sum(map(len, TEXTS[:begun]))
    if frames % whole.rows:
        assert short.deltas[-1].text_end < sum(map(len, TEXTS[:begun]))
    assert all(at <= frames * FRAME_SAMPLES for at, _ in words_of(short))
    assert [end for _, end in words_of(short)] == sorted({end for _, end in words_of(short)})


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    whole, limited = Player(), Player(most_frames=300)
    np.testing.assert_array_equal(whole.play(*TEXTS), limited.play(*TEXTS))
    assert whole.deltas[-1].text_end == sum(map(len, TEXTS))
    assert words_of(whole) == words_of(limited)


def test_frames_of_an_attempt_in_vain_count_as_well() -> None:
    plan = {"hushes": {(0, 0): (0, 130)}}
    player = Player(**plan, most_frames=80)  # type: ignore[arg-type]
    samples = player.play(*TEXTS)
    assert len(samples) == 80 * FRAME_SAMPLES - MOST_SAMPLES
    assert np.abs(samples[-FRAME_SAMPLES:]).max() > 0.1, "the second attempt is heard"


def test_text_that_comes_when_a_reply_has_broken_off_is_passed_over() -> None:
    player = Player(most_frames=20)
    player.play(TEXTS[0])
    told = player.deltas[-1].text_end
    player.stream.push(TEXTS[1])
    assert player.stream.rest() == [] and player.stream.is_ended
    assert told < len(TEXTS[0])


@pytest.mark.parametrize("wanted", [0, 5, 30, MOST_FIRST_FRAMES, 10_000])
def test_the_first_sound_waits_for_so_many_frames(wanted: int) -> None:
    voice = make_voice(typical_rows=60)
    stream = voice.open(0, first_frames=wanted)
    for text in TEXTS * 3:
        voice.engine.feed(0, text)
    voice.engine.feed(0, None)
    while not voice.heard[0]:
        voice.step([0])
    drawn = stream.sequence.rows_drawn
    least = min(wanted, MOST_FIRST_FRAMES)
    first = min(len(voice.heard[0][0].samples), drawn * FRAME_SAMPLES)
    lag_samples = voice.codec.lag_samples
    assert drawn - 7 >= least
    assert first >= least * FRAME_SAMPLES - lag_samples - MOST_SAMPLES
    if wanted <= 5:
        assert drawn - 7 <= lag_samples // FRAME_SAMPLES + 8


def test_what_is_all_for_now_does_not_wait_for_more_frames() -> None:
    voice = make_voice()
    voice.open(0, first_frames=MOST_FIRST_FRAMES)
    voice.engine.feed(0, "Yes.")
    for _ in range(200):
        voice.step([0])
    assert len(sound(voice.heard[0])) > 0
