"""A line on the terminal that shows how far a command is."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

REDRAW_S = 0.2  # often enough to look alive
BAR_CHARACTERS = 30
ERASE_LINE = "\r\x1b[K"


class Progress:
    """`with Progress(label) as progress:`. Nothing is drawn where nobody looks.

    A thread of its own draws, so that the seconds go on while the command waits.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._is_shown = self._stream.isatty()
        self._share: float | None = None
        self._detail = ""
        self._begin_s = time.monotonic()
        self._is_over = threading.Event()
        self._drawing = threading.Thread(target=self._draw_on, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._is_shown:
            self._drawing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Clear the line for good: something else is about to be written. Idempotent."""
        if self._is_shown and not self._is_over.is_set():
            self._is_over.set()
            self._drawing.join()
            self._write(ERASE_LINE)

    def show(self, detail: str, share: float | None = None) -> None:
        """detail: what has been done. share: of the whole, 0 to 1; None: nobody knows."""
        self._detail, self._share = detail, share

    def begin(self, label: str) -> None:
        """What is being done from now on."""
        self._label, self._detail, self._share = label, "", None

    def _draw_on(self) -> None:
        while not self._is_over.wait(REDRAW_S):
            self._write(ERASE_LINE + self._line())

    def _line(self) -> str:
        elapsed_s = time.monotonic() - self._begin_s
        parts = [self._label, bar(self._share), self._detail, f"({elapsed_s:.0f} s)"]
        return " ".join(part for part in parts if part)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(share: float | None) -> str:
    """Nothing where the share is unknown."""
    if share is None:
        return ""
    full = round(min(1.0, max(0.0, share)) * BAR_CHARACTERS)
    return f"[{'#' * full}{'.' * (BAR_CHARACTERS - full)}]"
