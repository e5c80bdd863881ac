"""A session's record: every event and what the machine made of it, one JSON line each.

The driver hands over frozen objects; a thread of the recorder's own encodes and writes them.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from pathlib import Path

from realtime.observe.metrics import Count, Metrics
from realtime.runtime.codec import encode
from realtime.session.effects import Effect
from realtime.session.events import Event

log = logging.getLogger(__name__)

FORMAT = 1  # raised when a line's shape changes
_WAITING_LINES = 20_000  # minutes of a busy session: only a disk that has stopped fills it
_CLOSE_WAIT_S = 5.0
_FLUSH_S = 1.0  # what a killed process may lose
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600  # conversations are private

_Line = tuple[float, Event, list[Effect]]


class FileRecorder:
    """Raises OSError at once when the file cannot be made.

    It contains what was said: only this user may read the file, or enter a folder made for it.
    """

    def __init__(self, path: Path, metrics: Metrics) -> None:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self._file = open(path, "x", encoding="utf-8", opener=_open_private)
        self._path = path
        self._metrics = metrics
        self._lines: queue.Queue[_Line | None] = queue.Queue(_WAITING_LINES)
        self._is_cut_short = False
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"recorder {path.name}", daemon=True)
        self._thread.start()

    def write(self, now_ms: float, event: Event, effects: list[Effect]) -> None:
        """Never blocks. When the disk does not keep up the record ends here, and says so."""
        if self._is_cut_short:
            return
        try:
            self._lines.put_nowait((now_ms, event, effects))
        except queue.Full:
            self._is_cut_short = True
            self._metrics.add(Count.RECORDS_CUT_SHORT)
            log.warning("%s ends early: the disk does not keep up", self._path)

    def close(self) -> None:
        """Write what waits, then close the file. Blocks for a bounded time: call it in a thread."""
        self._is_closed.set()
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            pass  # the thread looks at `_is_closed` whenever it has emptied the queue
        self._thread.join(_CLOSE_WAIT_S)

    def _run(self) -> None:
        try:
            with self._file as file:
                file.write(json.dumps({"record": FORMAT}) + "\n")
                flushed_s = time.monotonic()
                while (line := self._next()) is not None or not self._is_closed.is_set():
                    if line is not None:
                        file.write(_text(line) + "\n")
                    if time.monotonic() - flushed_s >= _FLUSH_S:
                        file.flush()
                        flushed_s = time.monotonic()
        except OSError as error:
            self._is_cut_short = True
            self._metrics.add(Count.RECORDS_CUT_SHORT)
            log.warning("%s ends early: %s", self._path, error)

    def _next(self) -> _Line | None:
        """The next line; None after `close`, or when nothing has come for a while."""
        try:
            return self._lines.get(timeout=_FLUSH_S)
        except queue.Empty:
            return None


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE_MODE)


def _text(line: _Line) -> str:
    now_ms, event, effects = line
    body = {
        "now_ms": now_ms,
        "event": encode(event),
        "effects": [encode(effect) for effect in effects],
    }
    # ASCII, for an encoder refuses what a faulty stage may hand over: halves of characters.
    return json.dumps(body, separators=(",", ":"))
