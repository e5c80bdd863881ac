"""One run of an SDK over all its scenarios, recorded: what every test of this folder looks at."""

from __future__ import annotations

import json
import os
import ssl
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

from tests.sdk.parley_process import KEY
from tests.sdk.scenarios import Scenario
from tests.sdk.sdks import SDKS, Sdk, drive
from tests.sdk.wire_log import Event, WireLog
from tests.sdk.wire_recorder import WireRecorder

DRIVERS_AT_ONCE = 3  # they mostly wait; all six would be late on two cores


@dataclass(slots=True)
class Run:
    """A scenario as one SDK played it: what went over the wire, and what the SDK made of it."""

    sdk: Sdk = field(repr=False)
    scenario: Scenario = field(repr=False)
    log: WireLog
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], repr=False)

    def told(self, key: str) -> list[Any]:
        return [line[key] for line in self.lines if key in line]

    @property
    def seen(self) -> list[Event]:
        """The server events as the SDK gave them to the program."""
        return self.told("event")


@dataclass(slots=True)
class Stage:
    """Where scenarios are played.

    ports: of the servers, by the names that scenarios have for them. authority: the certificate
    that a client which insists on TLS has to trust.
    """

    folder: Path
    ports: dict[str, int]
    recorder: WireRecorder
    authority: Path

    def play(self, sdk: Sdk, scenarios: Sequence[Scenario]) -> dict[str, Run]:
        """Have an SDK play scenarios, all at once; the runs by the scenarios' names."""
        folder = self.folder / sdk.name
        folder.mkdir()
        runs: dict[str, Run] = {}
        told: list[dict[str, Any]] = []
        for scenario in scenarios:
            run = Run(sdk, scenario, WireLog(folder / f"{scenario.name}.jsonl"))
            runs[scenario.name] = run
            server_port = self.ports[scenario.server]
            is_secure = sdk.insists_on_tls
            port = self.recorder.listen(run.log, server_port, is_secure=is_secure)
            try:
                told.append(tell(sdk, scenario, port))
            except OSError as error:
                run.lines.append({"failed": f"no client secret: {error}"})
        for line in drive(sdk, told, folder, trusting(self.authority)):
            runs[line["scenario"]].lines.append(line)
        return runs


@dataclass(slots=True)
class Runs:
    """All SDKs over all their scenarios, once, when somebody first asks for one."""

    stage: Stage
    _played: dict[str, Future[dict[str, Run]]] = field(
        default_factory=dict[str, Future[dict[str, Run]]]
    )
    _settled: Future[None] = field(default_factory=Future[None])

    def of(self, sdk_name: str) -> dict[str, Run]:
        """By the name of the scenario. Raises, every time, what has stopped this SDK's driver."""
        if not self._played:
            self._play()
        runs = self._played[sdk_name].result()
        self._settled.result()
        return runs

    def _play(self) -> None:
        with ThreadPoolExecutor(DRIVERS_AT_ONCE) as drivers:
            for name, sdk in SDKS.items():
                self._played[name] = drivers.submit(self.stage.play, sdk, sdk.scenarios)
        with ThreadPoolExecutor(1) as afterwards:
            self._settled = afterwards.submit(self.stage.recorder.settle)

    def all(self) -> list[Run]:
        return [run for name in SDKS for run in self.of(name).values()]


def tell(sdk: Sdk, scenario: Scenario, port: int) -> dict[str, Any]:
    """A scenario as the drivers read it."""
    http_url = f"{'https' if sdk.insists_on_tls else 'http'}://127.0.0.1:{port}/v1"
    key, request = KEY, scenario.secret
    if sdk.is_agent and request is not None:
        # These SDKs are handed a secret, as a browser is by its own server.
        key, request = ask_secret(http_url, request)["value"], None
    return {
        "name": scenario.name,
        "http_url": http_url,
        "socket_url": f"{http_url.replace('http', 'ws')}/realtime?model=parley",
        "key": key,
        "connect": scenario.connect,
        "session": scenario.session,
        "has_tool": scenario.has_tool,
        "client_secret": request,
        "steps": scenario.steps,
    }


def trusting(authority: Path) -> dict[str, str]:
    """The environment of a driver that trusts `authority`, a certificate."""
    return {**os.environ, "NODE_EXTRA_CA_CERTS": str(authority), "OPENAI_API_KEY": KEY}


def ask_secret(http_url: str, request: dict[str, Any]) -> dict[str, Any]:
    asking = urllib.request.Request(
        f"{http_url}/realtime/client_secrets",
        data=json.dumps(request).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(asking, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def set_stage(ports: dict[str, int], folder: Path) -> Iterator[Stage]:
    """A recorder in front of servers that listen on `ports`. folder: for logs."""
    authority = trustme.CA()
    authority_file = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(authority_file))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with WireRecorder(tls).run() as recorder:
        yield Stage(folder, ports, recorder, authority_file)
