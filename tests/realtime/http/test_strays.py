"""What no route takes is answered in OpenAI's envelope, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from pipelines.fakes.cascade import FakeCascade
from realtime.settings import Settings
from tests.live_server import live_server


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/models/%0A0", 404, "not_found"),
        ("POST", "/v1/audio/nothing", 404, "not_found"),
        ("PUT", "/v1/audio/speech", 405, "method_not_allowed"),
        ("GET", "/v1/audio/speech", 405, "method_not_allowed"),
        ("POST", "/audio/speech", 404, "not_found"),
        ("GET", "/v1/audio/speech/stream", 426, "upgrade_required"),
        ("GET", "/nothing.html", 404, "not_found"),
        ("POST", "/index.html", 405, "method_not_allowed"),
    ],
)
def test_a_stray_is_told_so(tmp_path: Path, method: str, path: str, status: int, code: str) -> None:
    async def main() -> None:
        settings = Settings.model_validate({"speech": {"voices_dir": str(tmp_path)}})
        async with (
            live_server(FakeCascade(), settings) as server,
            httpx.AsyncClient(base_url=server.http_url) as client,
        ):
            answer = await client.request(method, path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)

    asyncio.run(main())


def test_what_was_meant_is_told_and_nobody_is_sent_elsewhere(tmp_path: Path) -> None:
    async def main() -> None:
        settings = Settings.model_validate({"speech": {"voices_dir": str(tmp_path)}})
        async with (
            live_server(FakeCascade(), settings) as server,
            httpx.AsyncClient(base_url=server.http_url, headers={"Host": "elsewhere"}) as client,
        ):
            for path in ("/v1/audio/speech/", "/audio/speech/", "/audio/speech"):
                answer = await client.post(path)
                assert (answer.status_code, "location" in answer.headers) == (404, False)
                message = answer.json()["error"]["message"]
                assert message.endswith("Did you mean /v1/audio/speech?")
            answer = await client.delete("/v1/audio/voices")
            assert answer.headers["allow"] == "GET, POST"
            assert "the address takes GET, POST." in answer.json()["error"]["message"]

    asyncio.run(main())
