"""What a step of the decoder costs on a GPU, against what the memory allows.

The floor of a step is the time in which the device can read the weights and the streams' keys and
values once. Weights are random: only speed is measured.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import options
from benchmarks.higgs.timing import read_bandwidth
from benchmarks.report import print_table, write_json
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda.decoder import CudaDecoder
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.rows import Row, RowBatch
from pipelines.higgs.synthetic.models import full_config, random_parameters

CONTEXT = 500  # rows before the measured one: 20 s of a reply
BATCHES = (1, 2, 4, 8, 16, 32, 64)
PROMPT_ROWS = (32, 112, 240)  # beside 16 running streams
STEPS = 100
PROFILED = (1, 16, 64)
FRAME_MS = 40.0


def main() -> None:
    made = options.parser(__doc__)
    made.add_argument("--library", action="store_true", help="without the project's own kernels")
    chosen = made.parse_args()
    config = HiggsConfig.of(full_config())
    bandwidth = read_bandwidth()
    print(f"{torch.cuda.get_device_name()}: reads {bandwidth / 1e12:.2f} TB/s")
    parameters = random_parameters(config, "cuda", torch.bfloat16, seed=1)
    begun = time.perf_counter()
    decoder = CudaDecoder(
        config,
        parameters,
        slots=80,
        positions=1024,
        row_limit=256,
        device="cuda",
        is_native=not chosen.library,
    )
    opening_s = time.perf_counter() - begun
    print(f"opened in {opening_s:.1f} s, native kernels: {decoder.is_native}")
    _fill(decoder)
    rows = [_measured(decoder, config, parameters, bandwidth, batch) for batch in BATCHES]
    print_table(
        ("streams", "floor ms", "step ms", "ratio", "alone ms", "host ms", "real time"),
        [
            (
                row["streams"],
                row["floor_ms"],
                row["step_ms"],
                row["ratio"],
                row["alone_ms"],
                row["host_ms"],
                row["times_real_time"],
            )
            for row in rows
        ],
    )
    mixed = [_mixed(decoder, prompt_rows) for prompt_rows in PROMPT_ROWS]
    print_table(
        ("prompt rows beside 16 streams", "step ms"),
        [(row["prompt_rows"], row["step_ms"]) for row in mixed],
    )
    kernels = {batch: _kernels(decoder, batch) for batch in PROFILED}
    for batch, of_batch in kernels.items():
        print_table(
            (f"kernel, {batch} streams", "calls", "us a step"),
            [(kernel["name"], kernel["calls"], kernel["us"]) for kernel in of_batch],
        )
    result: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "read_bytes_per_s": bandwidth,
        "is_native": decoder.is_native,
        "opening_s": opening_s,
        "context": CONTEXT,
        "steps": rows,
        "mixed": mixed,
        "kernels": kernels,
    }
    decoder.close()
    write_json("higgs_decode", result, chosen.json)


def floor_bytes(config: HiggsConfig, parameters: HiggsParameters, streams: int) -> int:
    """What a step must read: every weight, and the keys and values of CONTEXT rows a stream."""
    layers = [(layer.qkv, layer.o, layer.gate_up, layer.down) for layer in parameters.layers]
    weights = [weight for of_layer in layers for weight in of_layer]
    weights.append(parameters.audio_head)
    body = config.backbone
    of_row = body.layers * body.kv_heads * body.head_dim * 2 * 2  # keys and values of two bytes
    return sum(weight.numel() * 2 for weight in weights) + streams * CONTEXT * of_row


def running(streams: int) -> list[Row]:
    """Streams that go on from what they drew, each in its slot behind CONTEXT rows."""
    return [Row(slot, CONTEXT, ramp=9, seed=slot, draw=1) for slot in range(streams)]


def _fill(decoder: CudaDecoder) -> None:
    """Prompts of CONTEXT tokens in all slots that are measured."""
    rows = [
        Row(slot, position, token=(slot * 31 + position) % 1000)
        for slot in range(max(BATCHES))
        for position in range(CONTEXT)
    ]
    for start in range(0, len(rows), decoder.row_limit):
        decoder.launch(RowBatch.of(rows[start : start + decoder.row_limit], 8))
        decoder.collect()


def _measured(
    decoder: CudaDecoder,
    config: HiggsConfig,
    parameters: HiggsParameters,
    bandwidth: float,
    streams: int,
) -> dict[str, Any]:
    batch = RowBatch.of(running(streams), config.audio.codebooks)
    step_ms, host_ms = _pipelined_ms(decoder, batch)
    floor_ms = floor_bytes(config, parameters, streams) / bandwidth * 1e3
    return {
        "streams": streams,
        "floor_ms": floor_ms,
        "step_ms": step_ms,
        "ratio": step_ms / floor_ms,
        "alone_ms": _alone_ms(decoder, batch),
        "host_ms": host_ms,
        "times_real_time": streams * FRAME_MS / step_ms,
    }


def _pipelined_ms(decoder: CudaDecoder, batch: RowBatch) -> tuple[float, float]:
    """Of a step where the next is always launched before the last is collected: all of it, and
    what launching takes of the host."""
    launching = 0.0
    for _ in range(5):
        decoder.launch(batch)
        decoder.collect()
    decoder.launch(batch)
    begun = time.perf_counter()
    for _ in range(STEPS):
        before = time.perf_counter()
        decoder.launch(batch)
        launching += time.perf_counter() - before
        decoder.collect()
    elapsed = time.perf_counter() - begun
    decoder.collect()
    return elapsed / STEPS * 1e3, launching / STEPS * 1e3


def _alone_ms(decoder: CudaDecoder, batch: RowBatch) -> float:
    """From before a launch to its codes in the host's hands, nothing else under way."""
    begun = time.perf_counter()
    for _ in range(STEPS):
        decoder.launch(batch)
        decoder.collect()
    return (time.perf_counter() - begun) / STEPS * 1e3


def _mixed(decoder: CudaDecoder, prompt_rows: int) -> dict[str, Any]:
    slot = max(BATCHES) + 1
    prompt = [Row(slot, position, token=position) for position in range(prompt_rows)]
    step_ms, _ = _pipelined_ms(decoder, RowBatch.of([*running(16), *prompt], 8))
    return {"prompt_rows": prompt_rows, "step_ms": step_ms}


def _kernels(decoder: CudaDecoder, streams: int) -> list[dict[str, Any]]:
    """By name; a kernel that starts early counts from its start, so the sum exceeds the step."""
    batch, steps = RowBatch.of(running(streams), 8), 5
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(steps):
            decoder.launch(batch)
            decoder.collect()
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for event in profiled.events() or ():
        if event.device_type.name == "CUDA":
            name = event.name[:70]
            times[name] += event.device_time
            calls[name] += 1
    return [
        {"name": name, "calls": calls[name] / steps, "us": times[name] / steps}
        for name in sorted(times, key=lambda name: -times[name])
    ]


if __name__ == "__main__":
    main()
