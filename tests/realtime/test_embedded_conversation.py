"""The whole server with its real models: a spoken question is answered aloud, and rightly."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
import pytest
import soxr

from pipelines.ports import Cascade
from pipelines.stages import tts_piper
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm, WireClient, open_client
from realtime.settings import Settings
from realtime.stages import create_cascade
from tests.live_server import live_server, silence
from tests.spoken import spoken
from tests.wire_invariants import check_order

pytestmark = pytest.mark.models

PATIENCE_S = 90.0  # a loaded machine with two cores


async def heard(cascade: Cascade, pcm: Pcm) -> str:
    stream = cascade.recognise(RecogniseRequest("check"))
    samples = soxr.resample(pcm.astype(np.float32) / 32_768, WIRE_RATE_HZ, HEARING_RATE_HZ)
    await stream.push(samples)
    await stream.finish()
    return [transcript.text async for transcript in stream][-1]


async def events_until(client: WireClient, last: str) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for _, event in client.received():
            seen.append(event)
            if event["type"] == last:
                break
    return seen


def joined(events: list[dict[str, Any]], kind: str) -> str:
    return "".join(event["delta"] for event in events if event["type"] == kind)


def test_a_spoken_question_is_answered_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without its noise the voice asks alike each time.
    monkeypatch.setattr(tts_piper, "NOISE_SCALE", 0.0)
    monkeypatch.setattr(tts_piper, "NOISE_WIDTH_SCALE", 0.0)

    async def run() -> None:
        question = await spoken("What is the capital of France?")
        cascade = create_cascade(Settings())
        async with live_server(cascade) as server, open_client(server.socket_url) as client:
            transcription = {"audio": {"input": {"transcription": {"model": "whisper-1"}}}}
            await client.send("session.update", session={"type": "realtime", **transcription})
            await client.append(np.concatenate([silence(300), question, silence(3000)]))
            events = await events_until(client, "response.done")
            check_order(events)
            deltas = [e["delta"] for e in events if e["type"] == "response.output_audio.delta"]
            reply = np.frombuffer(b"".join(map(base64.b64decode, deltas)), "<i2")
            told = joined(events, "response.output_audio_transcript.delta")
            said = joined(events, "conversation.item.input_audio_transcription.delta")
            assert events[-1]["response"]["status"] == "completed"
            assert "capital of france" in said.lower()
            assert "paris" in told.lower()
            assert np.abs(reply.astype(np.int32)).max() > 3000
            # It is speech to the recogniser; how well it is understood, a benchmark measures.
            assert await heard(cascade, reply)
            await client.close()
            async with asyncio.timeout(PATIENCE_S):
                while server.app.registry.count or cascade.active:
                    await asyncio.sleep(0.05)

    asyncio.run(run())
