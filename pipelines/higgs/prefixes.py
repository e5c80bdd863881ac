"""The caches of preambles that were fed before, so that a voice's reference is computed once."""

from __future__ import annotations

from collections import OrderedDict

from pipelines.higgs.ports import Decoder

MIN_PREFIX_ROWS = 16  # below, feeding costs no more than copying


class PrefixStore:
    """Keeps preambles in slots of the decoder that no stream uses; the oldest used makes room.

    Keys stand for every token and code of a preamble, so equal keys have equal caches.
    """

    def __init__(self, decoder: Decoder, slots: range) -> None:
        self._decoder = decoder
        self._free = list(slots)
        self._kept: OrderedDict[str, int] = OrderedDict()

    def restore(self, key: str, length: int, target: int) -> bool:
        """Copy a preamble of `length` rows into a stream's slot; False if it is not kept."""
        source = self._kept.get(key)
        if source is None:
            return False
        self._kept.move_to_end(key)
        self._decoder.copy(source, target, length)
        return True

    def keep(self, key: str, length: int, source: int) -> None:
        """Keep the first `length` rows of a stream's slot, all of which have been launched."""
        if length < MIN_PREFIX_ROWS or key in self._kept:
            return
        if self._free:
            slot = self._free.pop()
        elif self._kept:
            _, slot = self._kept.popitem(last=False)
        else:
            return
        self._decoder.copy(source, slot, length)
        self._kept[key] = slot
