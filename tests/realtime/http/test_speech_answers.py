"""What `POST /v1/audio/speech` answers when all is well."""

from __future__ import annotations

import base64
import io
from typing import Any

import av
import numpy as np
import pytest

from pipelines.types import Drawing, Urgency, VoiceSample
from realtime.audio.encoding import SPEECH_FORMATS
from realtime.http.speech.schema import MAX_INPUT_CHARACTERS
from tests.realtime.http.speech_server import (
    FILE,
    PATH,
    RATE_HZ,
    RECORDING,
    URL,
    WORD_MS,
    House,
    Shelf,
    SpeechServer,
    audio_of,
    duration_s,
    events_of,
    make_cascade,
    on_routes,
    speak,
)

TEXT = "One two three four five."
TEXT_S = 5 * WORD_MS / 1000
FORMATS = tuple(SPEECH_FORMATS)


def decoded_s(data: bytes, format: str) -> float:
    if format == "pcm":
        return len(data) / 2 / RATE_HZ
    with av.open(io.BytesIO(data), "r") as container:
        return sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("how", [{}, {"stream": True}, {"stream": False}, {"stream_format": "sse"}])
def test_every_format_is_spoken_in_every_way(format: str, how: dict[str, Any]) -> None:
    answer = speak(input=TEXT, response_format=format, **how)
    assert answer.status_code == 200, answer.text
    is_events = how.get("stream_format") == "sse"
    data = audio_of(events_of(answer.text)) if is_events else answer.content
    kind = "text/event-stream" if is_events else SPEECH_FORMATS[format].media_type
    assert answer.headers["content-type"].split(";")[0] == kind
    assert decoded_s(data, format) == pytest.approx(TEXT_S, abs=0.025)


@pytest.mark.parametrize("format", FORMATS)
def test_only_a_file_has_a_length(format: str) -> None:
    async def ask(server: SpeechServer) -> list[bool]:
        ways = [{}, {"stream": True}, {"stream": False}]
        answers = [await server.speak(input=TEXT, response_format=format, **way) for way in ways]
        assert all(
            int(a.headers.get("content-length", len(a.content))) == len(a.content) for a in answers
        )
        return ["content-length" in answer.headers for answer in answers]

    assert on_routes(ask, House(make_cascade())) == [format in ("wav", "flac"), False, True]


def test_mp3_is_what_is_sent_to_whoever_names_no_format() -> None:
    assert speak(input=TEXT).headers["content-type"] == "audio/mpeg"


def test_a_whole_wav_file_is_exact_and_a_streamed_one_holds_the_same_samples() -> None:
    async def ask(server: SpeechServer) -> tuple[bytes, bytes, bytes]:
        whole = await server.speak(input=TEXT, response_format="wav")
        streamed = await server.speak(input=TEXT, response_format="wav", stream=True)
        bare = await server.speak(input=TEXT, response_format="pcm")
        assert bare.headers["x-sample-rate"] == str(RATE_HZ)
        return whole.content, streamed.content, bare.content

    whole, streamed, bare = on_routes(ask, House(make_cascade()))
    assert duration_s(whole) == TEXT_S
    assert int.from_bytes(whole[40:44], "little") == len(whole) - 44
    assert int.from_bytes(whole[4:8], "little") == len(whole) - 8
    assert streamed[40:44] == b"\xff\xff\xff\xff"
    assert whole[44:] == streamed[44:] == bare


def test_a_file_that_does_not_fit_into_memory_waits_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime.http.speech.making.MEMORY_BYTES", 1000)
    monkeypatch.setattr("realtime.http.speech.answer.PIECE_BYTES", 777)
    assert duration_s(speak(input=TEXT, response_format="wav").content) == TEXT_S


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.0, 2, 4.0])
def test_speed_changes_how_long_it_lasts(speed: float) -> None:
    cascade = make_cascade()
    answer = speak(cascade, input=TEXT, response_format="pcm", speed=speed)
    assert len(answer.content) / 2 == pytest.approx(TEXT_S * RATE_HZ / speed, abs=1)
    # The sound is changed here, for all voices alike.
    assert cascade.speaker.requests[0].speed == 1.0


def test_a_voice_of_another_rate_is_heard_at_its_own_pitch() -> None:
    cascade = make_cascade(rate_hz=22_050)
    bare = speak(cascade, input=TEXT, response_format="pcm").content
    samples = np.frombuffer(bare, "<i2").astype(np.float64)
    assert len(samples) == pytest.approx(TEXT_S * RATE_HZ, abs=2)
    loudest = np.argmax(np.abs(np.fft.rfft(samples))) * RATE_HZ / len(samples)
    assert loudest == pytest.approx(220, abs=2)


def test_events_end_with_what_was_used() -> None:
    events = events_of(speak(input=TEXT, stream_format="sse", response_format="pcm").text)
    assert [event["type"] for event in events[:-1]] == ["speech.audio.delta"] * (len(events) - 1)
    assert len(events) > 2
    frames = TEXT_S * 25
    assert events[-1] == {
        "type": "speech.audio.done",
        "usage": {
            "input_tokens": len(TEXT),
            "output_tokens": frames,
            "total_tokens": len(TEXT) + frames,
        },
    }


