"""Bad requests for speech: each is told its field in OpenAI's envelope, before anything is said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from pipelines.types import StageError, VoiceSample
from realtime.http import bodies, lingering
from realtime.http.readiness import Phase, Readiness
from realtime.http.speech import body as speech_body
from realtime.http.speech import making as speech_making
from realtime.http.speech import routes as speech_routes
from realtime.http.speech.schema import MAX_INPUT_CHARACTERS
from tests.realtime.http.speech_server import (
    BATCH,
    PATH,
    House,
    Shelf,
    SpeechServer,
    events_of,
    fault,
    make_cascade,
    on_routes,
    speak,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade

WHAT_IS_WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"input": ""}, "invalid_value", "input"),
    ({"input": " \n\t"}, "invalid_value", "input"),
    ({"input": None}, "invalid_type", "input"),
    ({"input": 5}, "invalid_type", "input"),
    ({"input": ["a"]}, "invalid_type", "input"),
    ({"input": "a" * (MAX_INPUT_CHARACTERS + 1)}, "invalid_value", "input"),
    ({"input": "***"}, "input_not_speakable", "input"),
    ({"model": 1}, "invalid_type", "model"),
    ({"voice": "nobody"}, "unknown_voice", "voice"),
    ({"voice": "x" * 201}, "invalid_value", "voice"),
    ({"voice": ""}, "invalid_value", "voice"),
    ({"voice": {}}, "missing_required_parameter", "voice.id"),
    ({"voice": {"id": 7}}, "invalid_type", "voice.id"),
    ({"voice": {"id": "nobody"}}, "unknown_voice", "voice"),
    ({"voice": 7}, "invalid_type", "voice"),
    ({"response_format": "ogg"}, "invalid_value", "response_format"),
    ({"response_format": "MP3"}, "invalid_value", "response_format"),
    ({"response_format": 3}, "invalid_type", "response_format"),
    ({"speed": 9}, "invalid_value", "speed"),
    ({"speed": 0.2}, "invalid_value", "speed"),
    ({"speed": "1"}, "invalid_type", "speed"),
    ({"speed": True}, "invalid_type", "speed"),
    ({"stream_format": "events"}, "invalid_value", "stream_format"),
    ({"stream": "yes"}, "invalid_type", "stream"),
    ({"seed": -1}, "invalid_value", "seed"),
    ({"seed": 1.5}, "invalid_type", "seed"),
    ({"seed": 2**63}, "invalid_value", "seed"),
    ({"temperature": -0.1}, "invalid_value", "temperature"),
    ({"temperature": 2.5}, "invalid_value", "temperature"),
    ({"top_p": 0}, "invalid_value", "top_p"),
    ({"top_p": 1.1}, "invalid_value", "top_p"),
    ({"top_k": -2}, "invalid_value", "top_k"),
    ({"max_new_tokens": 0}, "invalid_value", "max_new_tokens"),
    ({"initial_codec_chunk_frames": -1}, "invalid_value", "initial_codec_chunk_frames"),
    ({"instructions": 1}, "invalid_type", "instructions"),
    ({"references": {}}, "invalid_type", "references"),
    ({"references": ["a"]}, "invalid_type", "references[0]"),
    ({"references": [{}]}, "invalid_value", "references[0]"),
    ({"references": [{"text": "words"}]}, "invalid_value", "references[0]"),
    ({"references": [{"data": "QUJD", "audio_path": "/a"}]}, "invalid_value", "references[0]"),
    ({"references": [{"data": "QUJD"}] * 2}, "invalid_value", "references"),
    ({"references": [{"data": "QUJD", "text": 1}]}, "invalid_type", "references[0].text"),
    ({"references": [{"data": 1}]}, "invalid_type", "references[0].data"),
    ({"references": [{"data": "not base64!"}]}, "invalid_base64", "references[0].data"),
    ({"references": [{"data": "QUJ"}]}, "invalid_base64", "references[0].data"),
    ({"references": [{"data": "QUé="}]}, "invalid_base64", "references[0].data"),
    ({"references": [{"data": ""}]}, "invalid_base64", "references[0].data"),
    ({"references": [{"data": "data:audio/wav,abc"}]}, "invalid_value", "references[0].data"),
    ({"references": [{"data": "data:;base64,???"}]}, "invalid_base64", "references[0].data"),
    ({"references": [{"audio_url": "a.wav"}]}, "invalid_value", "references[0].audio_url"),
    (
        {"references": [{"audio_url": "http://10.0.0.1/"}]},
        "reference_unreachable",
        "references[0].audio_url",
    ),
    (
        {"references": [{"audio_path": "/etc/passwd"}]},
        "path_not_allowed",
        "references[0].audio_path",
    ),
    ({"references": [{"audio_path": ""}]}, "invalid_value", "references[0].audio_path"),
    ({"ref_audio": "../joe.wav"}, "path_not_allowed", "ref_audio"),
    ({"ref_audio": "file://"}, "invalid_value", "ref_audio"),
    ({"ref_audio": "file://elsewhere/a.wav"}, "invalid_value", "ref_audio"),
    ({"ref_audio": "file://localhost"}, "invalid_value", "ref_audio"),
    ({"ref_audio": "joe.wav"}, "invalid_base64", "ref_audio"),
    ({"ref_audio": "QUJD", "references": [{"data": "QUJD"}]}, "invalid_value", "ref_audio"),
    ({"ref_text": "words"}, "invalid_value", "ref_text"),
]


def test_every_fault_is_told_with_its_field() -> None:
    cascade = make_cascade()

    async def ask(server: SpeechServer) -> None:
        for fields, code, field in WHAT_IS_WRONG:
            answer = await server.speak(**({"input": "Good day."} | fields))
            assert fault(answer) == (400, code, field), fields
            assert len(answer.content) < 3000

    on_routes(ask, House(cascade))
    assert cascade.speaker.made_words == 0


def test_whoever_names_an_unknown_voice_is_told_the_known_ones() -> None:
    shelf = Shelf({"mine": VoiceSample(b"mine"), "yours": VoiceSample(b"yours")})
    message = speak(None, shelf, input="Hi.", voice="me").json()["error"]["message"]
    assert "'me'" in message
    for name in ("'tone'", "'bell'", "'mine'", "'yours'", "'alloy'"):
        assert name in message


def test_of_very_many_voices_only_some_are_told() -> None:
    shelf = Shelf({f"voice-{number}": VoiceSample(b"") for number in range(1000)})
    message = speak(None, shelf, input="Hi.", voice="me").json()["error"]["message"]
    assert "(and 952 more)" in message
    assert len(message) < 1500


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"ref_audio": "QUJD"}, "ref_audio"),
        ({"references": [{"data": "QUJD"}]}, "references[0]"),
        ({"references": [{"audio_url": "http://x.example/"}]}, "references[0]"),
        ({"voice": "mine"}, "voice"),
    ],
)
def test_a_voice_that_copies_no_others_is_not_asked_to(fields: dict[str, Any], field: str) -> None:
    shelf = Shelf({"mine": VoiceSample(b"mine")})
    answer = speak(make_cascade(copies_voices=False), shelf, input="Hi.", **fields)
    assert fault(answer) == (400, "copying_unsupported", field)
    assert shelf.fetched == []


@pytest.mark.parametrize(
    ("fields", "code", "expected"),
    [
        ({"ref_audio": "QUJD"}, "voice_sample_refused", (400, "ref_audio")),
        (
            {"references": [{"data": "QUJD"}]},
            "voice_sample_refused",
            (400, "references[0].data"),
        ),
        ({"voice": "mine"}, "voice_sample_refused", (400, "voice")),
        ({"voice": "mine"}, "tts_text_too_long", (400, "input")),
        ({}, "tts_text_too_long", (400, "input")),
        ({}, "tts_failed", (500, None)),
    ],
)
@pytest.mark.parametrize("way", [{}, {"stream_format": "sse"}, {"response_format": "wav"}])
def test_what_a_stage_says_before_the_first_sound_is_an_answer_with_its_status(
    fields: dict[str, Any], code: str, expected: tuple[int, str | None], way: dict[str, Any]
) -> None:
    cascade = ScriptedCascade()
    cascade.speech_words = 0
    cascade.speech_error = StageError(code, "The voice says why.")
    shelf = Shelf({"mine": VoiceSample(b"mine")})
    answer = speak(cascade, shelf, input="Hi.", **fields, **way)
    assert fault(answer) == (expected[0], code, expected[1])
    assert answer.json()["error"]["message"] == "The voice says why."


def test_a_failure_behind_the_first_sound_is_an_event() -> None:
    cascade = make_cascade(fail_after_words=2)
    text = speak(cascade, input="One two three.", stream_format="sse", response_format="pcm").text
    *deltas, last = events_of(text)
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert last["type"] == "error"
    assert (last["error"]["code"], last["error"]["type"]) == ("tts_failed", "server_error")


def test_a_file_whose_making_fails_is_an_error_and_no_file() -> None:
    answer = speak(make_cascade(fail_after_words=2), input="One two three.", response_format="wav")
    assert fault(answer) == (500, "tts_failed", None)


def test_a_fault_of_the_servers_own_tells_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Shelf):
        def names(self) -> list[str]:
            raise OSError("the disk at /var/lib is gone")

    answer = speak(None, Broken(), input="Hi.", voice="me")
    assert fault(answer) == (500, "speech_failed", None)
    assert "disk" not in answer.text
    assert "the disk at /var/lib is gone" in caplog.text


def test_a_voice_that_stays_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_making, "SOUND_TIMEOUT_S", 0.01)
    cascade = ScriptedCascade()
    cascade.speech_gate = asyncio.Event()
    assert fault(speak(cascade, input="Hi.")) == (504, "speech_timeout", None)
    assert cascade.speeches[0].is_aborted


def post(
    content: Any, headers: dict[str, str] | None = None, *, path: str = PATH, **house: Any
) -> httpx.Response:
    async def ask(server: SpeechServer) -> httpx.Response:
        types = {"content-type": "application/json"}
        return await server.client.post(path, content=content, headers=types | (headers or {}))

    return on_routes(ask, House(make_cascade(), **house))


@pytest.mark.parametrize("path", [PATH, BATCH])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"text"', b'{"input": "a", "input": "b"}', b'{"input": "\\ud800"}']
    + [b'{"input": "\xff"}', b'{"speed": NaN}', b"[" * 100_000, b'{"a":' * 1000]
    + [b'{"a": [' + b"1," * 60_000 + b"1]}"],
)
def test_what_is_no_json_object_is_refused(content: bytes, path: str) -> None:
    assert fault(post(content, path=path)) == (400, "invalid_json", None)


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
def test_another_type_of_body_is_refused(kind: str) -> None:
    answer = post(b'{"input": "Hi."}', {"content-type": kind})
    assert fault(answer) == (415, "unsupported_media_type", None)
    assert answer.headers["connection"] == "close"


def test_a_body_without_an_input_is_refused() -> None:
    assert fault(post(b"{}")) == (400, "missing_required_parameter", "input")


@pytest.mark.parametrize("declares", [True, False])
def test_a_body_that_is_too_large_is_not_read_to_its_end(
    declares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech_body, "MAX_BODY_BYTES", 10_000)
    monkeypatch.setattr(lingering, "LINGER_BYTES", 20_000)
    sent: list[int] = []

    async def body() -> Any:
        for _ in range(1000):
            sent.append(1)
            yield b" " * 1000

    headers = {"content-length": "1000000"} if declares else None
    assert fault(post(body(), headers)) == (413, "request_too_large", None)
    assert len(sent) <= 35


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE_S", 0.01)
    monkeypatch.setattr(lingering, "LINGER_S", 0.01)

    async def body() -> Any:
        yield b"{"
        await asyncio.Event().wait()

    assert fault(post(body())) == (408, "request_timeout", None)


@pytest.mark.parametrize("path", [PATH, BATCH])
def test_whoever_has_no_key_is_not_read(path: str) -> None:
    key = "a-key-of-sixteen-characters"
    refused = post(b"not even JSON", keys=(key,), path=path)
    assert fault(refused)[0] == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    body = json.dumps({"input": "Hi.", "items": [{"input": "Hi."}]}).encode()
    admitted = post(body, {"authorization": f"Bearer {key}"}, keys=(key,), path=path)
    assert admitted.status_code == 200


@pytest.mark.parametrize("path", [PATH, BATCH])
def test_a_server_that_cannot_serve_says_when_to_come_again(path: str) -> None:
    houses: list[dict[str, Any]] = [
        {"readiness": Readiness()},
        {"failure": lambda: "The voice is gone."},
    ]
    for house in houses:
        answer = post(b"{}", path=path, **house)
        assert fault(answer) == (503, "server_not_ready", None)
        assert int(answer.headers["retry-after"]) > 0


def test_a_page_from_elsewhere_may_not_ask() -> None:
    answer = post(b'{"input": "Hi."}', {"origin": "https://elsewhere.example"})
    assert fault(answer) == (403, "origin_not_allowed", None)


def test_too_many_at_once_are_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_routes, "MOST_REQUESTS", 2)
    cascade = ScriptedCascade()
    cascade.speech_gate = asyncio.Event()

    async def ask(server: SpeechServer) -> None:
        assert cascade.speech_gate is not None
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(server.speak(input="Hi.")) for _ in range(2)]
            while cascade.active < 2:
                await asyncio.sleep(0)
            for path in (PATH, BATCH):
                answer = await server.client.post(path, json={"input": "Hi."})
                assert fault(answer) == (429, "too_many_requests", None)
                assert int(answer.headers["retry-after"]) > 0
            cascade.speech_gate.set()
        assert [task.result().status_code for task in asked] == [200, 200]
        # Refusals give their places back, too.
        for _ in range(3):
            assert fault(await server.speak(speed=9))[0] == 400
        assert (await server.speak(input="Hi.")).status_code == 200

    on_routes(ask, House(cascade))


def test_readiness_is_asked_at_every_request() -> None:
    readiness = Readiness(Phase.READY)

    async def ask(server: SpeechServer) -> list[int]:
        first = await server.speak(input="Hi.")
        readiness.move(Phase.STOPPING)
        return [first.status_code, (await server.speak(input="Hi.")).status_code]

    assert on_routes(ask, House(make_cascade(), readiness=readiness)) == [200, 503]
