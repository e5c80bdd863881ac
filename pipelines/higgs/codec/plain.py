"""The codec in plain torch, for any machine: a frame of a slot at a time.

So each sample comes of the same arithmetic however its frames were cut into jobs and whoever else
was served: outputs are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.precision import keep_float32_exact
from pipelines.higgs.codec.stream import StreamingDecoder
from pipelines.higgs.codec.stretches import Feed, Stretches
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples


class TorchCodec:
    """See ports.Codec. `model` is moved to `device`."""

    def __init__(self, model: CodecModel, slots: int, device: torch.device | str = "cpu") -> None:
        self._device = torch.device(device)
        keep_float32_exact(self._device)
        self._slots = slots
        self._decoder = StreamingDecoder(model.to(self._device), slots)
        self._stretches = Stretches(model.config, slots, self.lag_samples)

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def lag_samples(self) -> int:
        return self._decoder.layout.lag_samples

    def reset(self, slot: int) -> None:
        self._stretches.reset(slot)

    def submit(self, jobs: Sequence[CodecJob]) -> ReadySound:
        return ReadySound([self._sound(feed) for feed in self._stretches.feeds(jobs)])

    def close(self) -> None:
        """There is nothing to give back."""

    def _sound(self, feed: Feed) -> Samples:
        frames = [self._frame(feed, index) for index in range(len(feed.codes))]
        sound = np.concatenate(frames) if frames else np.zeros(0, np.float32)
        return sound[feed.skip : feed.skip + feed.due].copy()

    def _frame(self, feed: Feed, index: int) -> Samples:
        codes = torch.from_numpy(feed.codes[index].astype(np.int64))[None, None]
        numbers = torch.tensor([[feed.slot], [feed.start + index], [1], [feed.end]])
        sound = self._decoder.advance(codes.to(self._device), *numbers.to(self._device))
        return sound[0].cpu().numpy()


@dataclass(frozen=True, slots=True)
class ReadySound:
    """Sound that was there before anybody asked."""

    sounds: list[Samples]

    @property
    def is_ready(self) -> bool:
        return True

    def take(self) -> list[Samples]:
        return self.sounds
