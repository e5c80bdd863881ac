"""Feeds in calls of few shapes give the sound that feeding frame by frame gives."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.higgs.codec.calls import NUMBERS, Shapes, fill_call, join_sounds
from pipelines.higgs.codec.config import tiny_codec_config
from pipelines.higgs.codec.stream import StreamingDecoder
from pipelines.higgs.codec.stretches import Stretches
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples

SHAPES = Shapes(rows=(1, 2, 4), frames=(1, 2, 4, 12), most=16, call_frames=4)
LENGTHS = st.lists(st.integers(0, 30), max_size=9)


@given(LENGTHS)
def test_every_frame_is_fed_once_and_in_order(lengths: list[int]) -> None:
    fed = Counter[int]()
    for launch in SHAPES.launches(lengths):
        assert (launch.rows, launch.frames) in SHAPES.all()
        assert len({piece.feed for piece in launch.pieces}) == len(launch.pieces) <= launch.rows
        for piece in launch.pieces:
            assert piece.first == fed[piece.feed]
            assert 0 < piece.count <= launch.frames
            fed[piece.feed] += piece.count
    assert [fed[feed] for feed in range(len(lengths))] == lengths


@given(LENGTHS)
def test_little_is_computed_in_vain(lengths: list[int]) -> None:
    """A call's shape is the least that holds its pieces, up to the padding that saves a call."""
    for launch in SHAPES.launches(lengths):
        longest = max(piece.count for piece in launch.pieces)
        assert launch.frames == min(size for size in SHAPES.frames if size >= longest)
        padded = sum(launch.frames - piece.count for piece in launch.pieces)
        least = max(SHAPES.frames) // 2 * len(launch.pieces)  # of rounding up to a shape
        assert padded <= SHAPES.call_frames + least


def test_equal_feeds_share_calls() -> None:
    assert [(call.rows, call.frames) for call in SHAPES.launches([4] * 7)] == [(4, 4), (4, 4)]
    assert [(call.rows, call.frames) for call in SHAPES.launches([12, 1])] == [(1, 12), (1, 1)]
    assert [(call.rows, call.frames) for call in SHAPES.launches([4, 2, 2])] == [(4, 4)]
    assert SHAPES.launches([0, 0]) == []


def test_shapes_come_largest_first() -> None:
    sizes = [rows * frames for rows, frames in SHAPES.all()]
    assert sizes == sorted(sizes, reverse=True)
    assert (4, 12) not in SHAPES.all() and (1, 12) in SHAPES.all()


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_sound_of_calls_is_the_sound_at_once(seed: int) -> None:
    slots = 6
    model = random_codec(tiny_codec_config(), seed=2)
    decoder = StreamingDecoder(model, slots)
    stretches = Stretches(model.config, slots, decoder.layout.lag_samples)

    def submit(jobs: list[CodecJob]) -> list[Samples]:
        feeds = stretches.feeds(jobs)
        made = []
        for launch in SHAPES.launches([len(feed.codes) for feed in feeds]):
            numbers = np.full((launch.rows, launch.frames * 8 + NUMBERS), 9, np.int64)
            fill_call(numbers, launch, feeds, slots)
            rows = torch.from_numpy(numbers)
            codes = rows[:, :-NUMBERS].reshape(launch.rows, launch.frames, 8)
            sound = decoder.advance(codes, *rows[:, -NUMBERS:].T)
            made.append((launch.pieces, sound[: len(launch.pieces)].numpy()))
        return join_sounds(feeds, made)

    chance = np.random.default_rng(seed)
    voices = [chance.integers(0, 32, (int(n), 8)).astype(np.int32) for n in range(1, 31, 5)]
    fed, heard = [0] * slots, [[] for _ in range(slots)]
    while any(count < len(voice) for count, voice in zip(fed, voices, strict=True)):
        jobs: list[CodecJob] = []
        for slot, voice in enumerate(voices):
            frames = min(int(chance.integers(0, 16)), len(voice) - fed[slot])
            if frames:
                last = fed[slot] + frames
                jobs.append(CodecJob(slot, voice[fed[slot] : last], last == len(voice)))
                fed[slot] = last
        for job, sound in zip(jobs, submit(jobs), strict=True):
            heard[job.slot].append(sound)
    for voice, sounds in zip(voices, heard, strict=True):
        whole = model.decode(torch.from_numpy(voice).long()).numpy()
        assert np.abs(np.concatenate(sounds) - whole).max() < 1e-4


def test_a_refused_job_moves_no_slot() -> None:
    stretches = Stretches(tiny_codec_config(), 2, lag_samples=9458)
    good = CodecJob(0, np.zeros((3, 8), np.int32), False)
    with pytest.raises(ValueError, match="slot 2"):
        stretches.feeds([good, CodecJob(2, good.codes, False)])
    assert stretches.feeds([good])[0].start == 0
    assert stretches.feeds([good])[0].start == 3
