"""What the codec costs on a GPU: `python -m benchmarks.higgs.codec`.

Random weights of the published size, full float32. For each shape of call: the time of the fused
streaming decoder, of the plain torch one, and of decoding a window at once with the frames of
context that such decoding needs on both sides; all as CUDA graphs. And by how much a streamed
sound differs from one that was decoded at once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.cuda import CudaCodec
from pipelines.higgs.codec.fused import FusedDecoder
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.precision import keep_float32_exact
from pipelines.higgs.codec.stream import NEVER_FRAMES, StreamingDecoder
from pipelines.higgs.codec.weights import CodecEncoder, random_codec
from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples

SHAPES = (
    (1, 1),
    (1, 4),
    (1, 8),
    (1, 24),
    (4, 4),
    (8, 8),
    (16, 1),
    (16, 4),
    (16, 16),
    (32, 8),
    (64, 4),
)
CONTEXT_FRAMES = 22  # eleven on each side
SLOTS = 64
REPEATS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    options = parser.parse_args()
    keep_float32_exact(torch.device("cuda"))
    model = random_codec(CodecConfig()).to("cuda")
    figures: dict[str, object] = {"device": torch.cuda.get_device_name()}
    figures["difference"] = differences(model)
    figures["encode_ms"] = {seconds: encode_ms(model, seconds) for seconds in (1, 5, 10, 30)}
    figures["submit"] = submit_ms(model)
    print(json.dumps(figures, indent=1))
    figures["calls_ms"] = calls_ms(model)
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


def differences(model: CodecModel) -> dict[str, float]:
    """The largest of any sample, by how the sound was streamed."""
    chance = np.random.default_rng(0)
    found: dict[str, float] = {}
    began = time.perf_counter()
    codec = CudaCodec(model, SLOTS)
    found["recording, s"] = round(time.perf_counter() - began, 1)
    found["memory, MiB"] = torch.cuda.memory_reserved() // 2**20
    for most in (1, 6, 40):
        found[f"jobs of up to {most} frames"] = streamed(codec, model, chance, most)
    codec.close()
    return found


def streamed(codec: CudaCodec, model: CodecModel, chance: np.random.Generator, most: int) -> float:
    """Several voices, by jobs of random length, submitted ahead of what is taken."""
    voices = [chance.integers(0, 1024, (int(n), 8)).astype(np.int32) for n in (1, 5, 37, 90)]
    heard: list[list[Samples]] = [[] for _ in voices]
    fed = [0] * len(voices)
    taken = []
    while any(count < len(voice) for count, voice in zip(fed, voices, strict=True)):
        jobs: list[CodecJob] = []
        for slot, voice in enumerate(voices):
            frames = min(int(chance.integers(1, most + 1)), len(voice) - fed[slot])
            if frames:
                last = fed[slot] + frames
                jobs.append(CodecJob(slot, voice[fed[slot] : last], last == len(voice)))
                fed[slot] = last
        taken.append((jobs, codec.submit(jobs)))
    for jobs, sound in taken:
        for job, samples in zip(jobs, sound.take(), strict=True):
            heard[job.slot].append(samples)
    worst = 0.0
    for voice, sounds in zip(voices, heard, strict=True):
        whole = model.decode(torch.from_numpy(voice).long().cuda()).cpu().numpy()
        sound = np.concatenate(sounds)
        assert len(sound) == len(voice) * FRAME_SAMPLES
        worst = max(worst, float(np.abs(sound - whole).max()))
    return worst


def encode_ms(model: CodecModel, seconds: int) -> list[float]:
    """The first time, with its choice of algorithms, and the next."""
    encoder = CodecEncoder(model)
    sound = (0.1 * np.random.default_rng(1).standard_normal(seconds * CODEC_RATE_HZ)).astype("f4")
    return [round(elapsed_ms(lambda: encoder.encode(sound)), 2) for _ in range(3)]


def submit_ms(model: CodecModel) -> dict[str, float]:
    """What a submit takes of its thread, and until its sound can be taken."""
    codec = CudaCodec(model, SLOTS)
    found: dict[str, float] = {}
    for rows, frames in ((1, 4), (16, 4), (64, 8)):
        codes = np.zeros((frames, 8), np.int32)
        jobs = [CodecJob(slot, codes, False) for slot in range(rows)]
        for _ in range(5):
            codec.submit(jobs).take()
        handing, whole = [], []
        for _ in range(REPEATS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            sound = codec.submit(jobs)
            handing.append(time.perf_counter() - began)
            sound.take()
            whole.append(time.perf_counter() - began)
        found[f"{rows} of {frames} frames: submit"] = round(1e3 * statistics.median(handing), 3)
        found[f"{rows} of {frames} frames: taken"] = round(1e3 * statistics.median(whole), 3)
    codec.close()
    return found


def calls_ms(model: CodecModel) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    fused, plain = FusedDecoder(model, SLOTS), StreamingDecoder(model, SLOTS)
    print("rows x frames   fused   plain   a window at once, ms")
    for rows, frames in SHAPES:
        codes = torch.randint(0, 1024, (rows, frames, 8), device="cuda")
        slots = torch.arange(rows, device="cuda")
        starts, counts = torch.full_like(slots, 50), torch.full_like(slots, frames)
        numbers = (slots, starts, counts, torch.full_like(slots, NEVER_FRAMES))
        window = torch.randint(0, 1024, (rows, frames + CONTEXT_FRAMES, 8), device="cuda")
        times = [
            graph_ms(partial(fused.advance, codes, *numbers)),
            graph_ms(partial(plain.advance, codes, *numbers)),
            graph_ms(partial(decode_windows, model, window)),
        ]
        found[f"{rows} x {frames}"] = [round(each, 3) for each in times]
        print(f"{rows:4} x {frames:<8}" + "".join(f"{each:8.3f}" for each in times), flush=True)
    return found


@torch.inference_mode()
def decode_windows(model: CodecModel, codes: torch.Tensor) -> torch.Tensor:
    rows, frames, books = codes.shape
    features = model.fc2(model.quantizer.decode(codes.view(-1, books))).view(rows, frames, -1)
    return model.acoustic_decoder(features.transpose(1, 2))


def graph_ms(call: Callable[[], object]) -> float:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    graph.replay()
    return statistics.median(elapsed_ms(graph.replay) for _ in range(REPEATS))


def elapsed_ms(call: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
