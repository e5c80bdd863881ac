"""Streamed in any chunks, the codec's sound is that of decoding everything at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.higgs.codec.config import CodecConfig, tiny_codec_config
from pipelines.higgs.codec.layers import Layout
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.plain import TorchCodec
from pipelines.higgs.codec.stream import NEVER_FRAMES, StreamingDecoder
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.higgs.rows import Codes
from pipelines.types import Samples

# Of sound at about full scale; what float32's order of additions leaves is below 1e-5.
TOLERANCE = 1e-4
SLOTS = 3


@cache
def model() -> CodecModel:
    return random_codec(tiny_codec_config(), seed=7)


@cache
def codec() -> TorchCodec:
    return TorchCodec(model(), SLOTS)


def random_codes(frames: int, seed: int) -> Codes:
    return np.random.default_rng(seed).integers(0, 32, (frames, 8)).astype(np.int32)


def at_once(codes: Codes) -> Samples:
    if not len(codes):
        return np.zeros(0, np.float32)
    return model().decode(torch.from_numpy(codes).long()).numpy()


def stream(slot: int, codes: Codes, cuts: list[int], ends_apart: bool = False) -> list[Samples]:
    """Cut behind so many frames; with `ends_apart` the job that ends holds no frames."""
    edges = [0, *sorted(cut for cut in cuts if cut < len(codes)), len(codes)]
    jobs = [
        CodecJob(slot, codes[first:last], not ends_apart and last == len(codes))
        for first, last in zip(edges, edges[1:], strict=False)
    ]
    if ends_apart:
        jobs.append(CodecJob(slot, codes[:0], True))
    return [codec().submit([job]).take()[0] for job in jobs]


def test_the_lag_follows_from_the_layers() -> None:
    assert Layout.of(CodecConfig()).lag_samples == 9458
    assert codec().lag_samples == 9458  # widths have no part in it


def test_no_less_lag_would_do_and_no_more_is_taken() -> None:
    """A frame changes the samples from its own first one less the lag on, or nearly so early."""
    codes = random_codes(30, seed=1)
    changed = codes.copy()
    changed[20] = (changed[20] + 1) % 32
    differs = np.flatnonzero(at_once(codes) != at_once(changed))
    first_final = 20 * FRAME_SAMPLES - codec().lag_samples
    assert first_final <= differs[0] <= first_final + FRAME_SAMPLES // 10


@pytest.mark.parametrize("frames", range(1, 13))
def test_short_stretches(frames: int) -> None:
    codes = random_codes(frames, seed=frames)
    sound = np.concatenate(stream(0, codes, list(range(1, frames))))
    assert len(sound) == frames * FRAME_SAMPLES
    assert np.abs(sound - at_once(codes)).max() < TOLERANCE


@settings(max_examples=15, deadline=None)
@given(
    frames=st.integers(1, 40),
    cuts=st.lists(st.integers(1, 39), max_size=8, unique=True),
    ends_apart=st.booleans(),
    slot=st.integers(0, SLOTS - 1),
)
def test_any_cuts(frames: int, cuts: list[int], ends_apart: bool, slot: int) -> None:
    codes = random_codes(frames, seed=frames)
    sounds = stream(slot, codes, cuts, ends_apart)
    assert np.abs(np.concatenate(sounds) - at_once(codes)).max() < TOLERANCE
    whole = np.concatenate(stream(slot, codes, []))
    assert np.array_equal(np.concatenate(sounds), whole)  # bit for bit
    edges = [*sorted(cut for cut in cuts if cut < frames), frames]
    final = [max(edge * FRAME_SAMPLES - codec().lag_samples, 0) for edge in edges]
    if not ends_apart:
        final[-1] = frames * FRAME_SAMPLES
    assert [len(sound) for sound in sounds][: len(final)] == np.diff([0, *final]).tolist()


def test_a_stretch_of_nothing() -> None:
    (sound,) = codec().submit([CodecJob(0, random_codes(0, 0), True)]).take()
    assert sound.shape == (0,) and sound.dtype == np.float32


def test_a_reset_leaves_nothing_of_the_stretch_before() -> None:
    codes = random_codes(14, seed=3)
    alone = np.concatenate(stream(1, codes, [5]))
    codec().submit([CodecJob(1, random_codes(17, seed=4), False)])
    codec().reset(1)
    assert np.array_equal(np.concatenate(stream(1, codes, [5])), alone)
    assert np.array_equal(np.concatenate(stream(1, codes, [5])), alone)  # behind its own end


@dataclass
class Voice:
    """One slot's stretch, fed by chance."""

    codes: Codes
    fed: int = 0
    sounds: list[Samples] = field(default_factory=list)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_slots_at_different_phases(seed: int) -> None:
    """Jobs of several slots go together, at different places in their stretches."""
    chance = np.random.default_rng(seed)
    voices = [Voice(random_codes(int(chance.integers(1, 25)), seed + n)) for n in range(SLOTS)]
    while any(voice.fed < len(voice.codes) for voice in voices):
        jobs: list[CodecJob] = []
        for slot, voice in enumerate(voices):
            frames = min(int(chance.integers(0, 6)), len(voice.codes) - voice.fed)
            if frames:
                voice_codes = voice.codes[voice.fed : voice.fed + frames]
                voice.fed += frames
                jobs.append(CodecJob(slot, voice_codes, voice.fed == len(voice.codes)))
        for job, sound in zip(jobs, codec().submit(jobs).take(), strict=True):
            voices[job.slot].sounds.append(sound)
    for slot, voice in enumerate(voices):
        sound = np.concatenate(voice.sounds)
        assert np.abs(sound - at_once(voice.codes)).max() < TOLERANCE
        assert np.array_equal(sound, np.concatenate(stream(slot, voice.codes, [])))


