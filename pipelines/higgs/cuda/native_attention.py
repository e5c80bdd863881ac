"""Attention by the project's own kernel; see native/attention.cuh."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import torch
from torch import Tensor

from pipelines.higgs.cuda.choices import Choices, Work, choices
from pipelines.higgs.cuda.native import Task, check


class NativeAttention:
    """Does what `attention.Attention` does."""

    def __init__(self, library: ctypes.CDLL, choose: Callable[[int], Choices] = choices) -> None:
        self._library = library
        self._choose = choose

    def attend(
        self, queries: Tensor, cache: tuple[Tensor, Tensor], rows: Tensor, attended: Tensor
    ) -> None:
        """See `attention.Attention.attend`."""
        keys, values = cache
        _, key_heads, positions, head_dim = keys.shape
        count = len(queries)
        choice = self._choose(count)[Work.ATTENTION]
        task = Task(
            queries=queries.data_ptr(),
            keys=keys.data_ptr(),
            values=values.data_ptr(),
            attended=attended.data_ptr(),
            packed=rows.data_ptr(),
            packed_width=rows.shape[1],
            query_heads=queries.shape[1] // head_dim,
            key_heads=key_heads,
            positions=positions,
            scale=math.log2(math.e) / math.sqrt(head_dim),
        )
        stream = torch.cuda.current_stream().cuda_stream
        error = self._library.parley_attend(task, count, choice.splits, choice.stages, stream)
        check(error, "attention")
