"""A server that stops: what was begun is finished, or ended in its own form; nothing is begun."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from pipelines.types import SpeakRequest, SpeechDelta
from realtime.http.readiness import Phase
from realtime.http.speech_socket.routes import PATH as SOCKET_PATH
from realtime.settings import Server, Settings
from tests.live_server import LiveServer, live_server
from tests.realtime.audio.sound_files import encoded, hum
from tests.realtime.http.speech_server import BATCH, PATH, PATIENCE_S, audio_of, events_of
from tests.realtime.http.speech_socket_server import SpeechClient, speech_client
from tests.realtime.http.transcription_rig import PATH as TRANSCRIPTIONS
from tests.realtime.http.transcription_rig import Listener
from tests.realtime.runtime.stand_ins import RATE_HZ, WORD_MS, ScriptedSpeech, tone

LONG_MS = 600_000  # more than any test lasts
PCM_BYTES = 2 * int(RATE_HZ * WORD_MS / 1000)  # of one of two words
PCM: dict[str, Any] = {"input": "Two words.", "response_format": "pcm"}
FILE = encoded(hum(2.0))


class HeldSpeech(ScriptedSpeech):
    """Two words; between them the gate."""

    async def _speak(self) -> AsyncIterator[SpeechDelta]:
        await self._texts.get()
        yield SpeechDelta(tone(WORD_MS), RATE_HZ, 3)
        await self._pass_gate()
        if not self.is_aborted:
            yield SpeechDelta(tone(WORD_MS), RATE_HZ, 10)


class HeldCascade(Listener):
    """Speaks and hears up to a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = self.speech_gate = self.recognise_gate = asyncio.Event()

    def speak(self, request: SpeakRequest) -> ScriptedSpeech:
        self.speak_requests.append(request)
        self.speeches.append(HeldSpeech(self))
        return self.speeches[-1]


class Stop:
    """A server with one request under way, and its stop."""

    def __init__(self, server: LiveServer, cascade: HeldCascade, client: httpx.AsyncClient) -> None:
        self.app = server.app
        self.socket_url = f"ws://127.0.0.1:{server.port}{SOCKET_PATH}"
        self.cascade = cascade
        self.client = client

    async def speak(self, **fields: Any) -> httpx.Response:
        return await self.client.post(PATH, json=PCM | fields)

    async def transcribe(self) -> httpx.Response:
        return await self.client.post(TRANSCRIPTIONS, files={"file": ("a.wav", FILE)})

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0)

    async def until_stopping(self) -> None:
        await self.until(lambda: self.app.readiness.phase is Phase.STOPPING)


Test = Callable[[Stop, asyncio.TaskGroup], Coroutine[Any, Any, None]]


def on_stop(test: Test, caplog: pytest.LogCaptureFixture, drain_ms: int = LONG_MS) -> list[str]:
    """Runs a test, which drains the server; returns what the log warns of."""

    async def run() -> None:
        cascade = HeldCascade()
        settings = Settings(server=Server(drain_ms=drain_ms))
        async with asyncio.timeout(PATIENCE_S), live_server(cascade, settings) as server:
            async with (
                httpx.AsyncClient(base_url=server.http_url, timeout=PATIENCE_S) as client,
                asyncio.TaskGroup() as group,
            ):
                await test(Stop(server, cascade, client), group)
            assert server.app.visits.count == 0
            assert cascade.active == 0

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
    assert [record for record in caplog.records if record.exc_info] == []
    return [record.getMessage() for record in caplog.records if record.name != "uvicorn.error"]


def test_what_was_begun_is_finished(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        asked = [group.create_task(stop.speak()), group.create_task(stop.transcribe())]
        await stop.until(lambda: stop.cascade.active == 2)
        draining = group.create_task(stop.app.drain())
        await stop.until_stopping()
        for refused in (await stop.speak(), await stop.transcribe()):
            assert refused.status_code == 503
            assert refused.json()["error"]["message"] == "The server is shutting down."
        ready = await stop.client.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "stopping")
        assert not draining.done()
        stop.cascade.gate.set()
        spoken, heard = [await task for task in asked]
        await draining
        assert (spoken.status_code, len(spoken.content)) == (200, 2 * PCM_BYTES)
        assert heard.json()["text"] == "Good day."

    assert on_stop(test, caplog) == []


