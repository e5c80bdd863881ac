"""`POST /v1/audio/speech/batch`: several texts, a result or an error for each."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from pipelines.ports import StageStats
from pipelines.types import StageError, Urgency, VoiceSample
from realtime.http.speech.batch import MAX_ITEM_CHARACTERS
from tests.realtime.http.speech_server import (
    BATCH,
    RECORDING,
    URL,
    WORD_MS,
    House,
    Shelf,
    SpeechServer,
    duration_s,
    fault,
    make_cascade,
    on_routes,
    on_server,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade

BASE64 = base64.b64encode(RECORDING).decode()


def batch(cascade: Any = None, shelf: Shelf | None = None, **fields: Any) -> list[dict[str, Any]]:
    house = House(cascade or make_cascade(), shelf or Shelf())
    return on_routes(lambda server: server.batch(**fields), house)


def faults(lines: list[dict[str, Any]]) -> list[tuple[str, str | None] | None]:
    return [
        (line["error"]["code"], line["error"]["param"]) if "error" in line else None
        for line in lines
    ]


def test_each_item_gets_its_speech_with_what_all_have_in_common() -> None:
    cascade = make_cascade()
    lines = batch(
        cascade,
        model="tts-1",
        voice="bell",
        response_format="wav",
        seed=5,
        items=[
            {"input": "One."},
            {"input": "One two.", "voice": "tone", "id": "second"},
            {"input": "One two three.", "seed": 6, "voice": None},
        ],
    )
    word_s = WORD_MS / 1000
    for index, line in enumerate(lines):
        lasts_s = (index + 1) * word_s
        assert set(line) == {"index", "id", "audio", "format", "duration_s", "usage"}
        assert (line["index"], line["format"]) == (index, "wav")
        assert line["duration_s"] == pytest.approx(lasts_s)
        assert duration_s(base64.b64decode(line["audio"])) == pytest.approx(lasts_s)
    assert [line["id"] for line in lines] == [None, "second", None]
    asked = sorted(cascade.speaker.requests, key=lambda request: request.request_id)
    assert [(one.voice, one.drawing.seed) for one in asked] == [
        ("bell", 5),
        ("tone", 5),
        ("bell", 6),
    ]
    assert {one.urgency for one in asked} == {Urgency.STEADY}
    assert len({one.request_id for one in asked}) == 3


def test_a_fault_of_one_item_is_its_own() -> None:
    lines = batch(
        items=[
            {"input": "Good."},
            {"input": ""},
            "no object",
            {},
            {"input": "Hi.", "voice": "nobody", "id": "fifth"},
            {"input": "Hi.", "references": [{"data": "???"}]},
            {"input": "***"},
            {"input": "Hi.", "speed": 9, "id": "eighth"},
            {"input": "Hi.", "id": 7},
            {"input": "a" * (MAX_ITEM_CHARACTERS + 1)},
            None,
            {"input": "Good.", "stream_format": "sse", "stream": True},
        ]
    )
    assert faults(lines) == [
        None,
        ("invalid_value", "items[1].input"),
        ("invalid_type", "items[2]"),
        ("missing_required_parameter", "items[3].input"),
        ("unknown_voice", "items[4].voice"),
        ("invalid_base64", "items[5].references[0].data"),
        ("input_not_speakable", "items[6].input"),
        ("invalid_value", "items[7].speed"),
        ("invalid_type", "items[8].id"),
        ("invalid_value", "items[9].input"),
        ("invalid_type", "items[10]"),
        None,
    ]
    assert lines[4]["id"] == "fifth"
    for line in lines:
        if "error" in line:
            assert set(line["error"]) == {"message", "type", "code", "param"}


def test_a_stage_that_fails_one_item_speaks_the_others() -> None:
    cascade = make_cascade(fail_after_words=2)
    lines = batch(
        cascade, items=[{"input": "One."}, {"input": "One two three."}, {"input": "One."}]
    )
    assert faults(lines) == [None, ("tts_failed", None), None]


def test_a_stage_error_names_the_item_and_its_field() -> None:
    cascade = ScriptedCascade()
    cascade.speech_words = 0
    cascade.speech_error = StageError("voice_sample_refused", "It is too short.")
    lines = batch(cascade, items=[{"input": "Hi.", "ref_audio": BASE64}])
    assert faults(lines) == [("voice_sample_refused", "items[0].ref_audio")]
    cascade.speech_error = StageError("tts_text_too_long", "It is too long.")
    assert faults(batch(cascade, items=[{"input": "Hi."}])) == [
        ("tts_text_too_long", "items[0].input")
    ]


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({}, "missing_required_parameter", "items"),
        ({"items": []}, "invalid_value", "items"),
        ({"items": [{"input": "Hi."}] * 33}, "invalid_value", "items"),
        ({"items": {"input": "Hi."}}, "invalid_type", "items"),
        ({"items": [{"input": "Hi."}], "speed": 9}, "invalid_value", "speed"),
        ({"items": [{"input": "Hi."}], "voice": {"id": 1}}, "invalid_type", "voice.id"),
        ({"items": [{"input": "Hi."}], "response_format": "x"}, "invalid_value", "response_format"),
    ],
)
def test_what_is_wrong_with_the_whole_is_told_at_once(
    fields: dict[str, Any], code: str, field: str
) -> None:
    async def ask(server: SpeechServer) -> tuple[int, str, str | None]:
        return fault(await server.client.post(BATCH, json=fields))

    assert on_routes(ask, House(make_cascade())) == (400, code, field)


def test_thirty_two_items_are_taken() -> None:
    lines = batch(items=[{"input": "Hi."}] * 32)
    assert [line["index"] for line in lines] == list(range(32))
    assert faults(lines) == [None] * 32


def test_a_recording_in_common_is_fetched_once() -> None:
    cascade, shelf = make_cascade(), Shelf()
    batch(
        cascade,
        shelf,
        references=[{"audio_url": URL, "text": "words"}],
        items=[{"input": "Hi."}] * 6 + [{"input": "Hi.", "ref_audio": BASE64}],
    )
    assert shelf.fetched == [URL]
    samples = {request.request_id[-1]: request.sample for request in cascade.speaker.requests}
    assert samples.pop("6") == VoiceSample(RECORDING, None)  # without the other's transcript
    assert set(samples.values()) == {VoiceSample(RECORDING, "words")}


@pytest.mark.parametrize(("slots", "at_once"), [(None, 2), (4, 2), (16, 4), (64, 8)])
def test_a_batch_leaves_room_for_others(slots: int | None, at_once: int) -> None:
    class Staged(ScriptedCascade):
        stats = (StageStats("tts", 0, slots=slots),)

    cascade = Staged()
    cascade.speech_gate = asyncio.Event()

    async def ask(server: SpeechServer) -> int:
        assert cascade.speech_gate is not None
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(server.batch(items=[{"input": "Hi."}] * 20))
            while cascade.active < at_once:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
            seen = cascade.active
            cascade.speech_gate.set()
        assert faults(asked.result()) == [None] * 20
        return seen

    assert on_routes(ask, House(cascade)) == at_once


def test_a_result_is_sent_as_soon_as_it_is_there() -> None:
    held = asyncio.Event()

    class Slow(Shelf):
        async def fetch(self, url: str, field: str) -> bytes:
            await held.wait()
            return RECORDING

    async def ask(server: SpeechServer) -> list[int]:
        items = [{"input": "Hi.", "ref_audio": URL}, {"input": "Hi."}, {"input": "Hi."}]
        order: list[int] = []
        async with server.client.stream("POST", BATCH, json={"items": items}) as answer:
            async for line in answer.aiter_lines():
                order.append(json.loads(line)["index"])
                if len(order) == 2:
                    held.set()
        return order

    assert on_server(ask, House(ScriptedCascade(), Slow())) == [1, 2, 0]
