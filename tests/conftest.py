"""What holds for every test of the project, before its modules are imported."""

from __future__ import annotations

import gc
import os

# Threads of torch sleep where they wait for each other, which `pipelines.stages.openmp` has for the
# server: beside one busy neighbour spinning ones are many times slower. Processes inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: no collection of garbage has to walk them."""
    gc.collect()
    gc.freeze()