@pytest.mark.parametrize("is_hurried", [False, True])
def test_what_lasts_too_long_is_told_so(is_hurried: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        asked = [
            group.create_task(stop.transcribe()),
            group.create_task(stop.speak(response_format="wav")),  # sent when it is whole
        ]
        await stop.until(lambda: stop.cascade.active == 2)
        draining = group.create_task(stop.app.drain())
        if is_hurried:
            await stop.until_stopping()
            # What goes over the network and back is time enough for a drain that waits for nobody.
            assert (await stop.client.get("/health/ready")).status_code == 503
            assert not draining.done()
            stop.app.hurry()
        for task in asked:
            answer = await task
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "server_stopping"
            assert answer.headers["x-request-id"].startswith("req_")
        await draining
        assert [speech.is_aborted for speech in stop.cascade.speeches] == [True]

    assert on_stop(test, caplog, LONG_MS if is_hurried else 1) == []


def test_events_end_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        asked = group.create_task(stop.speak(stream_format="sse"))
        await stop.until(lambda: stop.cascade.active == 1)
        await _until_begun(stop)
        group.create_task(stop.app.drain())
        events = events_of((await asked).text)
        assert len(audio_of(events)) == PCM_BYTES
        assert [event["type"] for event in events] == ["speech.audio.delta", "error"]
        assert events[-1]["error"]["code"] == "server_stopping"

    assert on_stop(test, caplog, 1) == []


def test_bytes_break_off_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        async with stop.client.stream("POST", PATH, json=PCM) as answer:
            pieces = answer.aiter_raw()
            assert await anext(pieces)
            group.create_task(stop.app.drain())
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
                async for _ in pieces:
                    pass

    [told] = on_stop(test, caplog, 1)
    assert "broke off: The server is shutting down" in told


def test_a_batch_has_a_line_for_every_item(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        body = {"items": [{"input": "Two words."}] * 5}
        asked = group.create_task(stop.client.post(BATCH, json=body))
        await stop.until(lambda: stop.cascade.active == 2)
        group.create_task(stop.app.drain())
        lines = [json.loads(line) for line in (await asked).text.splitlines()]
        assert sorted(line["index"] for line in lines) == [0, 1, 2, 3, 4]
        assert {line["error"]["code"] for line in lines} == {"server_stopping"}
        assert len(stop.cascade.speeches) == 2

    assert on_stop(test, caplog, 1) == []


def test_a_body_that_does_not_come_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        never = asyncio.Event()

        async def half() -> AsyncIterator[bytes]:
            yield b'{"input": "Two'
            await never.wait()

        headers = {"Content-Type": "application/json"}
        asked = group.create_task(stop.client.post(PATH, content=half(), headers=headers))
        await stop.until(lambda: stop.app.visits.count == 1)
        await stop.app.drain()
        never.set()
        assert (await asked).status_code == 503

    assert on_stop(test, caplog, 1) == []


def test_a_socket_finishes_its_request_and_begins_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        async with speech_client(stop.socket_url) as idle, speech_client(stop.socket_url) as busy:
            await busy.append("Two words.")
            await busy.say("input.done")
            await busy.append("More, which waits.")
            await busy.until("audio")
            draining = group.create_task(stop.app.drain())
            assert await _until_closed(idle) == (1001, ["session.created", "error"])
            assert not draining.done()
            stop.cascade.gate.set()
            code, kinds = await _until_closed(busy)
            assert (code, kinds[-4:]) == (1001, ["audio", "audio.done", "error", "audio.done"])
            done = [
                came["status"] for came in busy.came if isinstance(came, dict) and "status" in came
            ]
            assert done == ["completed", "failed"]
            assert len(busy.audio) == 2 * PCM_BYTES
            await draining

    assert on_stop(test, caplog) == []


def test_a_socket_is_told_what_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stop: Stop, group: asyncio.TaskGroup) -> None:
        async with speech_client(stop.socket_url) as client:
            await client.append("Two words.")
            await client.until("audio")
            group.create_task(stop.app.drain())
            code, kinds = await _until_closed(client)
            assert (code, kinds[-3:]) == (1001, ["audio", "error", "audio.done"])
            assert _last(client, "error")["code"] == "server_stopping"
            assert _last(client, "audio.done")["status"] == "failed"

    assert on_stop(test, caplog, 1) == []


async def _until_begun(stop: Stop) -> None:
    """The first word has gone: the voice waits at the gate, and the route for the voice."""
    sent = "parley_http_requests_total"
    async with asyncio.timeout(PATIENCE_S):
        while f'{sent}{{method="POST"' not in (await stop.client.get("/metrics")).text:
            pass


async def _until_closed(client: SpeechClient) -> tuple[int | None, list[str]]:
    with pytest.raises(ConnectionClosed):
        await client.until("nothing that there is")
    return client.connection.close_code, client.kinds


def _last(client: SpeechClient, kind: str) -> dict[str, Any]:
    events = [came for came in client.came if isinstance(came, dict) and came["type"] == kind]
    return events[-1]
