"""The official Python SDK, unmodified, against a live server."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.writer import FakeWriter, words
from tests.live_server import PATIENCE_S, live_server, silence, tone


async def events_until(connection: AsyncRealtimeConnection, last: str) -> list[Any]:
    seen: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in connection:
            seen.append(event)
            if event.type == last:
                break
    return seen


def converse(script: Any) -> Any:
    """Run `script(connection)` in a session of a server whose replies are three words."""

    async def run() -> Any:
        cascade = FakeCascade(writer=FakeWriter([words("Hello dear friend.")]))
        async with live_server(cascade) as server:
            client = AsyncOpenAI(base_url=f"{server.http_url}/v1", api_key="unused")
            async with client, client.realtime.connect(model="parley") as connection:
                return await script(connection)

    return asyncio.run(run())


def test_a_spoken_turn_is_answered() -> None:
    async def script(connection: AsyncRealtimeConnection) -> list[Any]:
        for pcm in (silence(300), tone(900), silence(2000)):
            audio = base64.b64encode(pcm.tobytes()).decode()
            await connection.input_audio_buffer.append(audio=audio)
        return await events_until(connection, "response.done")

    seen = converse(script)
    kinds = list(dict.fromkeys(event.type for event in seen))
    assert kinds[:4] == [
        "session.created",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
    ]
    assert seen[-1].response.status == "completed"
    deltas = [e for e in seen if e.type == "response.output_audio.delta"]
    pcm = np.frombuffer(b"".join(base64.b64decode(e.delta) for e in deltas), "<i2")
    assert np.abs(pcm.astype(np.int32)).max() > 1000
    told = "".join(e.delta for e in seen if e.type == "response.output_audio_transcript.delta")
    assert told == "Hello dear friend."


def test_a_typed_turn_is_answered_in_text() -> None:
    async def script(connection: AsyncRealtimeConnection) -> list[Any]:
        await connection.session.update(
            session={"type": "realtime", "output_modalities": ["text"], "instructions": "Be kind."}
        )
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hello?"}],
            }
        )
        await connection.response.create()
        return await events_until(connection, "response.done")

    seen = converse(script)
    updated = next(e for e in seen if e.type == "session.updated")
    assert updated.session.instructions == "Be kind."
    text = "".join(e.delta for e in seen if e.type == "response.output_text.delta")
    assert text == "Hello dear friend."
    assert seen[-1].response.output[0].content[0].text == text


def test_a_refused_request_names_its_event() -> None:
    async def script(connection: AsyncRealtimeConnection) -> list[Any]:
        await connection.response.cancel(event_id="mine")
        return await events_until(connection, "error")

    error = converse(script)[-1].error
    assert (error.code, error.event_id) == ("response_cancel_not_active", "mine")
