"""A client loses its socket in the middle of something and goes on over another."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.types import Samples
from realtime.runtime.parking import SessionOver
from realtime.runtime.replay import replay
from realtime.session.settings import SessionSettings, SessionType, Transcription
from tests.realtime.runtime.lost_clients import (
    SETUP,
    WORDS,
    Counting,
    House,
    items_of,
    play,
    say,
    text_of,
    token_of,
    words_in,
)
from tests.realtime.runtime.stand_ins import (
    PipeTransport,
    ScriptedCascade,
    append,
    pcm,
    silence,
    tone,
)


async def retrieved(transport: PipeTransport, item_id: str) -> Samples:
    """An item's audio, as the server keeps it."""
    count = len(transport.of("conversation.item.retrieved"))
    transport.client_sends({"type": "conversation.item.retrieve", "item_id": item_id})
    event = await transport.until("conversation.item.retrieved", count + 1)
    audio = base64.b64decode(event["item"]["content"][0]["audio"])
    return np.frombuffer(audio, dtype="<i2").astype(np.float32) / np.float32(32768)


async def ask_and_listen(transport: PipeTransport, heard_ms: float) -> None:
    """A question, and its answer for so long."""
    asking = asyncio.create_task(say(transport, after_ms=5000))
    await transport.until("response.output_audio.delta")
    await asyncio.sleep(heard_ms / 1000)
    asking.cancel()
    await asyncio.wait({asking})


def test_a_reply_goes_on_where_it_was_no_longer_heard() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        await ask_and_listen(first, 1250)
        first.client_leaves()
        await house.parked()
        assert house.cascade.active == 0
        await asyncio.sleep(20)
        second = await house.resume(token_of(first))
        await second.until("response.done")
        await asyncio.sleep(3)

        created = [client.of("session.created")[0] for client in (first, second)]
        assert second.types()[0] == "session.created"
        assert created[0]["session"] == created[1]["session"]
        assert created[0]["parley"]["resume"]["within_ms"] == 60_000
        ids = [event["event_id"] for client in (first, second) for event in client.sent]
        assert len(ids) == len(set(ids))

        question, broken = items_of(second)[:2]
        assert (question["role"], broken["role"]) == ("user", "assistant")
        assert text_of(question) == "hello"
        assert broken["status"] == "incomplete"
        heard = text_of(broken).split()
        assert heard == list(WORDS[:4])
        told = [e for e in second.sent if e["type"].startswith("conversation.item.")]
        assert [e["item"]["id"] for e in told[:4:2]] == [e["item"]["id"] for e in told[1:4:2]]
        assert [e["previous_item_id"] for e in told[:4:2]] == [None, question["id"]]

        deltas = second.of("response.output_audio_transcript.delta")
        rest = "".join(event["delta"] for event in deltas).split()
        assert heard + rest == list(WORDS)
        before = await retrieved(second, broken["id"])
        assert abs(len(before) / 24 - 1250) < 60
        assert words_in(np.concatenate([before, second.audio()])) == list(WORDS)
        assert len(await retrieved(second, question["id"])) > 24 * 800

    play(script, House(Counting()))


def test_three_losses_in_one_reply_let_every_word_be_heard_once() -> None:
    async def script(house: House) -> None:
        client = await house.open()
        await ask_and_listen(client, 700)
        for _ in range(3):
            client.client_leaves(1001)
            await house.parked()
            client = await house.resume(token_of(client))
            await client.until("response.output_audio.delta")
            await asyncio.sleep(0.7)
        await client.until("response.done", timeout_s=30)
        await asyncio.sleep(3)
        said = [text_of(item) for item in items_of(client) if item["role"] == "assistant"]
        last = "".join(e["delta"] for e in client.of("response.output_audio_transcript.delta"))
        assert " ".join([*said[:3], last]).split() == list(WORDS)
        ids = [item["id"] for item in items_of(client)]
        assert len(ids) == len(set(ids)) == 5
        assert house.metrics.counts["sessions_resumed"] == 3

    play(script, House(Counting()))


def test_a_question_that_was_being_thought_about_is_answered() -> None:
    async def script(house: House) -> None:
        house.cascade.reply_gate = asyncio.Event()
        first = await house.open()
        await say(first)
        assert house.cascade.active == 1
        first.client_leaves()
        await house.parked()
        assert house.cascade.active == 0 and house.cascade.streams[-1].is_aborted
        house.cascade.reply_gate.set()
        second = await house.resume(token_of(first))
        done = await second.until("response.done")
        assert done["response"]["status"] == "completed"
        assert words_in(second.audio()) == list(WORDS)

    play(script, House(Counting()))