def test_rows_that_are_part_full_or_stand_for_no_slot() -> None:
    """One call of a fixed shape: a start, a middle, an end, and a row of padding."""
    decoder = StreamingDecoder(model(), SLOTS)
    codes = [random_codes(frames, seed=frames) for frames in (6, 9, 4)]
    lag = decoder.layout.lag_samples
    sounds = [np.zeros(0, np.float32)] * SLOTS
    fed = [0] * SLOTS
    counts_of_calls = [(0, 6, 4), (6, 3, 10), (10, 10, 0)]  # of each slot; ten draw out an end
    for counts in counts_of_calls:
        batch = np.full((SLOTS + 1, 10, 8), 31)  # what no slot is fed is anything
        for slot, count in enumerate(counts):
            part = codes[slot][fed[slot] : fed[slot] + count]
            batch[slot, : len(part)] = part
        ends = [
            len(codes[slot]) if fed[slot] + counts[slot] >= len(codes[slot]) else NEVER_FRAMES
            for slot in range(SLOTS)
        ]
        out = decoder.advance(
            torch.from_numpy(batch),
            torch.tensor([0, 1, 2, SLOTS]),
            torch.tensor([*fed, 0]),
            torch.tensor([*counts, 0]),
            torch.tensor([*ends, NEVER_FRAMES]),
        ).numpy()
        for slot, count in enumerate(counts):
            first = fed[slot] * FRAME_SAMPLES - lag
            fresh = out[slot, max(-first, 0) : count * FRAME_SAMPLES]
            sounds[slot] = np.concatenate([sounds[slot], fresh])
            fed[slot] += count
    for slot, sound in enumerate(sounds):
        whole = at_once(codes[slot])
        known = min(len(sound), len(whole))
        assert known >= FRAME_SAMPLES
        assert np.abs(sound[:known] - whole[:known]).max() < TOLERANCE


def test_what_a_slot_left_behind_cannot_spread() -> None:
    decoder = StreamingDecoder(model(), 1)
    decoder.states.fill_(float("nan"))
    codes = torch.from_numpy(random_codes(12, seed=5)).long()
    numbers = [torch.tensor([n]) for n in (0, 0, 12, NEVER_FRAMES)]
    sound = decoder.advance(codes[None], *numbers)[0, decoder.layout.lag_samples :]
    assert torch.isfinite(sound).all()


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([CodecJob(SLOTS, random_codes(1, 0), False)], "slot 3 of 3"),
        ([CodecJob(0, random_codes(1, 0)[:, :7], False)], r"not \[frames, 8\]"),
        ([CodecJob(0, random_codes(1, 0) + 32, False)], "0 to 31"),
        ([CodecJob(0, random_codes(1, 0) - 32, False)], "0 to 31"),
        ([CodecJob(0, random_codes(1, 0), False)] * 2, "two jobs"),
    ],
)
def test_what_is_refused(jobs: list[CodecJob], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        codec().submit(jobs)
