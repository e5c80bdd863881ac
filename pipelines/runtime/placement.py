"""Where a stage runs.

The stream contract says nothing of threads, so a stage may move to a process of its own, or to
another machine, without its callers noticing. Today there is one placement.
"""

from __future__ import annotations

from enum import StrEnum


class Placement(StrEnum):
    THREAD = "thread"  # threads of the server's own process
