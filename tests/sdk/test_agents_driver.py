"""The driver of `@openai/agents-realtime` sees which events the SDK's own schema refuses."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from tests.sdk.sdks import SDKS, drive

ERROR = {"type": "invalid_request_error", "code": "x", "message": "No.", "param": None}


@contextmanager
def server_that_says(event: dict[str, object]) -> Iterator[int]:
    """The port of a server that greets everybody with one event."""

    def greet(connection: ServerConnection) -> None:
        connection.send(json.dumps(event))
        with contextlib.suppress(ConnectionClosed):  # the driver just ends
            connection.recv()

    with serve(greet, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, name="greeter")
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("event_id", "judged"), [("event_1", "taken"), (None, "ignored")])
def test_an_error_is_taken_only_if_the_sdk_understands_it(
    event_id: object, judged: str, tmp_path: Path
) -> None:
    with server_that_says({"type": "error", "event_id": event_id, "error": ERROR}) as port:
        told = {
            "name": "greeting",
            "socket_url": f"ws://127.0.0.1:{port}/v1/realtime",
            "key": "ek_1",
            "session": {},
            "has_tool": False,
            "steps": [{"until": ["error"]}],
        }
        lines = drive(SDKS["npm_agents"], [told], tmp_path, dict(os.environ))
    assert lines[-1].get("done"), lines
    verdicts = [line["sdk"] for line in lines if line.get("sdk") in ("taken", "ignored")]
    assert verdicts == [judged]
