"""The codec on a GPU: recorded calls of the streaming decoder, on a stream of their own.

Beside the decoder of codes it fills the gaps between that one's small kernels. Nothing here waits
for the GPU but `take`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipelines.higgs.codec.calls import NUMBERS, Launch, Piece, Shapes, fill_call, join_sounds
from pipelines.higgs.codec.fused import FusedDecoder
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.precision import keep_float32_exact
from pipelines.higgs.codec.stream import StreamingDecoder
from pipelines.higgs.codec.stretches import Feed, Stretches
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples

ROWS = (1, 2, 4, 8, 16, 32, 64)
# A step's frame, the ramp of a reply's first seconds, and endings, which take ten more to draw out.
FRAMES = (1, 2, 4, 8, 12, 16, 24, 32)
# Beyond it a call's time grows with its frames, and so do the recorded calls' working buffers.
MOST_FRAMES = 256
CALL_FRAMES = 24  # a call of its own costs what so many frames more in another do
WARM_UP_CALLS = 2  # libraries choose their algorithms before the recording


class CudaCodec:
    """See ports.Codec. `model` is moved to `device`. Full float32, see codec_precision.

    is_fused: Triton kernels and matrix products, or plain torch, which is several times slower and
        whose recorded convolutions keep tens of GiB of work space.
    """

    def __init__(
        self,
        model: CodecModel,
        slots: int,
        device: torch.device | str = "cuda",
        is_fused: bool = True,
    ) -> None:
        self._device = torch.device(device)
        keep_float32_exact(self._device)
        self._slots = slots
        self._codebooks = model.config.codebooks
        decoder = FusedDecoder if is_fused else StreamingDecoder
        self._decoder = decoder(model.to(self._device), slots)
        self._stretches = Stretches(model.config, slots, self.lag_samples)
        enough = next((index for index, rows in enumerate(ROWS) if rows >= slots), len(ROWS) - 1)
        self._shapes = Shapes(ROWS[: enough + 1], FRAMES, MOST_FRAMES, CALL_FRAMES)
        self._stream = torch.cuda.Stream(self._device)
        self._calls = self._record()

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def lag_samples(self) -> int:
        return self._decoder.layout.lag_samples

    def reset(self, slot: int) -> None:
        self._stretches.reset(slot)

    def submit(self, jobs: Sequence[CodecJob]) -> CudaSound:
        feeds = self._stretches.feeds(jobs)
        launches = self._shapes.launches([len(feed.codes) for feed in feeds])
        with torch.cuda.stream(self._stream):
            parts = [self._launch(launch, feeds) for launch in launches]
            done = torch.cuda.Event(blocking=True)  # a waiting thread leaves its core to others
            done.record(self._stream)
        return CudaSound(feeds, parts, done)

    def close(self) -> None:
        self._stream.synchronize()
        self._calls.clear()

    def _launch(self, launch: Launch, feeds: list[Feed]) -> _Part:
        call = self._calls[launch.rows, launch.frames]
        numbers = torch.empty(call.numbers.shape, dtype=torch.int64, pin_memory=True)
        fill_call(numbers.numpy(), launch, feeds, self._slots)
        call.numbers.copy_(numbers, non_blocking=True)
        call.graph.replay()
        made = call.sound[: len(launch.pieces)]
        host = torch.empty(made.shape, pin_memory=True)
        host.copy_(made, non_blocking=True)
        return _Part(launch.pieces, host)

    def _record(self) -> dict[tuple[int, int], _RecordedCall]:
        """A CUDA graph for each shape, all in one memory pool: they never run at once."""
        calls: dict[tuple[int, int], _RecordedCall] = {}
        pool = torch.cuda.graph_pool_handle()
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            for rows, frames in self._shapes.all():
                numbers = torch.zeros(
                    rows, frames * self._codebooks + NUMBERS, dtype=torch.int64, device=self._device
                )
                numbers[:, -NUMBERS] = self._slots
                for _ in range(WARM_UP_CALLS):
                    self._advance(numbers, frames)
                graph = torch.cuda.CUDAGraph()
                # Other threads go on using the GPU meanwhile.
                with torch.cuda.graph(
                    graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"
                ):
                    sound = self._advance(numbers, frames)
                calls[rows, frames] = _RecordedCall(graph, numbers, sound)
                _warm_pinned(rows, frames, numbers.shape)
        self._stream.synchronize()
        return calls

    def _advance(self, numbers: Tensor, frames: int) -> Tensor:
        codes = numbers[:, :-NUMBERS].reshape(len(numbers), frames, self._codebooks)
        slots, starts, counts, ends = numbers[:, -NUMBERS:].T.contiguous()
        return self._decoder.advance(codes, slots, starts, counts, ends)


@dataclass(frozen=True, slots=True)
class _RecordedCall:
    """numbers: int64 [rows, frames * codebooks + NUMBERS]; sound: [rows, samples], float32."""

    graph: torch.cuda.CUDAGraph
    numbers: Tensor
    sound: Tensor


@dataclass(frozen=True, slots=True)
class _Part:
    """What one call made: a row of samples for each of its pieces, in page-locked memory."""

    pieces: tuple[Piece, ...]
    samples: Tensor


@dataclass(frozen=True, slots=True)
class CudaSound:
    """See ports.Sound. What is taken is the taker's own; the page-locked memory is used again."""

    feeds: list[Feed]
    parts: list[_Part]
    done: torch.cuda.Event

    @property
    def is_ready(self) -> bool:
        return self.done.query()

    def take(self) -> list[Samples]:
        self.done.synchronize()
        return join_sounds(self.feeds, [(part.pieces, part.samples.numpy()) for part in self.parts])


def _warm_pinned(rows: int, frames: int, numbers: torch.Size) -> None:
    """Have torch keep page-locked memory of these sizes: getting it anew may wait for the GPU."""
    kept = [torch.empty(numbers, dtype=torch.int64, pin_memory=True) for _ in range(2)]
    kept += [torch.empty(rows, frames * FRAME_SAMPLES, pin_memory=True) for _ in range(2)]
    kept.clear()
