"""An hour of visitors who talk, misbehave and are killed: does anything of them stay?

The server runs in a process of its own with scripted stages. The clients are in two processes, one
of which is killed (SIGKILL) every so often and started anew. When all have gone, whatever the
server holds must be back at what it held before the first of them; its memory must not have grown
in the meantime; and its log must hold no trace of an error. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import options, plots
from benchmarks.processes import cpu_s, open_files, resident_mib, threads
from benchmarks.report import print_table, write_json
from benchmarks.server import SCRIPTED, Server, serving

MAX_SESSIONS = 64
PROCESSES = 2
PARTING_S = 10.0  # for visitors whose time is over
KILLED_AFTER_S = (15.0, 90.0)
FIRST_VISIT_S = 8.0  # what is made once for all sessions is made before the first look
SETTLED_WITHIN_S = 90.0  # longer than a silent client's ping is waited for
WARM_UP_SHARE = 0.5  # of the time: until then rare moments still find the allocator's pools small
SLOPE_LIMIT_MIB_PER_H = 1.0
LEAST_SLOPE_MINUTES = 60.0  # half an hour is the least whose slope tells of an hour
POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)  # of asyncio, which come when first wanted
LOG_MARKS = ("Traceback", " ERROR ", "never retrieved", "never awaited", "was destroyed")


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment. requests: of sessions. stages: requests and detectors open."""

    minute: float
    rss_mib: float
    sessions: int
    requests: int
    stages: int
    tasks: int
    files: int
    threads: int
    lag_p99_ms: float


@dataclass(slots=True)
class Result:
    """left: what was still held at the end, beyond the first look. faults: lines of the log."""

    minutes: float
    clients: int
    kills: int = 0
    tally: dict[str, int] = field(default_factory=dict[str, int])  # of those not killed
    cpu_share: float = 0.0
    first: Sample | None = None
    last: Sample | None = None
    samples: list[Sample] = field(default_factory=list[Sample])
    slope_mib_per_h: float | None = None
    left: dict[str, int] = field(default_factory=dict[str, int])
    faults: list[str] = field(default_factory=list[str])

    @property
    def failures(self) -> list[str]:
        """What is wrong, a line each; empty if all is well."""
        lines = [f"{count} {what} too many at the end" for what, count in self.left.items()]
        lines += [f"the server's log: {line}" for line in self.faults]
        is_long = self.minutes >= LEAST_SLOPE_MINUTES
        if is_long and (self.slope_mib_per_h or 0.0) > SLOPE_LIMIT_MIB_PER_H:
            lines.append(f"memory grew by {self.slope_mib_per_h:.1f} MiB/h")
        return lines


def soak(minutes: float, clients: int, sample_s: float, seed: int) -> Result:
    """Run all of it. Prints a line per sample."""
    result = Result(minutes, clients)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.log")
        os.environ["PARLEY_BENCH_LOG"] = str(log)
        with serving(None, SCRIPTED, {"server": {"max_sessions": MAX_SESSIONS}}) as server:
            assert server.pid is not None
            begin_s = time.monotonic()
            _visitors(server.url, clients, FIRST_VISIT_S, seed).communicate()
            result.first = _settle(server, server.pid, None, begin_s)
            begin_s, begin_cpu_s = time.monotonic(), cpu_s(server.pid)
            _keep_busy(server, server.pid, result, begin_s, sample_s, seed)
            result.cpu_share = (cpu_s(server.pid) - begin_cpu_s) / (time.monotonic() - begin_s)
            result.last = _settle(server, server.pid, result.first, begin_s)
        result.faults = faults(log.read_text(errors="replace"))
    result.left = left_over(result.first, result.last)
    warm = [s for s in result.samples if s.minute >= minutes * WARM_UP_SHARE]
    result.slope_mib_per_h = slope_per_h(warm)
    if not all(result.tally.get(what) for what in ("heard: response.done", "heard: audio")):
        result.faults.append("the visitors were answered nothing, so the run shows nothing")
    return result


