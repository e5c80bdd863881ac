"""Bad uploads: each is refused with the field that is at fault, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pipelines.types import StageError
from realtime.http import bodies, lingering
from realtime.http.transcription import form as transcription_form
from realtime.http.transcription import routes as transcriptions
from tests.realtime.audio.sound_files import encoded, hum
from tests.realtime.http.transcription_rig import (
    PATH,
    TRANSLATIONS,
    Line,
    Listener,
    create_app,
    fault,
    form_of,
    post,
)

KEY = "a-key-of-sixteen-characters"
WHOLE = encoded(hum(10.0))


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of these tests reads an answer at once."""
    monkeypatch.setattr(lingering, "LINGER_S", 0.01)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"response_format": "mp3"}, "invalid_value", "response_format"),
        ({"response_format": "diarized_json"}, "invalid_value", "response_format"),
        ({"temperature": "2"}, "invalid_value", "temperature"),
        ({"temperature": "nan"}, "invalid_value", "temperature"),
        ({"temperature": "warm"}, "invalid_value", "temperature"),
        ({"language": "english"}, "invalid_value", "language"),
        ({"language": "e1"}, "invalid_value", "language"),
        ({"prompt": "a" * 8001}, "invalid_value", "prompt"),
        ({"prompt": "a" * 70_000}, "invalid_value", "prompt"),
        ({"stream": "perhaps"}, "invalid_value", "stream"),
        ({"stream": "true", "response_format": "srt"}, "invalid_value", "response_format"),
        (
            {"timestamp_granularities[]": "word"},
            "invalid_value",
            "timestamp_granularities",
        ),
        (
            {"timestamp_granularities[]": "letter", "response_format": "verbose_json"},
            "invalid_value",
            "timestamp_granularities[0]",
        ),
    ],
)
def test_a_bad_field_is_named(fields: dict[str, str], code: str, param: str) -> None:
    cascade = Listener()
    assert fault(post(cascade, fields)) == (400, code, param)
    assert cascade.recognise_requests == []


@pytest.mark.parametrize(
    "fields", [{"temperature": ""}, {"temperature": "0.5", "chunking_strategy": "auto"}, {"x": "y"}]
)
def test_what_makes_no_difference_is_taken(fields: dict[str, str]) -> None:
    assert post(Listener(), {**fields, "include[]": "logprobs"}).status_code == 200


@pytest.mark.parametrize("path", [PATH, TRANSLATIONS])
@pytest.mark.parametrize(
    "file",
    [
        b"just some text\n" * 100,
        bytes(10_000),
        WHOLE[: len(WHOLE) // 2],
        encoded(hum(10.0), "mp3")[:20_000],
        encoded(hum(10.0), "mp4")[:20_000],
    ],
)
def test_what_is_no_whole_sound_file_is_refused(path: str, file: bytes) -> None:
    cascade = Listener()
    assert fault(post(cascade, file=file, path=path)) == (400, "invalid_audio", "file")
    assert cascade.active == 0


def test_damage_that_shows_in_a_stream_is_told_there() -> None:
    cut = encoded(hum(10.0), "mp3")[:20_000]
    assert fault(post(Listener(), {"stream": "true"}, file=cut))[0] == 400


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"file": ("a.wav", b"")}, "invalid_value"),
        ({"audio": ("a.wav", WHOLE)}, "missing_required_parameter"),
        ({"file": (None, "a text")}, "invalid_type"),
        ([("file", ("a.wav", WHOLE)), ("file", ("b.wav", WHOLE))], "invalid_form"),
    ],
)
def test_there_must_be_one_file(files: Any, code: str) -> None:
    assert fault(post(files=files)) == (400, code, "file")


def test_a_body_of_another_type_is_refused() -> None:
    json = {"content-type": "application/json"}
    assert fault(post(content=b"{}", headers=json)) == (415, "unsupported_media_type", "file")
    bare = {"content-type": "multipart/form-data"}
    assert fault(post(content=b"{}", headers=bare)) == (415, "unsupported_media_type", "file")


