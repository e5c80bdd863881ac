"""`POST /v1/audio/transcriptions` and `/translations`: what is heard, and how it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import numpy as np
import pytest

from pipelines.types import ANY_LANGUAGE, HEARING_RATE_HZ, StageError, Urgency
from tests.realtime.audio.sound_files import KINDS, encoded, hum
from tests.realtime.http.transcription_rig import (
    PATH,
    TRANSLATIONS,
    Line,
    Listener,
    create_app,
    form_of,
    post,
    talk,
)

LEFT_S = 5.0  # a deadline for what takes no time


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.text.split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_file_becomes_text() -> None:
    cascade = Listener()
    answer = post(cascade, {"model": "whisper-1"})
    assert answer.status_code == 200
    assert answer.json() == {"text": "Good day.", "usage": {"type": "duration", "seconds": 2.0}}
    assert answer.headers["x-request-id"].startswith("req_")
    [request] = cascade.recognise_requests
    assert (request.language, request.urgency) == (ANY_LANGUAGE, Urgency.STEADY)
    assert not request.wants_words and not request.translates
    assert np.abs(cascade.heard[0] - hum(2.0)).max() < 1e-3
    assert cascade.active == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_container_is_heard(kind: str) -> None:
    cascade = Listener()
    assert post(cascade, file=encoded(hum(2.0), kind)).json()["text"] == "Good day."
    assert len(cascade.heard[0]) / HEARING_RATE_HZ == pytest.approx(2.0, abs=0.1)


def test_language_and_likely_words_are_passed_on() -> None:
    cascade = Listener()
    post(cascade, {"language": "DE", "prompt": "Parley", "keywords[]": ["Higgs", "Silero"]})
    post(cascade, {"languages[]": ["fr"], "language": ""})
    post(cascade, {"languages[]": ["fr", "de"]})
    post(cascade, {"language": "nb"})
    asked = [(request.language, request.prompt) for request in cascade.recognise_requests]
    assert asked[:3] == [("de", "Parley Higgs, Silero"), ("fr", ""), (ANY_LANGUAGE, "")]
    assert asked[3] == ("no", "")  # as models call Norwegian


def test_the_routes_describe_their_forms() -> None:
    app = create_app(Listener())
    for path, more in ((PATH, {"stream", "timestamp_granularities"}), (TRANSLATIONS, set())):
        body = app.openapi()["paths"][path]["post"]["requestBody"]
        schema = body["content"]["multipart/form-data"]["schema"]
        assert schema["required"] == ["file"]
        assert {"file", "model", "prompt", "response_format", "temperature", *more} <= set(
            schema["properties"]
        )
        assert "$ref" not in json.dumps(schema)


def test_plain_text_and_subtitles() -> None:
    text = post(Listener(), {"response_format": "text"})
    assert (text.text, text.headers["content-type"]) == (
        "Good day.\n",
        "text/plain; charset=utf-8",
    )
    srt = post(Listener("Good day. Well."), {"response_format": "srt"})
    assert srt.text == (
        "1\n00:00:00,000 --> 00:00:00,900\nGood day.\n\n2\n00:00:01,000 --> 00:00:01,400\nWell.\n\n"
    )
    vtt = post(Listener(), {"response_format": "vtt"})
    assert vtt.text == "WEBVTT\n\n00:00:00.000 --> 00:00:00.900\nGood day.\n\n"
    assert vtt.headers["content-type"].startswith("text/vtt")


def test_verbose_json_tells_segments_by_default() -> None:
    answer = post(Listener("Good day. Well.", language="de"), {"response_format": "verbose_json"})
    assert answer.json() == {
        "task": "transcribe",
        "language": "de",
        "duration": 2.0,
        "text": "Good day. Well.",
        "usage": {"type": "duration", "seconds": 2.0},
        "segments": [
            {"id": 0, "start": 0.0, "end": 0.9, "text": "Good day."},
            {"id": 1, "start": 1.0, "end": 1.4, "text": "Well."},
        ],
    }


@pytest.mark.parametrize("granularities", [["word"], ["word", "segment"]])
def test_words_are_told_without_marks(granularities: list[str]) -> None:
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": granularities}
    told = post(Listener("Don't, she said."), fields).json()
    assert told["words"] == [
        {"word": "Don't", "start": 0.0, "end": 0.4},
        {"word": "she", "start": 0.5, "end": 0.9},
        {"word": "said", "start": 1.0, "end": 1.4},
    ]
    assert ("segments" in told) == ("segment" in granularities)


def test_times_are_those_of_the_whole_file() -> None:
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]}
    cascade = Listener("One.", "Two.", "Three.")
    told = post(cascade, fields, file=encoded(talk(3), "flac")).json()
    assert told["text"] == "One. Two. Three."
    starts = [word["start"] for word in told["words"]]
    assert starts == pytest.approx([0.0, 20.25, 40.75], abs=0.3)
    assert [segment["start"] for segment in told["segments"]] == starts
    assert [segment["id"] for segment in told["segments"]] == [0, 1, 2]
    assert told["duration"] == 61.5


def test_without_word_times_pieces_are_the_segments() -> None:
    cascade = Listener("One. And a half.", "Two.")
    cascade.knows_words = False
    told = post(cascade, {"response_format": "verbose_json"}, file=encoded(talk(2), "flac")).json()
    assert [segment["text"] for segment in told["segments"]] == ["One. And a half.", "Two."]
    assert told["segments"][0]["start"] == 0.0
    assert told["segments"][1]["end"] <= 41.0


def test_silence_has_no_text() -> None:
    cascade = Listener()
    silence = encoded(np.zeros(5 * HEARING_RATE_HZ, np.float32))
    told = post(cascade, {"response_format": "verbose_json"}, file=silence).json()
    assert (told["text"], told["segments"], told["duration"]) == ("", [], 5.0)
    assert told["language"] == "und"
    assert post(cascade, file=silence).json()["text"] == ""
    assert post(cascade, {"response_format": "srt"}, file=silence).text == ""
    assert post(cascade, {"response_format": "vtt"}, file=silence).text == "WEBVTT\n\n"
    [done] = events(post(cascade, {"stream": "true"}, file=silence))
    assert done["text"] == ""
    assert cascade.recognise_requests == []


def test_a_stream_has_a_delta_for_each_piece() -> None:
    answer = post(Listener("One.", "", "Three."), {"stream": "true"}, file=encoded(talk(3), "flac"))
    told = events(answer)
    usage = {"type": "duration", "seconds": 61.5}
    assert told == [
        {"type": "transcript.text.delta", "delta": "One."},
        {"type": "transcript.text.delta", "delta": " Three."},
        {"type": "transcript.text.done", "text": "One. Three.", "usage": usage},
    ]


def test_a_stream_that_fails_ends_with_an_error() -> None:
    cascade = Listener("One.", StageError("asr_failed", "The recogniser failed."))
    told = events(post(cascade, {"stream": "true"}, file=encoded(talk(2), "flac")))
    assert [event["type"] for event in told] == ["transcript.text.delta", "error"]
    assert told[1]["error"]["code"] == "asr_failed"
    assert cascade.active == 0


def test_a_long_file_is_heard_in_order_and_few_pieces_at_once() -> None:
    texts = [f"Part {number}." for number in range(10)]
    cascade = Listener(*texts)
    assert post(cascade, file=encoded(talk(10), "flac")).json()["text"] == " ".join(texts)
    assert cascade.most_open == 2
    assert max(map(len, cascade.heard)) <= 28 * HEARING_RATE_HZ


def test_the_language_that_is_heard_first_holds() -> None:
    cascade = Listener("", "Guten Tag.", "Danke.", "Bitte.", language="de")
    post(cascade, file=encoded(talk(4), "flac"))
    asked = [request.language for request in cascade.recognise_requests]
    assert asked == [ANY_LANGUAGE, ANY_LANGUAGE, "de", "de"]


def test_translations_are_asked_for() -> None:
    cascade = Listener("Good day.", language="de")
    told = post(cascade, {"response_format": "verbose_json"}, path=TRANSLATIONS).json()
    assert (told["task"], told["text"], told["language"]) == ("translate", "Good day.", "de")
    assert cascade.recognise_requests[0].translates
    assert post(Listener(), path=TRANSLATIONS).json()["text"] == "Good day."


@pytest.mark.parametrize("fields", [{}, {"stream": "true"}, {"response_format": "srt"}])
def test_a_client_that_goes_leaves_nothing_behind(fields: dict[str, str]) -> None:
    async def main() -> None:
        cascade = Listener("One.", "Two.")
        cascade.recognise_gate = asyncio.Event()
        line = Line(*form_of({**fields, "language": "en"}, encoded(talk(3), "flac")))
        app = create_app(cascade)
        async with asyncio.timeout(LEFT_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(app(line.scope, line.receive, line.send))
            await cascade.has_heard.wait()
            while len(cascade.streams) < 2:
                await asyncio.sleep(0)
            line.leave()
        assert [stream.is_aborted for stream in cascade.streams] == [True, True]
        assert cascade.active == 0
        assert line.sent == []

    asyncio.run(main())
