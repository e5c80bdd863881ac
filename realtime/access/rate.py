"""How fast a client may go: nobody is refused, whoever is too fast is read more slowly."""

from __future__ import annotations


class TokenBucket:
    """Tokens come at `per_second`, up to `burst` of them. Whoever takes one too many owes it.

    A token bucket as in RFC 2697, with debt instead of loss: the wait that `take` returns is what
    slows its caller down, and one caller cannot owe more than it has taken.
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_ms = per_second / 1000
        self._burst = burst
        self._tokens = burst
        self._at_ms: float | None = None

    def take(self, now_ms: float) -> float:
        """Take one token; returns how long to wait for it, in ms. `now_ms` never goes back."""
        if self._at_ms is not None:
            earned = (now_ms - self._at_ms) * self._per_ms
            self._tokens = min(self._burst, self._tokens + earned)
        self._at_ms = now_ms
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_ms)
