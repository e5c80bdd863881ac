"""What the processes of a server take of the GPUs, and what they were promised.

The driver's tool is asked: whoever touches a card to ask it takes memory of it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.placement import gpu_memory_bytes
from pipelines.runtime.worker_process import WORKER
from realtime.stage_settings import Higgs, SGLang, Stages, WhisperTorch

QUERY_TIMEOUT_S = 20.0
BYTES_PER_MIB = 2**20
STAGES = {"recogniser": "asr", "writer": "llm", "speaker": "tts"}

Ask = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Held:
    """Memory of the processes of one stage. share_mib: what was declared; None: nothing.
    used_mib: None where the driver does not tell it."""

    role: str
    processes: tuple[str, ...]
    used_mib: int | None
    share_mib: int | None


def held_by_stages(
    stages: Stages,
    server: int,
    ask: Ask | None = None,
    total_bytes: Sequence[int] | None = None,
) -> list[Held]:
    """server: its process, of which each stage's worker is a child that is told its name.

    ask: what lists processes and MiB. total_bytes: of each card; None: those that are here.
    """
    used_mib = used_by_processes(ask)
    workers = _workers(server)
    total_bytes = gpu_memory_bytes() if total_bytes is None else total_bytes
    found: list[Held] = []
    for role, share in _shares(stages).items():
        if STAGES[role] not in workers:
            continue
        mine = [pid for pid in family(workers[STAGES[role]]) if pid in used_mib]
        sizes = [used_mib[pid] for pid in mine]
        known = [size for size in sizes if size is not None]
        whole = None if share is None or not total_bytes else share[1] * total_bytes[share[0]]
        found.append(
            Held(
                role,
                tuple(f"{pid} {_name(pid)}" for pid in mine),
                sum(known) if known and len(known) == len(sizes) else None,
                None if whole is None else round(whole / BYTES_PER_MIB),
            )
        )
    return found


def used_by_processes(ask: Ask | None = None) -> Mapping[int, int | None]:
    """MiB by process, of all cards together; none where there is no card."""
    used: dict[int, int | None] = {}
    for line in (ask or _ask_processes)().splitlines():
        pid, _, size = (part.strip() for part in line.partition(","))
        if pid.isdecimal():
            before = used.get(int(pid), 0)
            is_known = size.isdecimal() and before is not None
            used[int(pid)] = before + int(size) if is_known and before is not None else None
    return used


def used_of_cards(ask: Ask | None = None) -> list[int]:
    """MiB in use on each card, by anybody."""
    return [int(line) for line in (ask or _ask_cards)().split() if line.isdecimal()]


def family(pid: int) -> list[int]:
    """A process, those that it has started, and so on, as far as they still run."""
    parents = {int(each.name): _parent(int(each.name)) for each in Path("/proc").glob("[0-9]*")}
    found = [pid]
    for member in found:  # grows meanwhile
        found += sorted(child for child, parent in parents.items() if parent == member)
    return found


def _workers(server: int) -> dict[str, int]:
    """The processes of a server's stages, by the stage's name."""
    commands = {pid: _command(pid) for pid in family(server) if _parent(pid) == server}
    return {words[-1]: pid for pid, words in commands.items() if WORKER in words}


def _shares(stages: Stages) -> dict[str, tuple[int, float] | None]:
    """The roles that have a process of their own, each with its card and its share of it."""
    found: dict[str, tuple[int, float] | None] = {}
    for role in STAGES:
        choice = getattr(stages, role)
        if getattr(choice, "process", "inline") != "worker":
            continue
        share = None
        if isinstance(choice, WhisperTorch | SGLang | Higgs) and choice.card is not None:
            share = None if choice.memory_share is None else (choice.card, choice.memory_share)
        found[role] = share
    return found


def _parent(pid: int) -> int:
    """Zero if the process is gone."""
    # The name stands in brackets and may hold anything; the fields are counted from its end.
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _command(pid: int) -> list[str]:
    return _text(pid, "cmdline").rstrip("\0").split("\0")


def _name(pid: int) -> str:
    return _text(pid, "comm").strip()


def _text(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def _ask_processes() -> str:
    return _query("--query-compute-apps=pid,used_memory")


def _ask_cards() -> str:
    return _query("--query-gpu=memory.used")


def _query(what: str) -> str:
    command = ["nvidia-smi", what, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