def test_a_form_without_its_end_is_refused() -> None:
    body, kind = form_of({}, WHOLE)
    answer = post(content=body[: len(body) // 2], headers={"content-type": kind})
    assert fault(answer) == (400, "truncated_form", "file")
    assert answer.headers["connection"] == "close"
    answer = post(content=b"nonsense", headers={"content-type": kind})
    assert fault(answer)[0::2] == (400, "file")


@pytest.mark.parametrize(
    "kind",
    [
        "multipart/form-data; boundary=x; charset=undefined",
        "multipart/form-data; boundary=x; charset=utf-7",
        "multipart/form-data; boundary=" + "x" * 5000,
        "multipart/form-data; boundary=\u00fc",
    ],
)
def test_odd_heads_are_refused(kind: str) -> None:
    parts = b'--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n+2AA-\xff\r\n--x--\r\n'
    answer = post(content=parts, headers={"content-type": kind.encode("latin-1")})
    assert answer.status_code in (400, 415)
    assert fault(answer)[2] in ("file", "prompt")


@pytest.mark.parametrize("name", ["prompt", "keywords[]", "model"])
def test_a_text_that_is_no_utf_8_is_refused(name: str) -> None:
    body, kind = form_of({name: "Z\u00fcrich"}, WHOLE)
    latin = body.replace("\u00fc".encode(), b"\xfc")
    answer = post(content=latin, headers={"content-type": f"{kind}; charset=latin-1"})
    assert fault(answer) == (400, "invalid_value", name)
    assert "UTF-8" in answer.json()["error"]["message"]


def test_long_heads_of_parts_are_refused() -> None:
    head = b"--x\r\nX-A: " + b"a" * 2_000_000
    answer = post(content=head, headers={"content-type": "multipart/form-data; boundary=x"})
    assert fault(answer) == (400, "invalid_form", "file")


@pytest.mark.parametrize("size", ["1000000001", "9" * 30])
def test_a_gigabyte_is_refused_before_it_is_read(size: str) -> None:
    async def little() -> AsyncIterator[bytes]:
        yield b"-"  # of all that was announced

    kind = "multipart/form-data; boundary=x"
    answer = post(content=little(), headers={"content-type": kind, "content-length": size})
    assert fault(answer) == (413, "request_too_large", "file")
    assert answer.headers["connection"] == "close"


def test_a_body_that_hides_its_size_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcription_form, "LARGEST_BODY_BYTES", 1_500_000)
    monkeypatch.setattr(lingering, "LINGER_BYTES", 0)
    body, kind = form_of({}, bytes(4_000_000))
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for first in range(0, len(body), 100_000):
            sent += 100_000
            yield body[first : first + 100_000]

    answer = post(content=chunks(), headers={"content-type": kind})
    assert fault(answer) == (413, "request_too_large", "file")
    assert sent <= 1_700_000


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LONGEST_PAUSE_S", 0.01)
    body, kind = form_of({}, WHOLE)

    async def stalled() -> AsyncIterator[bytes]:
        yield body[:1000]
        await asyncio.Event().wait()

    answer = post(content=stalled(), headers={"content-type": kind})
    assert fault(answer) == (408, "request_timeout", "file")


def test_a_client_that_goes_as_it_uploads_is_forgotten() -> None:
    async def main() -> None:
        body, kind = form_of({}, WHOLE)
        line = Line(b"", kind)
        await line.receive()
        line.arrive(body[:1000])
        line.leave()
        async with asyncio.timeout(5):
            await create_app(Listener())(line.scope, line.receive, line.send)
        assert line.sent[0]["status"] == 400

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "status", "param"),
    [
        (StageError("translation_unsupported", "English alone."), 400, "model"),
        (StageError("asr_failed", "The recogniser failed."), 500, None),
    ],
)
def test_what_the_recogniser_says_is_told(error: StageError, status: int, param: str) -> None:
    cascade = Listener(error)
    assert fault(post(cascade, path=TRANSLATIONS)) == (status, error.code, param)
    assert cascade.active == 0


@pytest.mark.parametrize("fields", [{}, {"stream": "true"}, {"response_format": "srt"}])
def test_a_language_that_the_recogniser_does_not_know_is_refused(fields: dict[str, str]) -> None:
    cascade = Listener("", "Good day.", language="en")
    cascade.taught = False
    # Where nothing is said, no language is missed.
    assert post(cascade, {"language": "de", **fields}).status_code == 200
    answer = post(cascade, {"language": "de", **fields})
    assert fault(answer) == (400, "language_unsupported", "language")
    assert "'de'" in answer.json()["error"]["message"]
    assert cascade.active == 0
    assert post(cascade, {"language": "EN", **fields}).status_code == 200


def test_words_that_are_not_known_are_refused() -> None:
    cascade = Listener()
    cascade.knows_words = False
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": "word"}
    assert fault(post(cascade, fields)) == (400, "words_unsupported", "timestamp_granularities")


def test_a_key_is_asked_for_before_the_body_is_read() -> None:
    app = create_app(Listener(), keys=(KEY,))
    assert post(app=app).status_code == 401
    assert post(app=app, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
    broken = post(app=create_app(Listener(), failure="It is out of service."))
    assert fault(broken) == (503, "server_not_ready", None)


def test_too_many_at_once_are_told_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcriptions, "MOST_REQUESTS", 1)

    async def main() -> None:
        cascade = Listener()
        cascade.recognise_gate = asyncio.Event()
        app = create_app(cascade)
        transport = httpx.ASGITransport(app)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
            asyncio.TaskGroup() as tasks,
        ):
            first = tasks.create_task(client.post(PATH, files={"file": ("a.wav", WHOLE)}))
            await cascade.has_heard.wait()
            second = await client.post(PATH, files={"file": ("a.wav", WHOLE)})
            assert fault(second)[0] == 429
            assert int(second.headers["retry-after"]) > 0
            cascade.recognise_gate.set()
            assert (await first).status_code == 200
            assert (await client.post(PATH, files={"file": ("a.wav", WHOLE)})).status_code == 200

    asyncio.run(main())
