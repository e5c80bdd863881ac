"""What a process takes, as Linux tells it under /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time so far, in user and in kernel mode, of all threads."""
    # The name stands in brackets and may hold anything; the fields are counted from its end.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def busy_s() -> float:
    """Processor time of the whole machine so far, idle and stolen time left out."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Resident memory; zero if the process is gone."""
    return _status(pid, "VmRSS:") / 1024


def threads(pid: int) -> int:
    return _status(pid, "Threads:")


def open_files(pid: int) -> int:
    """How many descriptors are open, sockets among them."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def _status(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)
