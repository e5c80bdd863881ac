"""What clients rely on beyond the shapes of events, over a whole session in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.hearing import FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import Call, FakeWriter, Say, Script, Stall, words
from pipelines.types import StageError
from realtime.session.settings import SessionSettings, SessionType, Transcription
from tests.realtime.rough_calls import SETUP, TIMING, Caller, call
from tests.realtime.runtime.stand_ins import append, pcm, silence, tone

MIB = 2**20
SETTINGS = SessionSettings(transcription=Transcription())
DETECTIONS: list[dict[str, Any]] = [{"type": "server_vad"}, {"type": "semantic_vad"}]


def cascade_of(*scripts: Script, texts: Sequence[str | StageError] = ("hello",)) -> FakeCascade:
    return FakeCascade(writer=FakeWriter(scripts), recogniser=FakeRecogniser(texts), timing=TIMING)


def typed(text: str = "hello", **fields: Any) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content, **fields}
    return {"type": "conversation.item.create", "item": item}


def truncate(item_id: str, audio_end_ms: int, **fields: Any) -> dict[str, Any]:
    where = {"item_id": item_id, "content_index": 0, "audio_end_ms": audio_end_ms}
    return {"type": "conversation.item.truncate", **where, **fields}


def retrieve(item_id: str) -> dict[str, Any]:
    return {"type": "conversation.item.retrieve", "item_id": item_id}


async def spoken(caller: Caller) -> dict[str, Any]:
    """Have a response spoken to its end; its item."""
    caller.transport.client_sends({"type": "response.create"})
    done = await caller.transport.until("response.done")
    return done["response"]["output"][0]


@pytest.mark.parametrize("detection", DETECTIONS)
def test_every_echo_says_whether_speech_interrupts(detection: dict[str, Any]) -> None:
    """A client that does not find it cancels responses by itself."""

    async def talk(caller: Caller) -> None:
        session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
        caller.transport.client_sends(
            {"type": "session.update", "session": session},
            {"type": "session.update", "session": {"type": "realtime", "tracing": "auto"}},
        )
        await caller.transport.until("session.updated", 2)
        for event in caller.transport.sent:
            told = event["session"]["audio"]["input"]["turn_detection"]
            assert told["interrupt_response"] is True and told["create_response"] is True

    call(cascade_of(words("Hello.")), talk)


def test_every_item_says_what_it_follows_and_only_the_first_follows_nothing() -> None:
    async def talk(caller: Caller) -> None:
        caller.transport.client_sends(typed(id="a"), typed(id="b", role="system"))
        caller.transport.client_sends({**typed(id="c"), "previous_item_id": "root"})
        caller.transport.client_sends({**typed(id="d"), "previous_item_id": "c"})
        caller.transport.client_sends({**typed(id="e"), "previous_item_id": ""})
        caller.transport.client_sends({**typed(id="f"), "previous_item_id": None})
        await caller.transport.until("conversation.item.done", 6)
        follows = [("a", None), ("b", "a"), ("c", None), ("d", "c"), ("e", "b"), ("f", "e")]
        for kind in ("conversation.item.added", "conversation.item.done"):
            told = [(e["item"]["id"], e["previous_item_id"]) for e in caller.transport.of(kind)]
            assert told == follows

    call(cascade_of(words("Hello.")), talk)


def test_a_spoken_turn_shows_a_transcript_of_null_before_it_is_known_and_the_words_after() -> None:
    async def talk(caller: Caller) -> None:
        await caller.talk(np.concatenate([tone(800), silence(700)]))
        added = await caller.transport.until("conversation.item.added")
        assert added["item"]["content"] == [{"type": "input_audio", "transcript": None}]
        assert added["item"]["status"] == "completed"
        heard = await caller.transport.until(
            "conversation.item.input_audio_transcription.completed"
        )
        assert heard["transcript"] == "hello" and heard["usage"]["type"] == "duration"
        caller.transport.client_sends(retrieve(added["item"]["id"]))
        told = await caller.transport.until("conversation.item.retrieved")
        part = told["item"]["content"][0]
        assert part["transcript"] == "hello" and len(part["audio"]) > 1000

    call(cascade_of(words("Hello.")), talk, replace(SETUP, settings=SETTINGS))


def test_a_turn_that_could_not_be_heard_says_so_without_a_null() -> None:
    broken = StageError("asr_failed", "It failed.")

    async def talk(caller: Caller) -> None:
        await caller.talk(np.concatenate([tone(800), silence(700)]))
        failed = await caller.transport.until("conversation.item.input_audio_transcription.failed")
        assert set(failed["error"]) == {"type", "code", "message"}
        assert None not in failed["error"].values()

    transport = call(
        cascade_of(words("Hello."), texts=(broken,)), talk, replace(SETUP, settings=SETTINGS)
    )
    assert len(transport.of("response.done")) == len(transport.of("response.created"))


@pytest.mark.parametrize(
    ("beyond_ms", "is_taken"), [(-600, True), (-1, True), (0, True), (1, True), (2, False)]
)
def test_a_truncation_may_be_rounded_up_by_a_millisecond(beyond_ms: int, is_taken: bool) -> None:
    async def talk(caller: Caller) -> None:
        item = await spoken(caller)
        sent_ms = caller.heard_samples // 24
        assert sent_ms == 600
        caller.transport.client_sends(truncate(item["id"], sent_ms + beyond_ms, event_id="mine"))
        if is_taken:
            told = await caller.transport.until("conversation.item.truncated")
            assert (told["item_id"], told["audio_end_ms"]) == (item["id"], sent_ms + beyond_ms)
            assert "error" not in caller.transport.types()
        else:
            error = (await caller.transport.until("error"))["error"]
            assert error["event_id"] == "mine" and error["param"] == "audio_end_ms"
            assert error["message"] == "Audio content of 600ms is already shorter than 602ms"

    call(cascade_of(words("Good day.")), talk)


def test_what_was_cut_away_is_in_no_later_view() -> None:
    async def talk(caller: Caller) -> None:
        item = await spoken(caller)
        caller.transport.client_sends(truncate(item["id"], 300), truncate(item["id"], 0))
        caller.transport.client_sends(truncate(item["id"], 300, event_id="again"))
        caller.transport.client_sends(retrieve(item["id"]))
        told = await caller.transport.until("conversation.item.retrieved")
        (part,) = told["item"]["content"]
        assert (part["type"], part["transcript"]) == ("output_audio", "")
        assert part.get("audio", "") == ""
        assert len(caller.transport.of("conversation.item.truncated")) == 2
        assert caller.transport.of("error")[0]["error"]["event_id"] == "again"

    call(cascade_of(words("Good day.")), talk)


def test_an_item_in_progress_can_be_retrieved_and_cut() -> None:
    async def talk(caller: Caller) -> None:
        caller.transport.client_sends({"type": "response.create"})
        delta = await caller.transport.until("response.output_audio.delta", 3)
        caller.transport.client_sends(retrieve(delta["item_id"]), truncate(delta["item_id"], 50))
        told = await caller.transport.until("conversation.item.retrieved")
        assert told["item"]["status"] == "in_progress"
        assert told["item"]["content"][0]["type"] == "output_audio"
        # Who cuts it wants no more of it; SDKs send both, and the second is no mistake.
        caller.transport.client_sends({"type": "response.cancel"})
        done = await caller.transport.until("response.done")
        assert done["response"]["status_details"] == {
            "type": "cancelled",
            "reason": "client_cancelled",
        }
        assert done["response"]["output"][0]["status"] == "incomplete"
        assert not caller.transport.of("error")

    call(cascade_of([*words("So it is and so on. "), Stall()]), talk)


def test_a_refused_response_names_the_event_and_leaves_the_running_one_alone() -> None:
    """Clients that wait for their turn wait for ever if the error does not name it."""

    async def talk(caller: Caller) -> None:
        create = {"type": "response.create", "event_id": "agents_py_response_create_2"}
        caller.transport.client_sends({"type": "response.create"}, create)
        error = (await caller.transport.until("error"))["error"]
        assert error["code"] == "conversation_already_has_active_response"
        assert error["event_id"] == "agents_py_response_create_2"
        done = await caller.transport.until("response.done")
        assert done["response"]["status"] == "completed"

    call(cascade_of(words("Good day.")), talk)


def test_a_cancel_right_behind_its_create_ends_the_response_unheard() -> None:
    async def talk(caller: Caller) -> None:
        caller.transport.client_sends({"type": "response.create"}, {"type": "response.cancel"})
        done = await caller.transport.until("response.done")
        assert done["response"]["status_details"]["reason"] == "client_cancelled"
        assert done["response"]["output"] == []
        await asyncio.sleep(10)
        assert caller.heard_samples == 0 and "error" not in caller.transport.types()

    call(cascade_of(words("Good day.")), talk)


def test_an_item_that_comes_during_a_response_stands_behind_it_and_disturbs_nothing() -> None:
    async def talk(caller: Caller) -> None:
        caller.transport.client_sends({"type": "response.create"})
        begun = await caller.transport.until("response.output_item.added")
        caller.transport.client_sends(typed("And then?", id="later"))
        done = await caller.transport.until("response.done")
        assert done["response"]["status"] == "completed"
        told = await caller.transport.until("conversation.item.done", 2)
        added = {e["item"]["id"]: e for e in caller.transport.of("conversation.item.added")}
        assert added["later"]["previous_item_id"] == begun["item"]["id"]
        assert told["item"]["status"] == "completed"

    call(cascade_of(words("Good day to all of you.", per_word_ms=200)), talk)


def test_a_call_is_complete_in_its_output_item() -> None:
    async def talk(caller: Caller) -> None:
        caller.transport.client_sends({"type": "response.create"})
        await caller.transport.until("response.done")
        (item,) = [e["item"] for e in caller.transport.of("response.output_item.done")]
        assert (item["type"], item["status"]) == ("function_call", "completed")
        assert (item["name"], item["arguments"]) == ("look", '{"a": 1}')
        assert not caller.transport.of("response.content_part.added")

    call(cascade_of([Call("look", '{"a": 1}')]), talk)


def test_the_audio_of_a_long_item_stays_below_what_clients_take_in_one_message() -> None:
    speaker = FakeSpeaker(ms_per_word=10_000)
    text = "one " * 30  # five minutes, 14 MiB of samples
    cascade = FakeCascade(writer=FakeWriter([words(text)]), speaker=speaker, timing=TIMING)

    async def talk(caller: Caller) -> None:
        caller.transport.client_sends({"type": "response.create"})
        done = await caller.transport.until("response.done", timeout_s=1000)
        caller.transport.client_sends(retrieve(done["response"]["output"][0]["id"]))
        told = await caller.transport.until("conversation.item.retrieved")
        size_bytes = len(json.dumps(told))
        assert 6 * MIB < size_bytes < 8 * MIB

    call(cascade, talk)


def test_a_large_text_beside_audio_stays_below_it_too() -> None:
    async def talk(caller: Caller) -> None:
        audio = json.loads(append(pcm(tone(120_000))))["audio"]
        content = [
            {"type": "input_text", "text": "x" * MIB},
            {"type": "input_audio", "audio": audio, "transcript": "ł" * (MIB // 2)},
        ]
        caller.transport.client_sends(typed(id="large", content=content), retrieve("large"))
        told = await caller.transport.until("conversation.item.retrieved")
        assert len(json.dumps(told)) < 8 * MIB

    call(cascade_of(words("Hello.")), talk)


def test_an_image_is_kept_and_the_model_is_told_that_it_cannot_see_it() -> None:
    cascade = cascade_of(words("I cannot see it."))
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}

    async def talk(caller: Caller) -> None:
        content = [{"type": "input_text", "text": "What is this?"}, image]
        caller.transport.client_sends(typed(id="shown", content=content), retrieve("shown"))
        told = await caller.transport.until("conversation.item.retrieved")
        assert told["item"]["content"][1] == image
        await spoken(caller)

    call(cascade, talk)
    (asked,) = [m.text for m in cascade.writer.requests[0].messages if m.role == "user"]
    assert asked.startswith("What is this? [") and "cannot see images" in asked


def test_the_speed_of_the_session_reaches_the_voice() -> None:
    cascade = cascade_of(words("Good day."))

    async def talk(caller: Caller) -> None:
        session = {"type": "realtime", "audio": {"output": {"speed": 1.5}}}
        caller.transport.client_sends({"type": "session.update", "session": session})
        updated = await caller.transport.until("session.updated")
        assert updated["session"]["audio"]["output"]["speed"] == 1.5
        await spoken(caller)
        assert caller.heard_samples == 2 * 200 * 24

    call(cascade, talk)


def test_a_transcription_session_hears_and_never_answers() -> None:
    settings = replace(SETTINGS, type=SessionType.TRANSCRIPTION)

    async def talk(caller: Caller) -> None:
        created = await caller.transport.until("session.created")
        session = created["session"]
        assert session["object"] == "realtime.transcription_session"
        assert set(session) == {"type", "object", "id", "expires_at", "include", "audio"}
        assert set(session["audio"]) == {"input"}
        await caller.talk(np.concatenate([tone(800), silence(3000)]))
        kind = "conversation.item.input_audio_transcription.completed"
        assert (await caller.transport.until(kind))["transcript"] == "hello"
        caller.transport.client_sends({"type": "response.create", "event_id": "mine"})
        error = (await caller.transport.until("error"))["error"]
        assert (error["code"], error["event_id"]) == ("invalid_parameter", "mine")
        await asyncio.sleep(60)

    transport = call(cascade_of([Say("Never.")]), talk, replace(SETUP, settings=settings))
    assert not [kind for kind in transport.types() if kind.startswith("response.")]
