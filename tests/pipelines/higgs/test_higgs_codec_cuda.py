"""On a GPU, recorded calls give the sound of decoding at once, whatever is submitted ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pipelines.higgs.codec.config import tiny_codec_config
from pipelines.higgs.codec.weights import CodecEncoder, random_codec
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples

pytestmark = pytest.mark.gpu

SLOTS = 6
MODEL = random_codec(tiny_codec_config(), seed=5)


@pytest.fixture(scope="module", params=[True, False], ids=["fused", "plain"])
def codec(request: pytest.FixtureRequest) -> Any:
    from pipelines.higgs.codec.cuda import CudaCodec  # needs triton

    model = random_codec(tiny_codec_config(), seed=5)
    found = CudaCodec(model, SLOTS, is_fused=request.param)
    yield found
    found.close()


def at_once(codes: np.ndarray) -> Samples:
    return MODEL.decode(torch.from_numpy(codes).long()).numpy()


@pytest.mark.parametrize("most", [1, 5, 50])
def test_jobs_submitted_ahead(codec: Any, most: int) -> None:
    chance = np.random.default_rng(most)
    lengths = (1, 2, 9, 12, 40, 75)
    voices = [chance.integers(0, 32, (frames, 8)).astype(np.int32) for frames in lengths]
    heard: list[list[Samples]] = [[] for _ in voices]
    fed = [0] * len(voices)
    ahead = []
    while any(count < len(voice) for count, voice in zip(fed, voices, strict=True)):
        jobs: list[CodecJob] = []
        for slot, voice in enumerate(voices):
            frames = min(int(chance.integers(0, most + 1)), len(voice) - fed[slot])
            if frames:
                last = fed[slot] + frames
                jobs.append(CodecJob(slot, voice[fed[slot] : last], last == len(voice)))
                fed[slot] = last
        ahead.append((jobs, codec.submit(jobs)))
    for jobs, sound in ahead:
        for job, samples in zip(jobs, sound.take(), strict=True):
            heard[job.slot].append(samples)
    for voice, sounds in zip(voices, heard, strict=True):
        sound = np.concatenate(sounds)
        assert len(sound) == len(voice) * FRAME_SAMPLES
        assert np.abs(sound - at_once(voice)).max() < 1e-4


def test_what_was_taken_stays_as_it_is(codec: Any) -> None:
    codes = np.random.default_rng(0).integers(0, 32, (20, 8)).astype(np.int32)
    (first,) = codec.submit([CodecJob(0, codes, True)]).take()
    before = first.copy()
    for _ in range(20):
        codec.submit([CodecJob(0, 31 - codes, True)]).take()
    assert np.array_equal(first, before)


def test_a_reset_begins_anew(codec: Any) -> None:
    codes = np.random.default_rng(1).integers(0, 32, (15, 8)).astype(np.int32)
    codec.submit([CodecJob(2, codes, False)])
    codec.reset(2)
    sound = codec.submit([CodecJob(2, codes, True)])
    (samples,) = sound.take()
    assert sound.is_ready
    assert np.abs(samples - at_once(codes)).max() < 1e-4


def test_nothing_at_all(codec: Any) -> None:
    assert codec.submit([]).take() == []
    (nothing,) = codec.submit([CodecJob(0, np.zeros((0, 8), np.int32), True)]).take()
    assert len(nothing) == 0


def test_codes_are_those_of_the_cpu() -> None:
    sound = (0.1 * np.random.default_rng(2).standard_normal(50_000)).astype(np.float32)
    codes = CodecEncoder(MODEL).encode(sound)
    on_gpu = CodecEncoder(random_codec(tiny_codec_config(), seed=5).to("cuda")).encode(sound)
    assert (codes != on_gpu).mean() < 0.05  # where two codes are equally near, within float32
