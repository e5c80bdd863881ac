"""From positions in spoken text back to positions in display text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Span:
    spoken_start: int
    spoken_end: int
    display_start: int
    display_end: int
    covers_to: int  # display_end, and what follows it that cannot be spoken


class Positions:
    """Remembers, chunk by chunk, which display characters the pushed characters stand for."""

    def __init__(self) -> None:
        self._spans: list[_Span] = []
        self._display_end = 0

    def add(self, spoken_chars: int, display_end: int) -> None:
        """The next `spoken_chars` characters, at least 1, cover the display up to `display_end`."""
        start = self._spans[-1].spoken_end if self._spans else 0
        span = _Span(start, start + spoken_chars, self._display_end, display_end, display_end)
        self._spans.append(span)
        self._display_end = display_end

    def skip(self, display_end: int) -> None:
        """The display up to `display_end` cannot be spoken: it goes with what came before it."""
        if self._spans:
            self._spans[-1].covers_to = display_end
        self._display_end = display_end

    def to_display(self, spoken_end: int) -> int:
        """Display characters covered by the first `spoken_end` spoken ones; in proportion inside
        a chunk, whose words need not match one to one."""
        covered = 0
        for span in self._spans:
            if spoken_end >= span.spoken_end:
                covered = span.covers_to
                continue
            part = max(0, spoken_end - span.spoken_start)
            whole = span.spoken_end - span.spoken_start
            display = span.display_start + (span.display_end - span.display_start) * part // whole
            return max(covered, display) if part else covered
        return covered
