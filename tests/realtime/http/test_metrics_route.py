"""`/metrics` of a whole server: who may read it, and what a conversation leaves in it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import FakeWriter, Step, words
from pipelines.types import RecogniseRequest, SpeakRequest, WriteRequest
from realtime.app import create_app
from realtime.http.readiness import Phase
from realtime.observe.prometheus import CONTENT_TYPE
from realtime.settings import Server, Settings
from tests.live_server import PATIENCE_S, LiveServer, live_server, silence, tone
from tests.realtime.observe.exposition import Exposition, parse

KEY = "a-key-of-sixteen-characters"


class Scraper:
    """Reads again and again, and sees to it that nothing that is counted becomes less."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last = Exposition()

    async def scrape(self) -> Exposition:
        async with httpx.AsyncClient(base_url=self._url) as client:
            answer = await client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == CONTENT_TYPE
        read = parse(answer.text)
        now, before = read.growing(), self._last.growing()
        assert {key: now.get(key) for key in before if now.get(key, -1.0) < before[key]} == {}
        assert set(self._last.kinds) <= set(read.kinds)
        self._last = read
        return read


async def hear(socket: ClientConnection, wanted: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (event := json.loads(await socket.recv()))["type"] != wanted:
            assert event["type"] != "error", event
    return event


async def say(socket: ClientConnection) -> None:
    for sound in (silence(300), tone(600), silence(1500)):
        audio = base64.b64encode(sound.tobytes()).decode()
        await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))


def answer(request: WriteRequest) -> list[Step]:
    """Briefly to the first turn, at length to the second, which is interrupted."""
    turns = sum(message.role == "user" for message in request.messages)
    return words("A word. " * (40 if turns == 2 else 2))


async def converse(server: LiveServer, scraper: Scraper) -> Exposition:
    """A turn that is answered, and one whose answer is interrupted; what is seen meanwhile."""
    # Without a bound to what waits: what nobody reads any more would hold up the closing.
    async with connect(server.socket_url, compression=None, proxy=None, max_queue=None) as socket:
        await hear(socket, "session.created")
        await say(socket)
        done = await hear(socket, "response.done")
        assert done["response"]["status"] == "completed", done
        during = await scraper.scrape()
        await say(socket)
        await hear(socket, "response.output_audio.delta")
        await say(socket)
        done = await hear(socket, "response.done")
        assert done["response"]["status"] == "cancelled", done
        return during


async def speak_and_recognise(server: LiveServer) -> None:
    """As routes do, for which the server's cascade is the one that is watched."""
    watched = server.app._watched
    speech = watched.speak(SpeakRequest("s1", "tone"))
    await speech.push("Two words.")
    await speech.finish()
    assert [delta async for delta in speech]
    watched.recognise(RecogniseRequest("r1")).abort()


def test_a_conversation_shows_in_the_metrics_and_counts_only_grow() -> None:
    async def run() -> None:
        cascade = FakeCascade(writer=FakeWriter(answer), speaker=FakeSpeaker(ms_per_word=100))
        async with live_server(cascade) as server:
            scraper = Scraper(server.http_url)
            before = await scraper.scrape()
            assert before.value("parley_ready") == 1
            assert before.value("parley_sessions_opened_total") == 0
            during = await converse(server, scraper)
            assert during.value("parley_sessions") == 1
            await speak_and_recognise(server)
            async with asyncio.timeout(PATIENCE_S):
                while server.app.registry.count or cascade.active:
                    await asyncio.sleep(0.01)
            after = await scraper.scrape()
            _check(after)

    asyncio.run(run())