@pytest.mark.parametrize(
    ("named", "spoken"),
    [
        (None, "tone"),
        ("alloy", "tone"),
        ("default", "tone"),
        ({"id": "cedar"}, "tone"),
        ("Alloy", "tone"),
        ("bell", "bell"),
        ("Bell", "bell"),
        ({"id": "bell"}, "bell"),
    ],
)
def test_a_voice_is_found_by_its_name(named: object, spoken: str) -> None:
    cascade = make_cascade()
    assert speak(cascade, input=TEXT, voice=named).status_code == 200
    (request,) = cascade.speaker.requests
    assert (request.voice, request.sample) == (spoken, None)


def test_an_uploaded_voice_goes_before_openai_names() -> None:
    mine = VoiceSample(b"mine", "said in it")
    cascade = make_cascade()
    speak(cascade, Shelf({"alloy": mine}), input=TEXT, voice="alloy")
    assert cascade.speaker.requests[0].sample == mine


BASE64 = base64.b64encode(RECORDING).decode()


@pytest.mark.parametrize(
    "fields",
    [
        {"references": [{"data": BASE64, "text": "words"}]},
        {"references": [{"data": f"data:audio/wav;base64,{BASE64}", "text": "words"}]},
        {"references": [{"audio_url": URL, "text": "words"}]},
        {"references": [{"audio_url": f"data:;base64,{BASE64}", "text": "words"}]},
        {"references": [{"audio_path": FILE, "text": "words"}]},
        {"references": [{"audio_path": URL, "text": "words"}]},
        {"ref_audio": BASE64, "ref_text": "words"},
        {"ref_audio": URL, "ref_text": "words"},
        {"ref_audio": f"file://{FILE}", "ref_text": "words"},
        {"ref_audio": f"File://LocalHost{FILE}", "ref_text": "words"},
        {"references": [{"audio_path": f"file://{FILE.replace('o', '%6F')}", "text": "words"}]},
        {"ref_audio": FILE, "ref_text": "words"},
        {"ref_audio": f"DATA:audio/flac;BASE64,{BASE64}", "ref_text": "words"},
    ],
)
def test_a_recording_is_read_wherever_it_is(fields: dict[str, Any]) -> None:
    cascade = make_cascade()
    assert speak(cascade, input=TEXT, **fields).status_code == 200
    assert cascade.speaker.requests[0].sample == VoiceSample(RECORDING, "words")


def test_base64_that_begins_as_that_of_mp3_does_is_no_path() -> None:
    data = b"\xff\xfb\x90d"
    cascade = make_cascade()
    speak(cascade, input=TEXT, ref_audio=base64.b64encode(data).decode())
    assert cascade.speaker.requests[0].sample == VoiceSample(data, None)


def test_how_sound_is_drawn_reaches_the_voice_and_all_else_is_passed_over() -> None:
    cascade = make_cascade()
    answer = speak(
        cascade,
        input=TEXT,
        temperature=0.5,
        top_p=0.9,
        top_k=20,
        seed=7,
        max_new_tokens=300,
        initial_codec_chunk_frames=5,
        instructions="Whisper.",
        language="English",
        task_type="Base",
        references=[],
        speed=None,
        some_future_field={"a": [1]},
    )
    assert answer.status_code == 200
    (request,) = cascade.speaker.requests
    assert request.drawing == Drawing(0.5, 0.9, 20, 7, 300, 5)
    assert request.request_id == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("fields", "urgency"),
    [
        ({}, Urgency.FIRST_AUDIO),
        ({"stream_format": "sse", "response_format": "wav"}, Urgency.FIRST_AUDIO),
        ({"response_format": "wav"}, Urgency.STEADY),
    ],
)
def test_whoever_waits_for_a_file_lets_listeners_go_first(
    fields: dict[str, Any], urgency: Urgency
) -> None:
    cascade = make_cascade()
    speak(cascade, input=TEXT, **fields)
    assert cascade.speaker.requests[0].urgency is urgency


def test_the_longest_text_is_spoken_whole() -> None:
    word = f"{'a' * 199} "
    words = MAX_INPUT_CHARACTERS // len(word)
    answer = speak(input=word * words, response_format="pcm")
    assert len(answer.content) / 2 / RATE_HZ == pytest.approx(words * WORD_MS / 1000)


def test_a_type_with_a_charset_is_json_and_so_is_none() -> None:
    async def ask(server: SpeechServer) -> list[int]:
        types = ["application/json; charset=utf-8", None]
        return [
            (
                await server.client.post(
                    PATH,
                    content=b'{"input": "Hi."}',
                    headers={"content-type": kind} if kind else {},
                )
            ).status_code
            for kind in types
        ]

    assert on_routes(ask, House(make_cascade())) == [200, 200]
