"""`ports.Decoder` on an NVIDIA GPU.

A step is one upload of packed rows, one CUDA graph, one download of codes and an event, all on one
stream: launching never waits for the device, and collecting waits for its own step's event alone.
The codes a slot drew stay on the device, so a step may be launched before the last one's are read.
"""

from __future__ import annotations

import importlib.util
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda import packing
from pipelines.higgs.cuda.graphs import buckets, capture
from pipelines.higgs.cuda.steps import steps
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.model.decoder import MAX_STEPS_UNDER_WAY
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import inverse_frequencies, rope_table
from pipelines.higgs.row_faults import RowLimits, StepError, check
from pipelines.higgs.rows import Codes, RowBatch


class UnsupportedModelError(ValueError):
    """The model or the device is not one that the kernels can serve; the message says why."""


@dataclass(slots=True)
class _Exchange:
    """What a step under way needs of the host's memory, pinned so that copies are asynchronous."""

    rows: Tensor
    codes: Tensor
    done: torch.cuda.Event

    @classmethod
    def of(cls, rows: int, codebooks: int) -> _Exchange:
        def pinned(columns: int) -> Tensor:
            return torch.zeros((rows, columns), dtype=torch.int32, pin_memory=True)

        return cls(pinned(packing.width(codebooks)), pinned(codebooks), torch.cuda.Event())

    @property
    def packed(self) -> npt.NDArray[np.int32]:
        return self.rows.numpy()


class CudaDecoder:
    """The parameters must be bfloat16 and lie on `device`. One thread uses it.

    is_native: with the project's own kernels, where nvcc can build them; else Triton and cuBLAS.
    Raises UnsupportedModelError at once where it cannot serve the model.
    """

    def __init__(
        self,
        config: HiggsConfig,
        parameters: HiggsParameters,
        *,
        slots: int,
        positions: int,
        row_limit: int,
        device: torch.device | str,
        is_native: bool = True,
    ) -> None:
        device = torch.device(device)
        _check(config, parameters, device)
        self._slots, self._positions, self._row_limit = slots, positions, row_limit
        self._limits = RowLimits.of(config, slots, positions)
        codebooks = config.audio.codebooks
        self._buckets = buckets(row_limit)
        most = self._buckets[-1]
        with torch.cuda.device(device), torch.no_grad():
            self._state = State.empty(config, slots=slots, positions=positions, device=device)
            self._work = Workspace.of(
                config, rows=most, width=packing.width(codebooks), device=device
            )
            frequencies = inverse_frequencies(config.backbone)
            rope = rope_table(frequencies, positions, device, is_rounded=True)
            # The graphs hold addresses of what the steps own.
            self._steps, self._is_native = steps(
                config, parameters, self._state, rope, self._buckets, is_native=is_native
            )
            self._stream = torch.cuda.Stream(device)
            self._idle = [_Exchange.of(most, codebooks) for _ in range(MAX_STEPS_UNDER_WAY)]
            self._graphs = self._capture()
        self._under_way: deque[tuple[_Exchange, int]] = deque()
        self._is_closed = False

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def positions(self) -> int:
        return self._positions

    @property
    def row_limit(self) -> int:
        return self._row_limit

    @property
    def is_native(self) -> bool:
        """Whether steps of running streams are of the project's own kernels."""
        return self._is_native

    def poison(self) -> None:
        """Fill the caches with what is no number, for tests: nothing unwritten may be read."""
        self._state.keys.fill_(torch.nan)
        self._state.values.fill_(torch.nan)
        torch.cuda.synchronize()

    @property
    def logits(self) -> Tensor:
        """Of the newest step's rows, bfloat16 [R, codebooks * codebook_size], for tests.

        Only after `collect`; rows beyond the step's hold anything."""
        return self._work.logits

    def launch(self, rows: RowBatch) -> None:
        """See `ports.Decoder.launch`. Raises StepError."""
        self._check_open()
        if not self._idle:
            raise StepError(f"{MAX_STEPS_UNDER_WAY} steps are launched and not collected")
        count = len(rows)
        if not 1 <= count <= self._row_limit:
            raise StepError(f"a step of {count} rows, but one takes 1 to {self._row_limit}")
        bucket = next(bucket for bucket in self._buckets if bucket >= count)
        check(rows, self._limits)
        exchange = self._idle[-1]
        packing.pack(rows, exchange.packed[:bucket])
        with torch.cuda.stream(self._stream):
            self._work.rows[:bucket].copy_(exchange.rows[:bucket], non_blocking=True)
            self._graphs[bucket].replay()
            exchange.codes[:count].copy_(self._work.drawn[:count], non_blocking=True)
            exchange.done.record(self._stream)
        self._idle.pop()  # once all of it is under way: what fails half-way loses nothing
        self._under_way.append((exchange, count))

    def collect(self) -> Codes | None:
        """See `ports.Decoder.collect`. Raises StepError."""
        self._check_open()
        if not self._under_way:
            return None
        exchange, count = self._under_way.popleft()
        exchange.done.synchronize()
        codes = exchange.codes[:count].numpy().copy()
        self._idle.append(exchange)
        return codes

    def copy(self, source: int, target: int, positions: int) -> None:
        """See `ports.Decoder.copy`. Raises StepError."""
        self._check_open()
        for slot in (source, target):
            if not 0 <= slot < self._slots:
                raise StepError(f"copy: slot {slot} is not one of {self._slots}")
        if not 0 <= positions <= self._positions:
            raise StepError(f"copy: {positions} positions, but a slot has {self._positions}")
        with torch.cuda.stream(self._stream), torch.no_grad():
            self._state.copy(source, target, positions)

    def close(self) -> None:
        """Free the caches; what was not collected is lost."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stream.synchronize()
        self._graphs.clear()
        self._under_way.clear()
        self._idle.clear()
        del self._state, self._work, self._steps

    def _check_open(self) -> None:
        if self._is_closed:
            raise StepError("the decoder is closed")

    def _capture(self) -> dict[int, torch.cuda.CUDAGraph]:
        """A graph for each bucket, over rows that touch no slot."""
        packing.fill(self._idle[0].packed)
        self._work.rows.copy_(self._idle[0].rows)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        graphs: dict[int, torch.cuda.CUDAGraph] = {}
        for bucket, step in reversed(self._steps.items()):
            work = self._work.of_rows(bucket)
            graphs[bucket] = capture(lambda s=step, w=work: s.enqueue(w), self._stream, pool)
        torch.cuda.synchronize()
        return graphs


def _check(config: HiggsConfig, parameters: HiggsParameters, device: torch.device) -> None:
    backbone = config.backbone
    faults = {
        f"the device is {device}, not a CUDA device": device.type != "cuda",
        "triton is not installed; torch's CUDA builds for Linux bring it": (
            importlib.util.find_spec("triton") is None
        ),
        f"the parameters are {parameters.norm.dtype}, not torch.bfloat16": (
            parameters.norm.dtype != torch.bfloat16
        ),
        f"head_dim is {backbone.head_dim}, not 128": backbone.head_dim != 128,
        f"hidden_size is {backbone.hidden_size}, not a multiple of 128": (
            backbone.hidden_size % 128 != 0
        ),
        f"intermediate_size is {backbone.intermediate_size}, not a multiple of 128": (
            backbone.intermediate_size % 128 != 0
        ),
        f"{backbone.query_heads // backbone.kv_heads} queries share a key head, at most 4 may": (
            backbone.query_heads > 4 * backbone.kv_heads
        ),
    }
    for fault, is_at_fault in faults.items():
        if is_at_fault:
            raise UnsupportedModelError(f"no decoder on CUDA graphs: {fault}")