def test_half_a_sentence_is_forgotten_and_the_next_one_is_heard_alone() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        first.client_sends(append(pcm(silence(300))), append(pcm(tone(1000))))
        await first.until("input_audio_buffer.speech_started")
        first.client_sends(append(b"\x11"))  # half a sample
        await asyncio.sleep(0.1)
        first.client_leaves()
        await house.parked()
        second = await house.resume(token_of(first))
        assert items_of(second) == []
        await say(second, 500)
        started = await second.until("input_audio_buffer.speech_started")
        assert 1290 < started["audio_start_ms"] < 1700, "positions go on"
        await second.until("input_audio_buffer.committed")
        assert len(second.of("input_audio_buffer.committed")) == 1
        (heard,) = house.cascade.heard
        assert 16 * 500 < len(heard) < 16 * 1500
        assert np.abs(heard).max() < 0.35, "no sample is shifted by a byte"
        assert house.cascade.detectors[0].resets == 1

    play(script, House(ScriptedCascade()))


def test_a_transcription_session_goes_on() -> None:
    settings = SessionSettings(type=SessionType.TRANSCRIPTION, transcription=Transcription())

    async def script(house: House) -> None:
        first = await house.open()
        await say(first)
        await first.until("conversation.item.input_audio_transcription.completed")
        first.client_leaves()
        await house.parked()
        second = await house.resume(token_of(first))
        assert second.sent[0]["session"]["type"] == "transcription"
        await second.until("conversation.item.done")
        assert text_of(items_of(second)[0]) == "hello"
        await say(second)
        await second.until("conversation.item.input_audio_transcription.completed")
        assert not second.of("response.created")

    play(script, House(ScriptedCascade(), setup=replace(SETUP, settings=settings)))


def test_settings_stay_as_the_client_has_made_them() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        session = {"type": "realtime", "instructions": "Be brief.", "max_output_tokens": 99}
        first.client_sends({"type": "session.update", "session": session})
        updated = await first.until("session.updated")
        first.client_leaves()
        await house.parked()
        second = await house.resume(token_of(first))
        assert second.sent[0]["session"] == updated["session"]

    play(script, House(ScriptedCascade()))


# ---- a socket that seems to live ---------------------------------------------------------------


def test_a_new_socket_takes_over_from_one_that_seems_to_live() -> None:
    """The network died at 1.25 s; for a second and a half more the server spoke to nobody."""

    async def script(house: House) -> None:
        first = await house.open()
        await ask_and_listen(first, 1250)
        await asyncio.sleep(1.5)
        assert len(first.audio()) > 24 * 2500
        second = await house.resume(token_of(first))
        assert first.closed is not None and first.closed[0] == 4001
        sent = len(first.sent)
        await second.until("response.done")
        assert len(first.sent) == sent
        heard = text_of(items_of(second)[1]).split()
        assert heard == list(WORDS[:4])
        deltas = second.of("response.output_audio_transcript.delta")
        assert heard + "".join(e["delta"] for e in deltas).split() == list(WORDS)
        assert house.registry.count == 1 and house.registry.parked == 0

    play(script, House(Counting()))


def test_a_socket_that_takes_nothing_has_not_been_heard() -> None:
    """It stalls from the fifth frame on, and the client had sent no audio that could be missed."""

    async def script(house: House) -> None:
        first = await house.open()
        content = [{"type": "input_text", "text": "Count."}]
        item = {"type": "message", "role": "user", "content": content}
        first.client_sends({"type": "conversation.item.create", "item": item})
        first.client_sends({"type": "response.create"})
        await first.until("response.output_audio.delta", 5)
        first.stalls = True
        await asyncio.sleep(5)
        assert len(first.audio()) == 24 * 200
        second = await house.resume(token_of(first))
        assert text_of(items_of(second)[1]) == "", "200 ms are not yet a word"
        await second.until("response.done")
        assert words_in(second.audio()) == list(WORDS)

    play(script, House(Counting()))