def _keep_busy(
    server: Server, pid: int, result: Result, begin_s: float, sample_s: float, seed: int
) -> None:
    """Visitors until the time is over; one of their processes is killed now and then."""
    chance = random.Random(seed)
    end_s = begin_s + result.minutes * 60
    share = -(-result.clients // PROCESSES)
    tally = Counter[str]()
    seeds = iter(range(seed * 100, 10**9))

    def start() -> subprocess.Popen[bytes]:
        return _visitors(server.url, share, end_s - time.monotonic(), next(seeds))

    processes = [start() for _ in range(PROCESSES)]
    try:
        next_sample_s = begin_s
        next_kill_s = begin_s + chance.uniform(*KILLED_AFTER_S)
        while (now_s := time.monotonic()) < end_s:
            if now_s >= next_sample_s:
                result.samples.append(_sample(server, pid, begin_s))
                _tell(result.samples[-1])
                next_sample_s += sample_s
            if now_s >= next_kill_s:
                victim = chance.randrange(PROCESSES)
                processes[victim].kill()
                processes[victim].communicate()
                processes[victim] = start()
                result.kills += 1
                next_kill_s = now_s + chance.uniform(*KILLED_AFTER_S)
            time.sleep(0.2)
        for process in processes:
            said, _ = process.communicate(timeout=PARTING_S)
            if process.returncode != 0:
                sys.exit("the visitors failed; their trace is above")
            tally.update(json.loads(said))
        result.tally = dict(tally)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _visitors(url: str, clients: int, seconds: float, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.visitors", url, "--clients", str(clients)]
    command += ["--seconds", f"{seconds:.1f}", "--seed", str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _sample(server: Server, pid: int, begin_s: float) -> Sample:
    files = open_files(pid)  # before the question, whose own connection is one
    live = server.health()
    return Sample(
        (time.monotonic() - begin_s) / 60,
        resident_mib(pid),
        live["sessions"],
        live["requests"],
        live["stages"],
        live["tasks"],
        files,
        threads(pid),
        live["loop_lag_ms"]["p99"],
    )


def _settle(server: Server, pid: int, first: Sample | None, begin_s: float) -> Sample:
    """Wait until nothing is left, at most so long; the last look counts."""
    end_s = time.monotonic() + SETTLED_WITHIN_S
    while True:
        sample = _sample(server, pid, begin_s)
        is_over = sample.sessions == 0 if first is None else not left_over(first, sample)
        if is_over or time.monotonic() > end_s:
            time.sleep(1.0)  # the last connections close
            return _sample(server, pid, begin_s)
        time.sleep(0.5)


def left_over(first: Sample, last: Sample) -> dict[str, int]:
    """What there is more of than before the first visitor came."""
    spare = {"sessions": 0, "requests": 0, "stages": 0, "tasks": 0, "files": 0}
    spare["threads"] = POOL_THREADS
    more = {what: getattr(last, what) - getattr(first, what) for what in spare}
    return {what: count for what, count in more.items() if count > spare[what]}


def faults(log: str) -> list[str]:
    """Lines of the log that no client should be able to cause."""
    return [line for line in log.splitlines() if any(mark in line for mark in LOG_MARKS)]


def slope_per_h(samples: Sequence[Sample]) -> float | None:
    """Least squares over the memory, in MiB per hour; None for fewer than three samples."""
    if len(samples) < 3:
        return None
    hours = [sample.minute / 60 for sample in samples]
    return statistics.linear_regression(hours, [sample.rss_mib for sample in samples]).slope


def _tell(sample: Sample) -> None:
    print(
        f"{sample.minute:5.1f} min: {sample.rss_mib:.1f} MiB, {sample.sessions} sessions, "
        f"{sample.requests} requests, {sample.tasks} tasks, {sample.files} files, "
        f"{sample.threads} threads, lag p99 {sample.lag_p99_ms:.1f} ms",
        flush=True,
    )


def main() -> None:
    chosen = _arguments()
    # Stopped from outside, it ends its server and its clients too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    result = soak(chosen.minutes, chosen.clients, chosen.sample, chosen.seed)
    assert result.first is not None and result.last is not None
    print()
    names = ("rss_mib", "sessions", "requests", "stages", "tasks", "files", "threads")
    rows = [(n, getattr(result.first, n), getattr(result.last, n)) for n in names]
    print_table(("the server holds", "before", "after"), rows)
    slope = result.slope_mib_per_h
    done = ", ".join(f"{what} {count}" for what, count in sorted(result.tally.items()))
    print(f"\nwhat visitors did and heard who were not killed: {done}")
    print(f"client processes killed: {result.kills}")
    print(f"processor of the server: {result.cpu_share:.0%} of a core")
    print("memory: " + ("too few samples" if slope is None else f"{slope:+.2f} MiB/h"))
    write_json("soak", {**asdict(result), "failures": result.failures}, chosen.json)
    plots.write("soak", _figure(result))
    for line in result.failures:
        print(f"FAILED: {line}")
    sys.exit(1 if result.failures else 0)


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--sample", type=float, default=60.0, help="seconds between two samples")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _figure(result: Result) -> str:
    points = [(sample.minute, sample.rss_mib) for sample in result.samples]
    return plots.lines(
        f"Memory of the server, {result.clients} clients who come, misbehave and are killed",
        "minutes",
        "MiB resident",
        {"resident memory": points},
        dots=False,
    )


if __name__ == "__main__":
    main()
