"""The words in which the audio routes refuse: the field, what it takes, and what came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realtime.http.speech.schema import MAX_INPUT_CHARACTERS
from tests.realtime.audio.sound_files import encoded, hum
from tests.realtime.http.speech_server import (
    BATCH,
    PATH,
    House,
    SpeechServer,
    make_cascade,
    on_routes,
    speak,
)
from tests.realtime.http.test_client_secrets import post as ask_for_a_secret
from tests.realtime.http.transcription_rig import Listener, post
from tests.realtime.http.voice_desk import GOOD, Desk

FORMATS = "expected one of mp3, opus, aac, flac, wav, pcm, but got"


def message_of(answer: Any) -> str:
    assert answer.status_code == 400
    return answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"top_p": 0},
            "Invalid 'top_p': expected a number above 0 and at most 1, but got 0 instead.",
        ),
        ({"speed": 9}, "Invalid 'speed': expected a number from 0.25 to 4, but got 9 instead."),
        (
            {"seed": -1},
            "Invalid 'seed': expected an integer from 0 to 9223372036854775807, but got -1 "
            "instead.",
        ),
        (
            {"response_format": "ogg"},
            f"Invalid 'response_format': {FORMATS} 'ogg' instead. Ogg is sent as 'opus'.",
        ),
        ({"response_format": "MP3"}, f"Invalid 'response_format': {FORMATS} 'MP3' instead."),
        (
            {"stream_format": "events"},
            "Invalid 'stream_format': expected one of audio, sse, but got 'events' instead.",
        ),
        (
            {"input": "a" * (MAX_INPUT_CHARACTERS + 1)},
            "Invalid 'input': expected at most 100000 characters.",
        ),
        ({"voice": ""}, "Invalid 'voice': expected at least 1 character."),
        (
            {"references": [{"data": "QUJD"}] * 2},
            "Invalid 'references': expected at most 1 entry.",
        ),
    ],
)
def test_of_speech(fields: dict[str, Any], message: str) -> None:
    assert message_of(speak(None, None, **{"input": "Hi.", **fields})) == message


@pytest.mark.parametrize("path", [PATH, BATCH])
@pytest.mark.parametrize(
    ("content", "begin"),
    [
        (b"{", "The body is not valid JSON: "),
        (b"[]", "The body must be a JSON object"),
        (b'{"a": [' + b"1," * 60_000 + b"1]}", "The body is too large: "),
    ],
)
def test_of_a_body_that_is_no_json(path: str, content: bytes, begin: str) -> None:
    async def ask(server: SpeechServer) -> Any:
        headers = {"content-type": "application/json"}
        return await server.client.post(path, content=content, headers=headers)

    assert message_of(on_routes(ask, House(make_cascade()))).startswith(begin)


def test_of_the_body_of_a_client_secret() -> None:
    answer = ask_for_a_secret(b"{")
    assert message_of(answer).startswith("The body is not valid JSON: ")


def test_of_a_batch() -> None:
    async def ask(server: SpeechServer) -> None:
        answer = await server.client.post(BATCH, json={"items": []})
        assert message_of(answer) == "Invalid 'items': expected at least 1 entry."
        for fault, expected in [
            ({"input": "Hi.", "top_p": 2}, "'items[0].top_p': expected a number above 0"),
            ({"input": " "}, "'items[0].input': there is no text to speak."),
            ({"input": "Hi.", "response_format": "ogg"}, f"'items[0].response_format': {FORMATS}"),
        ]:
            (line,) = await server.batch(items=[fault])
            assert line["error"]["message"].startswith(f"Invalid {expected}")

    on_routes(ask, House(make_cascade()))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"stream": "perhaps"},
            "Invalid 'stream': expected true or false, but got 'perhaps' instead.",
        ),
        *(
            (
                {"temperature": value},
                f"Invalid 'temperature': expected a number from 0 to 1, but got '{value}' instead.",
            )
            for value in ("2", "warm", "nan")
        ),
        (
            {"response_format": "mp3"},
            "Invalid 'response_format': expected one of json, text, srt, verbose_json, vtt, but "
            "got 'mp3' instead.",
        ),
        (
            {"stream": "true", "response_format": "srt"},
            "Invalid 'response_format': expected one of json, text, but got 'srt' instead. Others "
            "are written whole: leave 'stream' out.",
        ),
        (
            {"language": "xx"},
            "Invalid 'language': expected a language's code of ISO 639-1, such as 'en' or 'de', "
            "but got 'xx' instead.",
        ),
        (
            {"languages[]": ["en", "qq"]},
            "Invalid 'languages[1]': expected a language's code of ISO 639-1, such as 'en' or "
            "'de', but got 'qq' instead.",
        ),
    ],
)
def test_of_a_form(fields: dict[str, Any], message: str) -> None:
    assert message_of(post(fields=fields)) == message


@pytest.mark.parametrize("code", ["en", "DE", "zh", "jw", "yue", "haw"])
def test_languages_that_whisper_knows_are_taken(code: str) -> None:
    cascade = Listener()
    assert post(cascade, {"language": code}).status_code == 200
    assert {request.language for request in cascade.recognise_requests} == {code.lower()}


def test_of_an_uploaded_file() -> None:
    assert message_of(post(file=b"just some text\n" * 100)).startswith(
        "Invalid 'file': it cannot be read as audio"
    )
    whole = encoded(hum(1.0))
    twice = [("file", ("a.wav", whole)), ("file", ("b.wav", whole))]
    assert message_of(post(files=twice)) == (
        "Invalid 'file': expected one file, but got several. Send each by itself."
    )
    assert message_of(post(fields={"prompt": "a" * 70_000})) == (
        "Invalid 'prompt': expected at most 65536 bytes of text."
    )
    many = {f"field-{number}": "a" for number in range(300)}
    assert message_of(post(fields=many)) == "The form has more than 256 fields beside 'file'."


def test_who_cannot_copy_is_told_what_can(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.cascade.copies_voices = False
    assert "(stages.speaker of kind higgs)" in message_of(desk.upload(GOOD))
    answer = speak(make_cascade(copies_voices=False), input="Hi.", ref_audio="QUJD")
    assert "(stages.speaker of kind higgs)" in message_of(answer)
