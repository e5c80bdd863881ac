"""The two devices that the engine drives: what draws codes, and what makes them sound.

Both exist in plain torch, for any machine, and on CUDA graphs. One thread uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.higgs.rows import Codes, RowBatch
from pipelines.types import Samples

INVALID_CODE = -1  # drawn where the logits were not finite


class Decoder(Protocol):
    """The backbone with its caches, head and sampler.

    A slot is a stretch of key-value cache. `slots` of them serve streams or keep prefixes, as the
    engine likes.
    """

    @property
    def slots(self) -> int: ...

    @property
    def positions(self) -> int:
        """How many rows a slot's sequence may have."""
        ...

    @property
    def row_limit(self) -> int:
        """How many rows one step takes."""
        ...

    def launch(self, rows: RowBatch) -> None:
        """Begin a step; on a GPU it returns before the step has run.

        Rows of one slot stand in order of their positions. Every drawn row is also kept as its
        slot's last one. At most two steps may be launched and not collected.
        """
        ...

    def collect(self) -> Codes | None:
        """The codes drawn by the oldest step that was not collected; waits until it has run.

        int32 [R, codebooks] in the order of its rows; rows that drew nothing hold anything. All
        codes of a row are INVALID_CODE where the logits were not finite. None: there is no such
        step.
        """
        ...

    def copy(self, source: int, target: int, positions: int) -> None:
        """Copy the cache of the first `positions` rows of one slot to another, in launch order."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CodecJob:
    """Frames to be heard.

    codes: int32 [frames, codebooks], each below the codec's codebook size, following on those of
        the slot's last job.
    ends: the last frames of this stretch of sound; all of its samples are due.
    """

    slot: int
    codes: Codes
    ends: bool


class Sound(Protocol):
    """Samples on their way from a device."""

    @property
    def is_ready(self) -> bool: ...

    def take(self) -> list[Samples]:
        """One array a job: float32 [n] at 24 kHz; waits until they are there."""
        ...


class Codec(Protocol):
    """Codes to sound, exactly as if all of a stretch had been decoded at once.

    Each job yields what its frames make final: of n frames so far, n * FRAME_SAMPLES - lag_samples
    samples are out, or all of them after a job that ends.
    """

    @property
    def slots(self) -> int: ...

    @property
    def lag_samples(self) -> int:
        """How many samples at the end still depend on frames to come."""
        ...

    def reset(self, slot: int) -> None:
        """The slot's next job begins a new stretch of sound, with silence before it."""
        ...

    def submit(self, jobs: Sequence[CodecJob]) -> Sound:
        """At most one job a slot. A job may hold no frames if it ends."""
        ...

    def close(self) -> None: ...