def _check(after: Exposition) -> None:
    for name in ("sessions_opened", "sessions_closed"):
        assert after.value(f"parley_{name}_total") == 1, name
    assert after.value("parley_sessions") == 0
    assert after.value("parley_sessions_crashed_total") == 0
    assert after.value("parley_vad_speech_started_total") >= 3
    assert after.value("parley_vad_speech_stopped_total") >= 2
    assert after.value("parley_turns_committed_total") >= 2
    assert after.value("parley_responses_total", status="completed") == 1
    assert after.value("parley_responses_total", status="cancelled") >= 1
    for name in ("turn_end_to_first_audio", "speech_end_to_first_audio", "voice_first_audio"):
        assert after.value(f"parley_{name}_seconds_count") >= 2, name
    assert after.value("parley_speech_real_time_factor_count") == 1
    assert after.value("parley_speech_first_audio_seconds_count") == 1
    assert after.value("parley_speech_requests_total", outcome="completed") == 1
    assert after.value("parley_recognitions_total", outcome="aborted") >= 1
    assert after.value("parley_recognition_seconds_count") >= 2
    assert after.value("parley_judge_seconds_count") >= 2
    assert after.value("parley_audio_spoken_seconds_total", use="speech") == pytest.approx(0.2)
    assert after.value("parley_audio_spoken_seconds_total", use="reply") > 0.3
    assert after.value("parley_audio_recognised_seconds_total") > 1
    assert after.value("parley_stage_up", stage="fake-speaker") == 1
    assert after.value("parley_stage_aborts_total", stage="reply") >= 1
    spoken = 3 * 2.4 * 48_000 * 4 / 3  # three times 2.4 s of PCM, in base64
    assert after.value("parley_received_bytes_total", connection="websocket") > spoken
    assert after.value("parley_sent_bytes_total", connection="websocket") > 20_000
    answered = {"method": "GET", "route": "/v1/realtime", "status": "101"}
    assert after.value("parley_http_requests_total", **answered) == 1
    scraped = {"method": "GET", "route": "/metrics", "status": "200"}
    assert after.value("parley_http_requests_total", **scraped) == 2  # this one is not over yet


def test_refusals_are_counted_by_their_codes() -> None:
    async def run() -> None:
        settings = Settings(server=Server(keys=(KEY,), max_sessions=1))
        async with live_server(FakeCascade(), settings) as server:
            headers = {"Authorization": f"Bearer {KEY}"}
            async with httpx.AsyncClient(base_url=server.http_url) as client:
                for path in ("/metrics", "/v1/models", "/v1/models/x"):
                    assert (await client.get(path)).status_code == 401
                assert (await client.head("/metrics")).status_code == 401
                assert (await client.get("/v1/models/x", headers=headers)).status_code == 404
                assert (await client.get("/nothing", headers=headers)).status_code == 404
                with pytest.raises(InvalidStatus):
                    await connect(server.socket_url, proxy=None)
                async with connect(
                    server.socket_url, additional_headers=headers, proxy=None
                ) as first:
                    await hear(first, "session.created")
                    async with connect(
                        server.socket_url, additional_headers=headers, proxy=None
                    ) as second:
                        assert json.loads(await second.recv())["type"] == "error"
                head = await client.head("/metrics", headers=headers)
                assert (head.status_code, head.text) == (200, "")
                assert int(head.headers["content-length"]) > 1000
                read = parse((await client.get("/metrics", headers=headers)).text)
        name = "parley_http_refusals_total"
        assert read.value(name, code="invalid_api_key") == 5
        assert read.value(name, code="model_not_found") == 1
        assert read.value("parley_sessions_refused_total", code="too_many_sessions") == 1
        model = {"method": "GET", "route": "/v1/models/{model_id:path}"}
        requests = "parley_http_requests_total"
        assert read.value(requests, **model, status="401") == 1
        assert read.value(requests, **model, status="404") == 1
        assert read.value(requests, method="GET", route="other", status="404") == 1
        assert read.value(requests, method="GET", route="/v1/realtime", status="401") == 1
        assert read.value(requests, method="GET", route="/v1/realtime", status="101") == 2

    asyncio.run(run())


def test_the_metrics_tell_whether_the_server_is_ready() -> None:
    async def run() -> None:
        app = create_app(Settings(), cascade=FakeCascade())
        transport = httpx.ASGITransport(app.asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for phase, ready in ((Phase.LOADING, 0), (Phase.READY, 1), (Phase.STOPPING, 0)):
                app.readiness.move(phase)
                answer = await client.get("/metrics")
                assert answer.status_code == 200
                assert parse(answer.text).value("parley_ready") == ready
            elsewhere = await client.get("/metrics", headers={"Host": "evil.example"})
            assert elsewhere.json()["error"]["code"] == "host_not_allowed"

    asyncio.run(run())
