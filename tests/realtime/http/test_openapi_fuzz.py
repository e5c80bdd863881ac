"""Whatever the server's own description of itself allows, and much that it does not, is answered
with something better than a 5xx."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings

from pipelines.fakes.cascade import FakeCascade
from realtime.settings import Settings
from tests.live_server import live_server

EXAMPLES = 25  # of each operation
TIMEOUT_S = 20.0


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server in a thread of its own: what asks it here blocks."""
    started, url, ended = threading.Event(), [""], [asyncio.Event()]
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        ended[0] = asyncio.Event()
        loops.append(asyncio.get_running_loop())
        chosen = Settings.model_validate({"speech": {"voices_dir": str(folder / "voices")}})
        async with live_server(FakeCascade(copies_voices=True), chosen) as server:
            url[0] = server.http_url
            started.set()
            await ended[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(TIMEOUT_S)
        yield url[0]
    finally:
        loops[0].call_soon_threadsafe(ended[0].set)
        thread.join(TIMEOUT_S)


def test_no_request_of_the_schema_is_the_servers_fault(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        schema: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")
        seen: dict[str, int] = {}
        for found in schema.get_all_operations():
            operation = found.ok()

            @given(case=operation.as_strategy())
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            )
            def ask(case: Any) -> None:
                response = case.call(base_url=url, timeout=TIMEOUT_S)
                assert response.status_code < 500, response.text
                if response.status_code >= 400 and response.request.method != "HEAD":
                    told = (response.request.method, response.request.url, response.text)
                    assert "error" in response.json(), told

            ask()
            seen[operation.label] = EXAMPLES
    assert {"POST /v1/audio/speech", "POST /v1/audio/transcriptions"} <= seen.keys()
