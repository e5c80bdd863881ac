"""`/v1/audio/voices`: what is answered to good uploads, to bad ones, and to endless ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from realtime.http import bodies, lingering
from realtime.http.readiness import Phase
from realtime.http.reception import Refused
from realtime.http.voices.index import VoiceIndex
from realtime.voices.shelf import VoiceShelf
from tests.realtime.http.voice_desk import CONSENT, DATA, GOOD, PATH, Desk
from tests.realtime.voices.recordings import recording

FORM = {"Content-Type": "multipart/form-data; boundary=b"}
MIB = 2**20


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "voices")
    yield desk
    desk.shelf.close()


def fault(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    return answer.status_code, error["code"], error["param"]


def test_a_voice_is_added_shown_listed_and_deleted(desk: Desk) -> None:
    made = desk.upload({**GOOD, "transcript": "Hello."})
    assert made.status_code == 200
    body = made.json()
    assert body.pop("created_at") > 1_700_000_000
    assert body == {
        "object": "audio.voice",
        "id": "anna",
        "name": "anna",
        "kind": "uploaded",
        "type": "audio_sample",
        "duration_ms": 1200,
        "transcript": "Hello.",
        "available": True,
        "consent": CONSENT,
    }
    assert desk.ask("GET", f"{PATH}/anna").json() == made.json()
    assert desk.ask("GET", f"{PATH}/Anna").json() == made.json()
    listed = desk.ask("GET").json()
    assert listed["object"] == "list"
    assert [(voice["name"], voice["kind"]) for voice in listed["data"]] == [
        ("default", "configured"),
        ("anna", "uploaded"),
    ]
    assert desk.ask("GET", f"{PATH}/default").json()["kind"] == "configured"
    assert desk.ask("GET", f"{PATH}/Default").json()["name"] == "default"
    gone = desk.ask("DELETE", f"{PATH}/ANNA")
    assert gone.json() == {"object": "audio.voice.deleted", "id": "anna", "deleted": True}
    assert fault(desk.ask("GET", f"{PATH}/anna")) == (404, "voice_not_found", "name")
    assert fault(desk.ask("DELETE", f"{PATH}/anna")) == (404, "voice_not_found", "name")


@pytest.mark.parametrize("copies", [True, False])
def test_the_list_says_whether_a_recording_can_be_copied(desk: Desk, copies: bool) -> None:
    desk.cascade.copies_voices = copies
    assert desk.ask("GET").json()["can_copy"] is copies


def test_the_other_names_of_the_fields_serve_too(desk: Desk) -> None:
    made = desk.upload({**GOOD, "ref_text": "Hello."}, file=("a.wav", DATA, "audio/wav"))
    assert made.status_code == 200 and made.json()["transcript"] == "Hello."


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"consent": CONSENT}, (400, "missing_field", "name")),
        ({**GOOD, "name": "../anna"}, (400, "voice_name_invalid", "name")),
        ({**GOOD, "name": "Default"}, (409, "voice_name_taken", "name")),
        ({**GOOD, "name": "alloy"}, (409, "voice_name_taken", "name")),
        ({**GOOD, "type": "prompt"}, (400, "invalid_value", "type")),
        ({"name": "anna"}, (400, "consent_required", "consent")),
        ({"name": "anna", "consent": "false"}, (400, "consent_required", "consent")),
        ({**GOOD, "transcript": "x" * 5000}, (400, "transcript_invalid", "transcript")),
        ({**GOOD, "transcript": "x" * 70_000}, (400, "invalid_value", "transcript")),
        ({**GOOD, **dict.fromkeys(map(str, range(20)), "")}, (400, "invalid_form", "audio_sample")),
    ],
)
def test_a_field_that_is_wrong_is_named(
    desk: Desk, fields: dict[str, str], expected: tuple[int, str, str]
) -> None:
    assert fault(desk.upload(fields)) == expected
    assert desk.shelf.list() == ()


@pytest.mark.parametrize(
    "data", [b"", b"a text " * 99, DATA[:20], recording(0.1), recording(31), recording(2, 0.0)]
)
def test_a_file_that_is_no_recording_is_refused(desk: Desk, data: bytes) -> None:
    expected = (400, "voice_sample_refused", "audio_sample")
    assert fault(desk.upload(GOOD, data)) == expected
    assert desk.shelf.list() == ()


def test_a_name_is_given_once(desk: Desk) -> None:
    assert desk.upload(GOOD).status_code == 200
    assert fault(desk.upload(GOOD)) == (409, "voice_exists", "name")


def form(*, boundary: str = "b", end: str = "--b--\r\n", file: bytes = DATA) -> bytes:
    head = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in GOOD.items()
    )
    part = '--b\r\nContent-Disposition: form-data; name="audio_sample"; filename="a"\r\n\r\n'
    return (head + part).encode() + file + f"\r\n{end}".encode()


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("application/json", b"{}", (415, "unsupported_media_type")),
        ("multipart/form-data", b"--b--", (415, "unsupported_media_type")),
        ("multipart/form-data; boundary=b", b"", (400, "truncated_form")),
        ("multipart/form-data; boundary=b", form()[:-20], (400, "truncated_form")),
        ("multipart/form-data; boundary=b", form()[:300], (400, "truncated_form")),
        ("multipart/form-data; boundary=b", b"what is this?", (400, "invalid_form")),
        ("multipart/form-data; boundary=" + "b" * 300, form(), (400, "invalid_form")),
        ("multipart/form-data; boundary=b", b"--b--\r\n", (400, "missing_field")),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    desk: Desk, kind: str, body: bytes, expected: tuple[int, str]
) -> None:
    answer = desk.ask("POST", content=body, headers={"Content-Type": kind})
    assert fault(answer)[:2] == expected
    assert fault(answer)[2] in ("audio_sample", "name")


def test_a_form_in_small_pieces_is_the_same(desk: Desk) -> None:
    body = form()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 7):
            yield body[at : at + 7]

    headers = FORM
    assert desk.ask("POST", content=pieces(), headers=headers).status_code == 200


def test_text_that_is_no_text_is_refused(desk: Desk) -> None:
    body = form().replace(CONSENT.encode(), b"\xff\xfe")
    headers = FORM
    answer = desk.ask("POST", content=body, headers=headers)
    assert fault(answer) == (400, "invalid_value", "consent")


def test_a_file_as_plain_text_is_no_file(desk: Desk) -> None:
    answer = desk.ask("POST", data={**GOOD, "audio_sample": "abc"}, files={"x": ("x", b"")})
    assert fault(answer) == (400, "missing_field", "audio_sample")


def test_a_server_that_cannot_copy_says_so_at_once(desk: Desk) -> None:
    assert desk.upload(GOOD).status_code == 200
    desk.cascade.copies_voices = False
    assert fault(desk.upload(GOOD)) == (400, "copying_unsupported", "audio_sample")
    assert [voice["available"] for voice in desk.ask("GET").json()["data"]] == [True, False]


def test_configured_voices_stay(desk: Desk) -> None:
    answer = desk.ask("DELETE", f"{PATH}/default")
    assert fault(answer) == (400, "voice_not_deletable", "name")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_strangers_and_the_early_are_turned_away(tmp_path: Path, method: str) -> None:
    keyed = Desk(tmp_path, keys=("a-key-of-sixteen-characters",))
    assert keyed.ask(method).status_code == 401
    keyed = Desk(tmp_path)
    keyed.readiness.move(Phase.LOADING)
    assert keyed.ask(method).status_code == 503


def test_a_broken_folder_is_told_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = Desk(tmp_path / "file").upload(GOOD)
    assert fault(answer)[:2] == (503, "voices_unavailable")
    assert str(tmp_path) not in answer.text


def test_the_other_routes_find_uploaded_voices(desk: Desk, tmp_path: Path) -> None:
    index = VoiceIndex(desk.shelf)
    assert index.find("anna") is None and index.names() == []
    desk.upload(GOOD)
    assert index.find("anna") is not None and index.names() == ["anna"]
    (tmp_path / "voices.sqlite3").write_bytes(b"no database, but as long as one" * 100)
    broken = VoiceIndex(VoiceShelf(tmp_path))
    for ask in (lambda: broken.find("anna"), broken.names):
        with pytest.raises(Refused) as caught:
            ask()
        assert caught.value.response.status_code == 503


def test_an_announced_gigabyte_is_not_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LINGER_BYTES", 64 * MIB)
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 1024:
            sent += 1
            yield bytes(MIB)

    headers = {
        "Content-Type": "multipart/form-data; boundary=b",
        "Content-Length": str(2**30),
    }
    answer = desk.ask("POST", content=body(), headers=headers)
    assert fault(answer) == (413, "request_too_large", "audio_sample")
    assert answer.headers["connection"] == "close"
    assert sent <= 64


def test_an_endless_upload_is_refused_over_a_real_socket(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that announces no length gets its answer although it has not sent everything."""
    monkeypatch.setattr(lingering, "LINGER_BYTES", 64 * MIB)
    head = form(end="", file=b"")[:-2]
    taken = 0

    def body() -> Iterator[bytes]:
        nonlocal taken
        yield head
        while taken < 1024:
            taken += 1
            yield bytes(MIB)

    async def run() -> httpx.Response:
        async with desk.serve() as url:
            return await asyncio.to_thread(
                httpx.post, url + PATH, content=body(), headers=FORM, trust_env=False
            )

    answer = asyncio.run(run())
    assert fault(answer) == (413, "request_too_large", "audio_sample")
    read = 24 + 64
    assert 24 <= taken < 2 * read  # beside it, what was on its way when the server had enough


def test_uploads_at_once_are_bounded_and_slow_ones_end(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "GRACE_S", 0.2)
    monkeypatch.setattr(lingering, "LINGER_S", 0.01)

    async def body() -> AsyncIterator[bytes]:
        yield b"--b"
        await asyncio.Event().wait()

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(desk.app)
        headers = FORM
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
            asked = [web.post(PATH, content=body(), headers=headers) for _ in range(5)]
            return await asyncio.gather(*asked)

    answers = sorted(map(fault, asyncio.run(run())))
    slow, many = (408, "request_timeout", "audio_sample"), (429, "too_many_uploads", "audio_sample")
    assert answers == [slow] * 4 + [many]
    assert desk.upload(GOOD).status_code == 200
