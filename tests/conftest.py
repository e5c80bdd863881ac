"""What holds for every test of the project, before its modules are imported."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

# Threads of torch sleep where they wait for each other, which `pipelines.stages.openmp` has for the
# server: beside one busy neighbour spinning ones are many times slower. Processes inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

TESTS = Path(__file__).parent
# Folders whose tests share servers: they stay together, and begin first, for they take longest.
TOGETHER = ("sdk", "browser")


def group_of(path: Path) -> str:
    """What stays in one process where several share the tests (`pytest -n`): a file or a folder."""
    first = path.relative_to(TESTS).parts[0]
    return first if first in TOGETHER else path.relative_to(TESTS).as_posix()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item.path)))
    items.sort(key=lambda item: group_of(item.path) not in TOGETHER)


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: no collection of garbage has to walk them."""
    gc.collect()
    gc.freeze()
