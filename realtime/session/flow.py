"""The client's audio as a sign of life: from a dead network nothing comes, and nothing says so."""

from __future__ import annotations

import math

# Longer than any client's pieces and their jitter; shorter, and one late piece is a death.
GAP_MS = 1000
# A microphone that was open for so long is missed when it falls silent.
FLOWING_MS = 1000


class Flow:
    """When the present stream of audio began and its last piece came; and the last sign of any."""

    __slots__ = ("_last_ms", "_sign_ms", "_since_ms")

    def __init__(self) -> None:
        self._since_ms = self._last_ms = self._sign_ms = -math.inf

    def hear(self, now_ms: float) -> None:
        """Some audio came."""
        if now_ms - self._last_ms >= GAP_MS:
            self._since_ms = now_ms
        self._last_ms = self._sign_ms = now_ms

    def notice(self, now_ms: float) -> None:
        """Something else came from the client."""
        self._sign_ms = now_ms

    def last_sign_ms(self, now_ms: float) -> float:
        """Until when a client that is gone now was surely there.

        The present, unless its audio flowed and then stopped. Whoever sends none while it listens
        gives no such sign.
        """
        has_stopped = now_ms - self._last_ms >= GAP_MS
        has_flowed = self._last_ms - self._since_ms >= FLOWING_MS
        return self._sign_ms if has_stopped and has_flowed else now_ms