def test_a_stalled_client_is_parked_and_may_come_back() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        first.stalls = True
        first.client_sends({"type": "nonsense"})
        await asyncio.sleep(11)
        await house.parked()
        assert first.closed is not None and first.closed[0] == 1008
        second = await house.resume(token_of(first))
        second.client_sends({"type": "nonsense"})
        await second.until("error")

    play(script, House(ScriptedCascade()))


def test_what_the_old_client_still_sends_reaches_nobody() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        second = await house.resume(token_of(first))
        first.client_sends({"type": "response.create"})
        await asyncio.sleep(1)
        assert not second.of("response.created")
        second.client_sends({"type": "response.create"})
        await second.until("response.done")

    play(script, House(ScriptedCascade()))


def test_of_two_clients_with_one_token_one_gets_the_session() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        token = token_of(first)
        first.client_leaves()
        await house.parked()
        second = await house.resume(token)
        with pytest.raises(SessionOver):
            await house.resume(token)
        assert second.closed is None
        third = await house.resume(token_of(second))
        assert second.closed is not None and third.closed is None
        assert house.registry.count == 1

    play(script, House(ScriptedCascade()))


# ---- any moment --------------------------------------------------------------------------------


def held(what: str) -> Counting:
    cascade = Counting()
    gate = asyncio.Event()
    match what:
        case "judge":
            cascade.judge_gate = gate
        case "recogniser":
            cascade.recognise_gate = gate
        case "reply":
            cascade.reply_gate = gate
        case _:
            pass
    return cascade


@pytest.mark.parametrize("takes_over", [False, True])
@pytest.mark.parametrize("what", ["nothing", "judge", "recogniser", "reply"])
def test_a_client_may_be_lost_at_any_moment_and_goes_on(what: str, takes_over: bool) -> None:
    """At 25 moments of a turn and its answer, whatever is under way."""

    async def vanish(house: House, after_s: float) -> None:
        first = await house.open()
        talking = asyncio.create_task(say(first, after_ms=1500))
        await asyncio.sleep(after_s)
        talking.cancel()
        await asyncio.wait({talking})
        if not takes_over:
            first.client_leaves()
            await house.parked()
            assert house.cascade.active == 0
        second = await house.resume(token_of(first))
        for gate in (house.cascade.judge_gate, house.cascade.recognise_gate):
            if gate is not None:
                gate.set()
        if house.cascade.reply_gate is not None:
            house.cascade.reply_gate.set()
        replies = len(second.of("response.created"))
        await say(second, after_ms=1500)
        await second.until("response.created", replies + 1)
        created = len(second.of("response.created"))
        await second.until("response.done", created, timeout_s=30)
        ids = [item["id"] for item in items_of(second)]
        assert len(ids) == len(set(ids))
        assert len(first.of("session.created")) == len(second.of("session.created")) == 1
        second.client_leaves(1000)
        await asyncio.gather(*house.tasks)
        house.tasks.clear()

    for moment in range(25):

        async def script(house: House, after_s: float = moment * 0.17) -> None:
            await vanish(house, after_s)

        play(script, House(held(what)))


# ---- records -----------------------------------------------------------------------------------


def test_a_resumed_session_replays(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"

    async def script(house: House) -> None:
        first = await house.open()
        await ask_and_listen(first, 1250)
        first.client_leaves()
        await house.parked()
        await asyncio.sleep(10)
        second = await house.resume(token_of(first))
        await second.until("response.done")
        second.client_leaves(1000)
        await house.tasks[0]

    play(script, House(Counting(), setup=replace(SETUP, record_path=path)))
    report = replay(path)
    assert report.is_same and report.events > 100
    text = path.read_text()
    assert text.count('"$":"Reconnected"') == 1 and text.count('"$":"Disconnected"') == 2


def test_a_long_conversation_is_told_whole_to_a_client_that_reads_slowly() -> None:
    async def script(house: House) -> None:
        first = await house.open()
        for number in range(1500):
            content = [{"type": "input_text", "text": f"number {number}"}]
            item = {"type": "message", "role": "user", "content": content}
            first.client_sends({"type": "conversation.item.create", "item": item})
        await first.until("conversation.item.done", 1500)
        first.client_leaves()
        await house.parked()
        second = await house.resume(token_of(first))
        await second.until("conversation.item.done", 1500)
        assert [text_of(i) for i in items_of(second)] == [f"number {n}" for n in range(1500)]
        second.client_sends({"type": "nonsense"})
        await second.until("error")

    play(script, House(ScriptedCascade()))
