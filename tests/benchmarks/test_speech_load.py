"""What the speech benchmark computes from what it is sent, in exact time."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import speech
from benchmarks.speech import SENTENCES, Run, Target, endpoint_of, measure, texts
from pipelines.fakes.virtual_time import run_virtual

TARGET = Target("http://stub/v1/audio/speech", {"model": "m", "response_format": "pcm"})
SECOND = bytes(2 * 24_000)


class Sound(httpx.AsyncByteStream):
    """(after, bytes), one after another; then it breaks, if it is to."""

    def __init__(self, pieces: list[tuple[float, bytes]], breaks: bool) -> None:
        self._pieces, self._breaks = pieces, breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for after_s, piece in self._pieces:
            await asyncio.sleep(after_s)
            yield piece
        if self._breaks:
            raise httpx.RemoteProtocolError("peer closed connection")


class Stub(httpx.AsyncBaseTransport):
    """A speech server: the answer's head after 50 ms, then the pieces."""

    def __init__(
        self,
        *pieces: tuple[float, bytes],
        status: int = 200,
        kind: str = "audio/pcm",
        breaks: bool = False,
    ) -> None:
        self._pieces, self._status, self._kind, self._breaks = list(pieces), status, kind, breaks
        self.bodies = list[dict[str, Any]]()
        self.busy = self.most_busy = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(await request.aread()))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        await asyncio.sleep(0.05)
        self.busy -= 1
        sound = Sound(self._pieces, self._breaks)
        return httpx.Response(self._status, headers={"content-type": self._kind}, stream=sound)


def load(stub: Stub, concurrency: int, count: int, rate_hz: int = 24_000) -> Run:
    async def main() -> Run:
        async with httpx.AsyncClient(transport=stub) as client:
            wanted = list(itertools.islice(texts(), count))
            target = Target(TARGET.endpoint, TARGET.body, rate_hz)
            return await measure(client, target, concurrency, wanted)

    return run_virtual(main())


def test_rates_and_times_are_those_of_the_clock() -> None:
    # 50 ms to the head, an empty piece, 150 ms to the first sound, 300 ms to the last: 500 ms.
    stub = Stub((0.0, b""), (0.15, SECOND), (0.3, SECOND + SECOND))
    figures = load(stub, concurrency=2, count=6).figures()
    assert stub.most_busy == 2
    assert (figures["requests"], figures["errors"]) == (6, 0)
    assert figures["seconds"] == pytest.approx(1.5)  # three rounds of two
    assert figures["requests_per_s"] == pytest.approx(4.0)
    assert figures["first_audio_ms"]["median"] == pytest.approx(200.0)
    assert figures["real_time_factor"]["p95"] == pytest.approx(0.5 / 3)
    assert figures["audio_s_per_s"] == pytest.approx(6 * 3 / 1.5)
    slower = load(Stub((0.15, SECOND)), 1, 1, rate_hz=48_000).figures()
    assert slower["real_time_factor"]["median"] == pytest.approx(0.2 / 0.5)


def test_every_request_asks_for_another_text_with_the_same_fields() -> None:
    stub = Stub((0.0, SECOND))
    load(stub, concurrency=4, count=20)
    assert len({body["input"] for body in stub.bodies}) == 20
    assert {body["model"] for body in stub.bodies} == {"m"}
    every = list(texts())
    assert len(set(every)) == len(every) == len(SENTENCES) * (len(SENTENCES) - 1)
    assert all(12 <= len(text.split()) <= 30 for text in every)


@pytest.mark.parametrize(
    ("stub", "told"),
    [
        (Stub((0.0, b'{"error": 1}'), status=503, kind="application/json"), '503: {"error": 1}'),
        (Stub((0.0, b"RIFF"), kind="audio/wav"), "the answer is audio/wav, and not pcm"),
        (Stub((0.0, SECOND), breaks=True), "RemoteProtocolError: peer closed connection"),
        (Stub(), "the answer has 0 bytes, which are no samples"),
        (Stub((0.0, b"123")), "the answer has 3 bytes, which are no samples"),
    ],
)
def test_what_goes_wrong_is_an_error_and_no_figure(stub: Stub, told: str) -> None:
    run = load(stub, concurrency=2, count=3)
    assert (run.spoken, run.errors) == ([], [told] * 3)
    figures = run.figures()
    assert (figures["errors"], figures["requests_per_s"]) == (3, 0.0)
    assert figures["first_audio_ms"] == {} and figures["error_messages"] == [told]


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("ws://127.0.0.1:8000/v1/realtime", "http://127.0.0.1:8000/v1/audio/speech"),
        ("wss://voice.example/v1/realtime", "https://voice.example/v1/audio/speech"),
        ("http://127.0.0.1:8091", "http://127.0.0.1:8091/v1/audio/speech"),
        ("https://voice.example/tts/v1/", "https://voice.example/tts/v1/audio/speech"),
        ("http://h:1/v1/audio/speech", "http://h:1/v1/audio/speech"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1/audio/speech"),
    ],
)
def test_a_server_is_found_by_any_of_its_addresses(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint


def test_the_program_prints_a_row_for_each_concurrency_and_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub, made = Stub((0.0, SECOND)), httpx.AsyncClient
    monkeypatch.setattr(
        httpx, "AsyncClient", lambda **wanted: made(transport=stub, headers=wanted["headers"])
    )
    target = tmp_path / "speech.json"
    line = ["speech", "--url", "http://stub", "--concurrency", "1", "2", "--requests", "2"]
    monkeypatch.setattr(sys, "argv", [*line, "--extra", '{"stream": true}', "--json", str(target)])
    speech.main()
    assert len(stub.bodies) == 1 + 2 + 2
    assert stub.bodies[0] == {
        "model": "parley-tts",
        "voice": "alloy",
        "response_format": "pcm",
        "stream": True,
        "input": next(texts()),
    }
    runs = json.loads(target.read_text())["runs"]
    assert [(run["concurrency"], run["requests"]) for run in runs] == [(1, 2), (2, 2)]
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("at once") and table[1].startswith("1 ") and len(table) == 4


def test_more_requests_than_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["speech", "--url", "http://stub", "--requests", "400"])
    with pytest.raises(SystemExit):
        speech.main()
