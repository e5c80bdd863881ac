"""Find how the decoder's kernels best split their work on this GPU: the table choices.json.

One kernel's choice is varied at a time, in the whole step: kernels start while the one before them
ends, so what is best for one alone need not be best in its place. `--write` replaces the table.
"""

from __future__ import annotations

import json
from dataclasses import astuple

import torch

from benchmarks import options
from benchmarks.higgs.decode import running
from benchmarks.higgs.timing import gpu_ms
from benchmarks.report import print_table, write_json
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda import packing
from pipelines.higgs.cuda.choices import MAX_SPLITS, TABLE, Choice, Choices, Work, choices
from pipelines.higgs.cuda.graphs import capture
from pipelines.higgs.cuda.native import load_library
from pipelines.higgs.cuda.native_step import MAX_ROWS, NativeStep
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import inverse_frequencies, rope_table
from pipelines.higgs.rows import RowBatch
from pipelines.higgs.synthetic.models import full_config, random_parameters

ROWS = (1, 4, 8, 16, 32, 64)
POSSIBLE = {
    Work.QKV: ((2, 4, 8), (3, 4, 5, 6)),
    Work.ATTENTION: ((1, 2, 4, MAX_SPLITS), (2, 3, 4)),
    Work.OUT: ((2, 4, 8), (3, 4, 5, 6)),
    Work.GATE_UP: ((1, 2), (3, 4, 5, 6)),
    Work.DOWN: ((4, 8), (3, 4, 5, 6)),
    Work.HEAD: ((2, 4), (3, 6)),
}
PASSES = 2  # what is best for one may change with what was found for the others
POSITIONS = 640
LEAST_GAIN = 0.002  # of a step; below it lies the noise


class Bench:
    """A step of some rows under any choices."""

    def __init__(self, config: HiggsConfig, parameters: HiggsParameters) -> None:
        device = torch.device("cuda")
        self._config, self._parameters = config, parameters
        self._codebooks = config.audio.codebooks
        self._width = packing.width(self._codebooks)
        self._state = State.empty(config, slots=MAX_ROWS, positions=POSITIONS, device=device)
        self._state.keys.normal_()
        self._state.values.normal_()
        self._work = Workspace.of(config, rows=MAX_ROWS, width=self._width, device=device)
        frequencies = inverse_frequencies(config.backbone)
        self._rope = rope_table(frequencies, POSITIONS, device, is_rounded=True)
        self._library = load_library(device)
        self._stream = torch.cuda.Stream()

    def step_ms(self, rows: int, chosen: Choices) -> float:
        """Infinite where a choice cannot be launched."""
        packed = torch.zeros((rows, self._width), dtype=torch.int32)
        batch = RowBatch.of(running(rows), self._codebooks)
        packing.pack(batch, packed.numpy())
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
            return float("inf")
        with torch.cuda.stream(self._stream):
            return gpu_ms(graph.replay, repeats=8, rounds=3)


def best_choices(bench: Bench, rows: int) -> tuple[Choices, float]:
    """One kernel after the other, each at its best beside what was found for the others."""
    found = dict(choices(rows))
    least = bench.step_ms(rows, found)
    for work in [*Work] * PASSES:
        splits_of, stages_of = POSSIBLE[work]
        for choice in [Choice(splits, stages) for splits in splits_of for stages in stages_of]:
            step_ms = bench.step_ms(rows, {**found, work: choice})
            if step_ms < least * (1 - LEAST_GAIN):
                found[work], least = choice, step_ms
    return found, least


def main() -> None:
    made = options.parser(__doc__)
    made.add_argument("--rows", type=int, nargs="*", default=ROWS, help="the steps to tune for")
    made.add_argument("--write", action="store_true", help="replace the table")
    chosen = made.parse_args()
    config = HiggsConfig.of(full_config())
    bench = Bench(config, random_parameters(config, "cuda", torch.bfloat16, seed=1))
    table: dict[str, dict[str, tuple[int, ...]]] = {}
    times: dict[str, float] = {}
    for rows in chosen.rows:
        found, times[str(rows)] = best_choices(bench, rows)
        table[str(rows)] = {work.name: astuple(found[work]) for work in Work}
    print_table(
        ("rows", "step ms", *(work.name for work in Work)),
        [(rows, times[rows], *table[rows].values()) for rows in table],
    )
    if chosen.write:
        lines = [f' "{rows}": {json.dumps(of_rows)}' for rows, of_rows in table.items()]
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    write_json("higgs_tuning", {"choices": table, "step_ms": times}, chosen.json)


if __name__ == "__main__":
    main()
