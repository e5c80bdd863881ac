"""Which form of a step serves which number of rows."""

from __future__ import annotations

import logging
from typing import Protocol

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda.native import NativeBuildError, load_library
from pipelines.higgs.cuda.workspace import State, Workspace
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import RopeTable

logger = logging.getLogger(__name__)


class Step(Protocol):
    def enqueue(self, work: Workspace) -> None:
        """Put a step's kernels on the current stream: packed rows in, drawn codes out."""
        ...


def steps(
    config: HiggsConfig,
    parameters: HiggsParameters,
    state: State,
    rope: RopeTable,
    buckets: tuple[int, ...],
    *,
    is_native: bool,
) -> tuple[dict[int, Step], bool]:
    """A step for each bucket, and whether any is of the project's own kernels.

    is_native: use those where they can be built.
    """
    # Triton comes with a GPU's torch only; this module can be imported without it.
    from pipelines.higgs.cuda.attention import Attention
    from pipelines.higgs.cuda.library_step import LibraryStep
    from pipelines.higgs.cuda.native_attention import NativeAttention
    from pipelines.higgs.cuda.native_step import MAX_ROWS, NativeStep

    device = state.keys.device
    if is_native:
        try:
            library = load_library(device)
        except NativeBuildError as error:
            logger.warning("steps of Triton and cuBLAS, which are slower, since %s", error)
        else:
            few = NativeStep(config, parameters, state, rope, library)
            many = LibraryStep(config, parameters, state, rope, NativeAttention(library))
            made: dict[int, Step] = {
                bucket: few if bucket <= MAX_ROWS else many for bucket in buckets
            }
            return made, True
    attention = Attention(
        row_limit=buckets[-1],
        query_heads=config.backbone.query_heads,
        head_dim=config.backbone.head_dim,
        device=device,
    )
    step = LibraryStep(config, parameters, state, rope, attention)
    return dict.fromkeys(buckets, step), False
