"""A voice of one's own, through the whole server: uploaded once, heard everywhere, and kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from pipelines.fakes.cascade import FakeCascade
from realtime.commands.wire_client import open_client
from realtime.settings import Settings
from tests.live_server import LiveServer, live_server
from tests.realtime.http.voice_desk import DATA, GOOD
from tests.realtime.test_higgs_conversation import ask, events_until

WANTED: dict[str, Any] = {"input": "Good day to you.", "voice": "anna", "response_format": "wav"}


async def speak(server: LiveServer) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.http_url) as client:
        return await client.post("/v1/audio/speech", json=WANTED)


def test_an_uploaded_voice_speaks_over_http_and_in_conversations_after_a_restart(
    tmp_path: Path,
) -> None:
    settings = Settings.model_validate({"speech": {"voices_dir": str(tmp_path / "voices")}})

    async def upload() -> None:
        async with (
            live_server(FakeCascade(), settings) as server,
            httpx.AsyncClient(base_url=server.http_url) as client,
        ):
            assert (await speak(server)).json()["error"]["param"] == "voice"
            made = await client.post(
                "/v1/audio/voices",
                data={**GOOD, "transcript": "Hello."},
                files={"audio_sample": ("anna.wav", DATA, "audio/wav")},
            )
            assert made.status_code == 200, made.text
            assert (await speak(server)).status_code == 200

    async def use() -> None:
        cascade = FakeCascade()
        async with live_server(cascade, settings) as server:
            assert (await speak(server)).status_code == 200
            async with open_client(server.socket_url) as client:
                await client.send(
                    "session.update",
                    session={"type": "realtime", "audio": {"output": {"voice": "anna"}}},
                )
                await ask(client, "Hello")
                await events_until(client, "response.done")
        samples = [request.sample for request in cascade.speaker.requests]
        assert len(samples) == 2
        assert all(sample is not None and sample.transcript == "Hello." for sample in samples)

    asyncio.run(upload())
    asyncio.run(use())
