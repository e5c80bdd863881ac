"""Whole sessions over a socket in memory, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Samples, Urgency
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import SessionSettings, Transcription
from tests.realtime.runtime.stand_ins import (
    PipeTransport,
    ScriptedCascade,
    append,
    pcm,
    silence,
    tone,
)

Client = Callable[[PipeTransport, SessionRuntime], Coroutine[Any, Any, None]]
SETUP = SessionSetup(SessionSettings(transcription=Transcription()), seed=7)


def serve(
    cascade: ScriptedCascade,
    client: Client,
    setup: SessionSetup = SETUP,
    metrics: Metrics | None = None,
) -> PipeTransport:
    """Run a session until the client's script has ended and everything is reaped."""

    async def main() -> PipeTransport:
        before = asyncio.all_tasks()
        transport = PipeTransport()
        session = SessionRuntime(transport, cascade, setup, metrics=metrics)
        running = asyncio.create_task(session.run())
        await client(transport, session)
        transport.client_leaves()
        await running
        assert asyncio.all_tasks() == before
        assert session.open_requests == 0
        assert cascade.active == 0
        assert all(detector.is_closed for detector in cascade.detectors)
        return transport

    return run_virtual(main(), limit_s=3600)


async def talk(transport: PipeTransport, audio: Samples, chunk_ms: int = 20) -> None:
    """A microphone: real time, as the loop counts it."""
    step = 24 * chunk_ms
    for at in range(0, len(audio), step):
        transport.client_sends(append(pcm(audio[at : at + step])))
        await asyncio.sleep(chunk_ms / 1000)


async def say(transport: PipeTransport, speech_ms: float = 1000, after_ms: float = 1000) -> None:
    await talk(transport, np.concatenate([silence(500), tone(speech_ms), silence(after_ms)]))


def test_a_spoken_turn_is_answered_in_order() -> None:
    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        await say(transport)
        await transport.until("response.done")

    cascade, metrics = ScriptedCascade(), Metrics()
    transport = serve(cascade, client, metrics=metrics)
    marks = [
        "session.created",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.done",
    ]
    types = transport.types()
    places = [types.index(mark) for mark in marks]
    assert places == sorted(places), types
    assert transport.sent[-1]["response"]["status"] == "completed"
    assert len(transport.audio()) == 48_000
    assert metrics.counts[Count.TURNS] == 1
    assert metrics.counts[Count.SESSIONS_CRASHED] == 0


def test_the_recogniser_hears_what_came_before_the_onset() -> None:
    """At least 300 ms before the voice, and all of the voice, reach the recogniser."""

    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        quiet = (0.001 * np.sin(np.arange(24_000) / 3)).astype(np.float32)  # told apart from zeros
        await talk(transport, np.concatenate([quiet, tone(600), silence(1200)]))
        await transport.until("response.done")

    cascade = ScriptedCascade()
    serve(cascade, client)
    heard = cascade.heard[-1]
    onset = int(np.argmax(np.abs(heard) > 0.05))
    assert onset >= 0.300 * 16_000
    assert np.abs(heard[: onset - 100]).max() > 0.0005  # the real thing, not padding
    voiced = int((np.abs(heard) > 0.05).sum())
    assert voiced > 0.8 * 0.6 * 16_000


def test_talking_into_a_reply_stops_it() -> None:
    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        await say(transport)
        await transport.until("response.output_audio.delta", 10)
        await talk(transport, np.concatenate([tone(1000), silence(1200)]))
        await transport.until("response.done", 2)

    cascade = ScriptedCascade(texts=["tell me", "no, wait"])
    cascade.outputs = cascade.outputs[:1] + [cascade.outputs[1]] * 5 + cascade.outputs[2:]
    transport = serve(cascade, client)
    first, second = transport.of("response.done")[:2]
    assert first["response"]["status"] == "cancelled"
    assert first["response"]["status_details"]["reason"] == "turn_detected"
    assert second["response"]["status"] == "completed"
    cut = transport.sent.index(first)
    old = first["response"]["id"]
    assert not any(e.get("response_id") == old for e in transport.sent[cut + 1 :])


def test_a_draft_is_hurried_when_it_becomes_the_reply() -> None:
    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        await say(transport)
        await transport.until("response.done")

    cascade = ScriptedCascade()
    cascade.judge_gate = asyncio.Event()
    cascade.reply_gate = asyncio.Event()

    async def opening_gates(transport: PipeTransport, session: SessionRuntime) -> None:
        assert cascade.judge_gate is not None and cascade.reply_gate is not None
        asyncio.get_running_loop().call_later(2.0, cascade.judge_gate.set)
        asyncio.get_running_loop().call_later(2.2, cascade.reply_gate.set)
        await client(transport, session)

    serve(cascade, opening_gates)
    assert cascade.requests[0].urgency is Urgency.DRAFT
    reply = cascade.streams[-1]
    # Once two seconds of it are there, the listener has enough ahead.
    assert reply.urgencies == [Urgency.FIRST_AUDIO, Urgency.STEADY]


