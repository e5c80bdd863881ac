"""Native libraries whose OpenMP threads must sleep, not spin, where they wait for each other."""

from __future__ import annotations

import importlib
import os
from typing import Any


def import_sleeping(name: str) -> Any:
    """The module `name`, loaded so that its threads sleep at barriers.

    By default they spin. Then one busy neighbour on two cores makes a call take ten seconds
    instead of 0.2: whoever spins keeps the one that is waited for off the core. Sleeping costs a
    sixth of the speed on an idle machine. The variable is read once, when the library is loaded;
    whoever starts the process may set another policy.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return importlib.import_module(name)
