"""How many sessions one server process carries, without models.

Every session sends 20 ms of audio fifty times a second and hears replies all the time. The stages
are scripted, so the figures are those of the server alone: sockets, JSON, base64, resampling,
turn-taking and pacing. What a model costs comes on top; Silero takes SILERO_MS for each 32 ms of
every session, in a thread of its own.

The lag is how late the server's event loop is, over the 20 s before the end of the measurement;
frames are late against a steady pace, as a client sees it. Both processes share one machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import options, plots
from benchmarks.processes import busy_s, cpu_s, resident_mib
from benchmarks.report import print_table, write_json
from benchmarks.server import SCRIPTED, Server, serving

SESSIONS = (50, 100, 200, 300)
SECONDS = 20.0
AIM_MS = 20.0  # one chunk of the microphone: a loop that is later adds to what people wait for
SILERO_MS = 0.13  # for a frame of 32 ms, of one core
FRAME_MS = 32
COLUMNS = (
    *("sessions", "server", "client", "others", "lag p50", "p99", "max"),
    *("late p99", "starved", "MiB each"),
)
PAUSE_S = 3.0  # between two runs, for whoever shares the machine


@dataclass(frozen=True, slots=True)
class Load:
    """One run. Shares are of one core; times in ms."""

    sessions: int
    server_cpu: float
    client_cpu: float
    others_cpu: float  # of everybody else on the machine: figures beside much of it say little
    mib_per_session: float
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    client: dict[str, float]  # what `benchmarks.crowd` saw


def main() -> None:
    chosen = _arguments()
    loads: list[Load] = []
    for place, sessions in enumerate(chosen.sessions):
        if place:
            time.sleep(PAUSE_S)
        loads.append(_measure(sessions, chosen.seconds))
        _tell(loads[-1])
    print()
    print_table(
        COLUMNS,
        [
            (
                load.sessions,
                f"{load.server_cpu:.0%}",
                f"{load.client_cpu:.0%}",
                f"{load.others_cpu:.0%}",
                f"{load.lag_p50_ms:.1f}",
                f"{load.lag_p99_ms:.1f}",
                f"{load.lag_max_ms:.1f}",
                f"{load.client['late_p99_ms']:.1f}",
                f"{load.client['starved'] / max(1, load.client['frames']):.2%}",
                f"{load.mib_per_session:.2f}",
            )
            for load in loads
        ],
    )
    within = [load.sessions for load in loads if load.lag_p99_ms < AIM_MS]
    print(f"\nwithin {AIM_MS:.0f} ms of lag (p99): {max(within, default=0)} sessions")
    print(f"Silero would add {SILERO_MS / FRAME_MS:.2%} of a core per session")
    write_json("capacity", {"loads": [asdict(load) for load in loads]}, chosen.json)
    plots.write("capacity", _figure(loads))


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=list(SESSIONS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement")
    return parser.parse_args()


def _measure(sessions: int, seconds: float) -> Load:
    with serving(None, SCRIPTED, {"server": {"max_sessions": sessions}}) as server:
        assert server.pid is not None
        idle_mib = resident_mib(server.pid)
        command = [sys.executable, "-m", "benchmarks.crowd", server.url]
        command += ["--sessions", str(sessions), "--seconds", str(seconds)]
        crowd = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            return _watch(server, server.pid, crowd, sessions, seconds, idle_mib)
        finally:
            crowd.terminate()
            crowd.wait()


def _watch(
    server: Server,
    pid: int,
    crowd: subprocess.Popen[str],
    sessions: int,
    seconds: float,
    idle_mib: float,
) -> Load:
    _await_line(crowd, "measuring")
    begin_s = (cpu_s(pid), cpu_s(crowd.pid), busy_s())
    _await_line(crowd, "measured")
    end_s = (cpu_s(pid), cpu_s(crowd.pid), busy_s())
    busy_mib = resident_mib(pid)
    lag: dict[str, Any] = server.health()["loop_lag_ms"]
    seen = json.loads(_await_line(crowd, "{"))
    server_cpu, client_cpu, all_cpu = (
        (end - begin) / seconds for begin, end in zip(begin_s, end_s, strict=True)
    )
    return Load(
        sessions,
        server_cpu,
        client_cpu,
        max(0.0, all_cpu - server_cpu - client_cpu),
        (busy_mib - idle_mib) / sessions,
        lag["p50"],
        lag["p99"],
        lag["max"],
        seen,
    )


def _await_line(crowd: subprocess.Popen[str], start: str) -> str:
    assert crowd.stdout is not None
    line = crowd.stdout.readline()
    if not line.startswith(start):
        sys.exit(f"the clients ended early, with {crowd.wait()}; their words are above")
    return line


def _tell(load: Load) -> None:
    client = load.client
    print(
        f"{load.sessions} sessions: {client['frames']:.0f} frames heard, "
        f"{client['replies']:.0f} replies, {client['errors']:.0f} errors, "
        f"{client['closed']:.0f} closed by the server; the clients spoke up to "
        f"{client['sent_late_p99_ms']:.1f} ms late (p99)",
        flush=True,
    )


def _figure(loads: list[Load]) -> str:
    return plots.lines(
        "How late the event loop is, by sessions",
        "sessions of one server process",
        "ms",
        {
            "median": [(load.sessions, load.lag_p50_ms) for load in loads],
            "99th percentile": [(load.sessions, load.lag_p99_ms) for load in loads],
        },
        limit=(AIM_MS, f"the aim: {AIM_MS:.0f} ms"),
    )


if __name__ == "__main__":
    main()
