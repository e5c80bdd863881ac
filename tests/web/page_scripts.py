"""The page's modules, run under node by the tests of this folder."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.web.node_script import run_script


def run(module: str, names: str, body: str, **given: Any) -> Any:
    """What `body` returns: JavaScript that may use what it imports and what it is given.

    module: a file of web/page. names: what is imported of it, separated by commas.
    """
    return run_script(f"page/{module}", names, body, **given)


@cache
def defaults() -> dict[str, Any]:
    """What the settings are at first."""
    return run("settings-rules.js", "DEFAULTS", "return DEFAULTS;")