def test_items_can_be_retrieved_with_their_audio() -> None:
    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        await say(transport)
        await transport.until("response.done")
        for kind in ("input_audio_buffer.committed", "response.output_item.done"):
            event = transport.of(kind)[0]
            item_id = event.get("item_id") or event["item"]["id"]
            transport.client_sends({"type": "conversation.item.retrieve", "item_id": item_id})
        await transport.until("conversation.item.retrieved", 2)

    transport = serve(ScriptedCascade(), client)
    user, reply = (event["item"] for event in transport.of("conversation.item.retrieved"))
    assert len(user["content"][0]["audio"]) > 1000 * 48 * 4 / 3
    assert len(reply["content"][0]["audio"]) == 96_000 * 4 / 3


def test_shutting_down_lets_the_reply_end() -> None:
    async def client(transport: PipeTransport, session: SessionRuntime) -> None:
        await say(transport)
        await transport.until("response.output_audio.delta", 3)
        session.shut_down(within_ms=5000)
        await transport.until("response.done")
        async with asyncio.timeout(30):
            await transport.is_closed.wait()

    transport = serve(ScriptedCascade(), client)
    assert transport.of("response.done")[0]["response"]["status"] == "completed"
    assert transport.closed is not None


def test_audio_sent_too_fast_waits_for_the_judge() -> None:
    """Ten seconds arrive at once while the judge thinks: the turn ends where it says."""

    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        assert cascade.judge_gate is not None
        audio = np.concatenate([silence(500), tone(1000), silence(10_000)])
        transport.client_sends(append(pcm(audio)))
        await asyncio.sleep(1)
        assert transport.of("input_audio_buffer.speech_stopped") == []
        cascade.judge_gate.set()
        await transport.until("input_audio_buffer.speech_stopped")

    cascade = ScriptedCascade()
    cascade.judge_gate = asyncio.Event()
    transport = serve(cascade, client)
    end_ms = transport.of("input_audio_buffer.speech_stopped")[0]["audio_end_ms"]
    assert 1500 + 512 <= end_ms <= 1500 + 512 + 32 + 500 + 32


def test_ten_sessions_at_once_are_as_ten_alone() -> None:
    audio = np.concatenate([silence(300), tone(700), silence(1500)])

    async def one() -> tuple[PipeTransport, ScriptedCascade]:
        transport, cascade = PipeTransport(), ScriptedCascade()
        running = asyncio.create_task(SessionRuntime(transport, cascade, SETUP).run())
        await talk(transport, audio)
        await transport.until("response.done")
        transport.client_leaves()
        await running
        return transport, cascade

    async def many() -> list[tuple[PipeTransport, ScriptedCascade]]:
        return list(await asyncio.gather(*(one() for _ in range(10))))

    alone, alone_cascade = run_virtual(one())
    for together, cascade in run_virtual(many()):
        assert together.types() == alone.types()
        assert np.array_equal(together.audio(), alone.audio())
        assert np.array_equal(cascade.heard[-1], alone_cascade.heard[-1])


def test_the_judge_hears_the_last_eight_seconds() -> None:
    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        await say(transport, speech_ms=12_000)
        await transport.until("response.done")

    cascade = ScriptedCascade()
    serve(cascade, client)
    assert {len(audio) for audio in cascade.judged} == {8 * 16_000}
    assert np.abs(cascade.judged[0][:16_000]).max() > 0.25  # speech, with its silence behind it
    assert np.abs(cascade.judged[0][-160 * 16 :]).max() == 0


def test_push_to_talk_may_be_longer_than_what_is_looked_back_at() -> None:
    """Two clips of 40 s, the second told apart by its tone: each is recognised whole."""
    setup = SessionSetup(SessionSettings(turn_detection=None), seed=7)

    async def client(transport: PipeTransport, _: SessionRuntime) -> None:
        for clip in (tone(40_000, hz=440), tone(40_000, hz=880)):
            transport.client_sends(append(pcm(clip)), {"type": "input_audio_buffer.commit"})
            await cascade.has_heard.wait()
            cascade.has_heard.clear()

    cascade = ScriptedCascade()
    serve(cascade, client, setup)
    for heard, hz in zip(cascade.heard, (440, 880), strict=True):
        assert len(heard) == 40 * 16_000
        assert int(np.argmax(np.abs(np.fft.rfft(heard[:16_000])))) == hz
        assert int(np.argmax(np.abs(np.fft.rfft(heard[-16_000:])))) == hz
