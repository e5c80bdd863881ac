"""Find how the decoder's kernels best split their work on this GPU: what goes into `choices.py`.

One kernel's choice is varied at a time, in the whole step: kernels start while the one before them
ends, so what is best for one alone need not be best in its place. Prints the table to copy.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import torch

from benchmarks import options
from benchmarks.higgs.decode import CONTEXT, running
from benchmarks.higgs.timing import gpu_ms
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda import packing
from pipelines.higgs.cuda.choices import MAX_SPLITS, Choice, Choices, Work, choices
from pipelines.higgs.cuda.graphs import BUCKETS, capture
from pipelines.higgs.cuda.native import load_library
from pipelines.higgs.cuda.native_step import MAX_ROWS, NativeStep
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.parameters import HiggsParameters
from pipelines.higgs.rope import inverse_frequencies, rope_table
from pipelines.higgs.rows import RowBatch
from pipelines.higgs.synthetic import full_config, random_parameters

SPLITS = {
    Work.QKV: (2, 4),
    Work.ATTENTION: (1, 2, 4, 8),
    Work.OUT: (2, 4, 8),
    Work.GATE_UP: (1, 2),
    Work.DOWN: (4, 8),
    Work.HEAD: (2, 4),
}
STAGES = (3, 4, 6)
SHARING_ROWS = 16  # from so many on, inputs are worth sharing between blocks
PASSES = 2
POSITIONS = 640
LEAST_GAIN = 0.002  # of a step; below it lies the noise


class Bench:
    """A step of some rows under any choices."""

    def __init__(self, config: HiggsConfig, parameters: HiggsParameters) -> None:
        device = torch.device("cuda")
        self._config, self._parameters = config, parameters
        self._limits = packing.Limits.of(config, MAX_ROWS, POSITIONS)
        self._state = State.empty(config, slots=MAX_ROWS, positions=POSITIONS, device=device)
        self._state.keys.normal_()
        self._state.values.normal_()
        self._work = Workspace.of(config, rows=MAX_ROWS, width=self._limits.width, device=device)
        frequencies = inverse_frequencies(config.backbone)
        self._rope = rope_table(frequencies, POSITIONS, device, is_rounded=True)
        self._library = load_library(device)
        self._stream = torch.cuda.Stream()

    def step_ms(self, rows: int, chosen: Choices) -> float | None:
        """None where a choice cannot be launched."""
        packed = torch.zeros((rows, self._limits.width), dtype=torch.int32)
        batch = RowBatch.of(running(rows), self._limits.codebooks)
        packing.pack(batch, packed.numpy(), self._limits)
        work = self._work.of_rows(rows)
        work.rows.copy_(packed)
        step = NativeStep(
            self._config,
            self._parameters,
            self._state,
            self._rope,
            self._library,
            lambda _rows: chosen,
        )
        torch.cuda.synchronize()
        try:
            graph = capture(
                lambda: step.enqueue(work), self._stream, torch.cuda.graph_pool_handle()
            )
        except RuntimeError:
            return None
        with torch.cuda.stream(self._stream):
            return gpu_ms(graph.replay, repeats=8, rounds=3)


def best_choices(bench: Bench, rows: int, start: Choices) -> tuple[Choices, float]:
    """One kernel after the other, each at its best beside what was found for those before."""
    found, least = dict(start), bench.step_ms(rows, start) or float("inf")
    for work in [*Work] * PASSES:
        for choice in _possible(work, rows):
            step_ms = bench.step_ms(rows, {**found, work: choice})
            if step_ms is not None and step_ms < least * (1 - LEAST_GAIN):
                found[work], least = choice, step_ms
    return found, least


def _possible(work: Work, rows: int) -> list[Choice]:
    is_shared = rows >= SHARING_ROWS and work is not Work.ATTENTION
    return [
        Choice(splits, stages, members)
        for splits in SPLITS[work]
        for stages in STAGES
        for members in ((1, 2) if is_shared else (1,))
        if splits * members <= MAX_SPLITS
    ]


def main() -> None:
    made = options.parser(__doc__)
    made.add_argument("--rows", type=int, nargs="*", help="the steps to tune for")
    chosen = made.parse_args()
    config = HiggsConfig.of(full_config())
    bench = Bench(config, random_parameters(config, "cuda", torch.bfloat16, seed=1))
    wanted = chosen.rows or [bucket for bucket in BUCKETS if bucket <= MAX_ROWS]
    table: dict[int, dict[str, object]] = {}
    for rows in wanted:
        before = bench.step_ms(rows, choices(rows))
        found, step_ms = best_choices(bench, rows, choices(rows))
        named = {work.name: astuple(found[work]) for work in Work}
        table[rows] = {"step_ms": step_ms, "before_ms": before, **named}
        print(f"{rows} rows behind {CONTEXT}: {json.dumps(table[rows])}", flush=True)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
