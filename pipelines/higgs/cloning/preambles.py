"""References as what a decoder is fed of them, made once for all who speak in that voice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable

from pipelines.higgs.cloning.cache import CacheLimits, ReferenceCache
from pipelines.higgs.cloning.reference import Reference, ReferenceEncoder, ReferenceRequest
from pipelines.higgs.reply.sequence import check_preamble
from pipelines.higgs.rows import Codes
from pipelines.higgs.text.prompt import Preamble

ITEM_BYTES = 400  # a tuple of eight numbers, as Python keeps them
# Half a minute of a voice is some 760 items: the references of a day, and no memory to speak of.
PREAMBLE_LIMITS = CacheLimits(items=256, total_bytes=64 * 2**20)


class ReferencePreambles:
    """Any thread may call it; it works as long as a reference takes to be encoded.

    compose: codes int32 [frames, codebooks] and transcript to a preamble; may raise
        ReferenceRefused. positions: how many a slot has.
    """

    def __init__(
        self,
        encoder: ReferenceEncoder,
        compose: Callable[[Codes, str | None], Preamble],
        positions: int,
        limits: CacheLimits = PREAMBLE_LIMITS,
    ) -> None:
        self._encoder = encoder
        self._compose = compose
        self._positions = positions
        self._kept = ReferenceCache[Hashable, Preamble](
            limits, lambda preamble: len(preamble.items) * ITEM_BYTES
        )

    def of(self, request: ReferenceRequest) -> Preamble:
        """Raises ReferenceRefused, and SequenceTooLong where it leaves no room for speech."""
        reference = self._encoder.refer(request)
        codes = hashlib.blake2b(reference.codes.tobytes(), digest_size=16).digest()
        key = (codes, reference.codes.shape, reference.transcript)
        return self._kept.get(key, lambda: self._made(reference))

    def _made(self, reference: Reference) -> Preamble:
        preamble = self._compose(reference.codes, reference.transcript)
        check_preamble(len(preamble.items), self._positions)
        return preamble
