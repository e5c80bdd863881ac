"""Memory of cards, by the stage whose processes hold it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.higgs.cards import family, held_by_stages, used_by_processes, used_of_cards
from pipelines.runtime.worker_process import WORKER
from realtime.stage_settings import Higgs, Scripted, SGLang, Stages

# A process with one child, as a server has one for its voice; it says the child's number and ends
# with its standard input.
PARENT = """
import subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "print(flush=True); input()", %r, "tts"], stdin=sys.stdin
)
print(child.pid, flush=True)
child.wait()
"""
GIB = 2**30


@pytest.fixture
def parent_and_child() -> Iterator[tuple[int, int]]:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT % WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        said = {parent.stdout.readline().strip() for _ in range(2)}  # the child runs, too
        yield parent.pid, int(max(said))
        parent.stdin.write("\n")


def test_a_family_is_found_by_its_eldest(parent_and_child: tuple[int, int]) -> None:
    parent, child = parent_and_child
    assert family(parent) == [parent, child]
    assert family(child) == [child]


def test_memory_of_a_process_is_summed_over_cards() -> None:
    assert used_by_processes(lambda: "11, 100\n12, 7\n11, 50\n") == {11: 150, 12: 7}


def test_a_driver_that_does_not_tell_is_no_zero() -> None:
    assert used_by_processes(lambda: "11, [N/A]\n11, 50\n") == {11: None}
    assert used_by_processes(lambda: "") == {}
    assert used_of_cards(lambda: "40\n7\n") == [40, 7]


def test_a_stage_holds_what_its_worker_holds(parent_and_child: tuple[int, int]) -> None:
    server, worker = parent_and_child
    stages = Stages(
        recogniser=Scripted(kind="scripted"),
        writer=Scripted(kind="scripted"),
        speaker=Higgs(kind="higgs", memory_share=0.25, gpu=1),
    )
    [held] = held_by_stages(stages, server, lambda: f"1, 9\n{worker}, 300\n", (8 * GIB, 16 * GIB))
    assert (held.role, held.used_mib, held.share_mib) == ("speaker", 300, 4096)
    assert len(held.processes) == 1 and held.processes[0].startswith(f"{worker} ")


def test_a_worker_is_known_by_its_name_whichever_started_first(
    parent_and_child: tuple[int, int],
) -> None:
    server, worker = parent_and_child
    stages = Stages(
        writer=SGLang(kind="sglang", memory_share=0.5), speaker=Higgs(kind="higgs", device="cpu")
    )
    held = held_by_stages(stages, server, lambda: f"{worker}, 300\n", (16 * GIB,))
    assert [(one.role, one.used_mib, one.share_mib) for one in held] == [("speaker", 300, None)]
