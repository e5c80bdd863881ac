"""How the server treats the worker process of a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """start_timeout_s: for loading, from one line of its progress to the next; far beyond the
        largest model from a slow disk.
    restart_wait_s: how long a request waits for a worker that is being restarted. A light stage is
        back in it, with a pause that a listener forgives; a model that loads for a minute is not,
        and a reply after that helps nobody.
    heartbeat_s, hang_timeout_s: how often a worker is asked for a sign of life, and how long it
        may give none; less than a reply waits for its voice, so that the reason is told.
    close_timeout_s: for closing the stage, before the process is killed; longer than the stage
        itself waits for its threads.
    close_silence_s: how long a worker that closes may give no sign of life; with what else ends a
        server, well within the ten seconds that a container gets.
    first_backoff_s, longest_backoff_s: before a restart; doubled each time.
    stable_s: a worker that has served for so long starts the backoff anew.
    failed_starts: restarts in a row that fail to load before the stage is given up.
    input_window, output_window: of one stream, what may be on its way and not yet taken. A reader
        that stops taking stops the stage when its own queue is full as well.
    environment: variables of the worker beside the server's own, such as CUDA_VISIBLE_DEVICES.
    """

    start_timeout_s: float = 600.0
    restart_wait_s: float = 5.0
    heartbeat_s: float = 1.0
    hang_timeout_s: float = 10.0
    close_timeout_s: float = 15.0
    close_silence_s: float = 5.0
    first_backoff_s: float = 1.0
    longest_backoff_s: float = 30.0
    stable_s: float = 60.0
    failed_starts: int = 5
    input_window: int = 64
    output_window: int = 8
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
