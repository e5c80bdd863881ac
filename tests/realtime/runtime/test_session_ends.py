"""How sessions end, and what clients cannot do to them."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import StageError
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.refusals import ServerFull
from realtime.runtime.registry import Registry
from realtime.runtime.replay import replay
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.effects import Effect, StartReply
from realtime.session.events import Event, Opened
from realtime.session.settings import AudioFormat, SessionSettings, ToolChoice
from tests.realtime.runtime.stand_ins import (
    PipeTransport,
    ScriptedCascade,
    ScriptedMachine,
    append,
    pcm,
    silence,
    spoken_reply,
    tone,
)

SETUP = SessionSetup(SessionSettings(), seed=11)
TURN = np.concatenate([silence(300), tone(700), silence(900), tone(700), silence(900)])


def held_cascade(what: str) -> ScriptedCascade:
    cascade = ScriptedCascade()
    if what == "judge":
        cascade.judge_gate = asyncio.Event()
    elif what == "recogniser":
        cascade.recognise_gate = asyncio.Event()
    elif what == "reply":
        cascade.reply_gate = asyncio.Event()
    return cascade


@pytest.mark.parametrize("what", ["nothing", "judge", "recogniser", "reply"])
def test_a_client_may_vanish_at_any_moment(what: str) -> None:
    """At 40 moments of a conversation: no task, no request, no detector is left."""

    async def vanish(after_s: float) -> None:
        baseline = asyncio.all_tasks()
        cascade, transport = held_cascade(what), PipeTransport()
        session = SessionRuntime(transport, cascade, SETUP)
        running = asyncio.create_task(session.run())

        async def talk() -> None:
            for at in range(0, len(TURN), 480):
                transport.client_sends(append(pcm(TURN[at : at + 480])))
                await asyncio.sleep(0.02)
            await asyncio.sleep(60)

        talking = asyncio.create_task(talk())
        await asyncio.sleep(after_s)
        talking.cancel()
        transport.client_leaves()
        async with asyncio.timeout(1):
            await running
        await asyncio.wait({talking})
        assert asyncio.all_tasks() == baseline
        assert session.open_requests == 0 and cascade.active == 0
        assert cascade.detectors[0].is_closed

    async def main() -> None:
        for moment in range(40):
            await vanish(moment * 0.11)

    run_virtual(main(), limit_s=10_000)


@pytest.mark.parametrize("after_s", [0.0, 0.9, 1.6, 2.4])
def test_a_cancelled_session_frees_everything(after_s: float) -> None:
    async def main() -> None:
        cascade, transport = held_cascade("reply"), PipeTransport()
        session = SessionRuntime(transport, cascade, SETUP)
        running = asyncio.create_task(session.run())
        for at in range(0, len(TURN), 4800):
            transport.client_sends(append(pcm(TURN[at : at + 4800])))
        await asyncio.sleep(after_s)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert session.open_requests == 0 and cascade.active == 0
        assert transport.closed is not None or after_s == 0.0

    run_virtual(main(), limit_s=100)


def test_a_client_that_does_not_read_is_let_go() -> None:
    async def main() -> None:
        cascade, transport = ScriptedCascade(), PipeTransport()
        metrics = Metrics()
        session = SessionRuntime(transport, cascade, SETUP, metrics=metrics)
        running = asyncio.create_task(session.run())
        await transport.until("session.created")
        transport.stalls = True
        for _ in range(3000):
            transport.client_sends({"type": "nonsense"})
        async with asyncio.timeout(20):
            await running
        assert transport.closed == (1008, "client does not read: no progress for 10 s")
        # Its own events were no longer read, long before memory ran out.
        assert transport.unread > 1000
        assert metrics.counts[Count.CLIENTS_STALLED] == 1

    run_virtual(main(), limit_s=100)


def test_work_that_the_machine_forgets_ends_with_the_session() -> None:
    start = StartReply(
        *("r", False, (), True, "default", 1.0, AudioFormat(), (), ToolChoice(), None)
    )

    async def main() -> None:
        cascade, transport = held_cascade("reply"), PipeTransport()
        careless = ScriptedMachine(lambda event: [start] if isinstance(event, Opened) else [])
        session = SessionRuntime(transport, cascade, SETUP, conversation=careless)
        running = asyncio.create_task(session.run())
        await asyncio.sleep(1)
        assert session.open_requests == cascade.active == 1
        transport.client_leaves()
        async with asyncio.timeout(1):
            await running
        assert session.open_requests == cascade.active == 0

    run_virtual(main(), limit_s=100)


def test_a_broken_socket_ends_the_session() -> None:
    async def main() -> None:
        transport = PipeTransport()
        transport.breaks = True
        async with asyncio.timeout(1):
            await SessionRuntime(transport, ScriptedCascade(), SETUP).run()

    run_virtual(main(), limit_s=100)


def test_a_crash_is_told_and_closes_with_1011() -> None:
    def react(event: Event) -> list[Effect]:
        if isinstance(event, Opened):
            return []
        raise ZeroDivisionError("a bug")

    async def main() -> None:
        transport, metrics = PipeTransport(), Metrics()
        session = SessionRuntime(
            transport,
            ScriptedCascade(),
            SETUP,
            metrics=metrics,
            conversation=ScriptedMachine(react),
        )
        transport.client_sends({"type": "response.create"})
        await session.run()
        assert transport.closed is not None and transport.closed[0] == 1011
        assert transport.sent[-1]["error"]["code"] == "internal_error"
        assert "a bug" not in str(transport.sent)
        assert metrics.counts[Count.SESSIONS_CRASHED] == 1

    run_virtual(main(), limit_s=100)


def test_no_room_in_the_detector_is_told() -> None:
    class FullCascade(ScriptedCascade):
        def detect(self):
            raise StageError("vad_full", "no slot is free")

    async def main() -> None:
        transport = PipeTransport()
        await SessionRuntime(transport, FullCascade(), SETUP).run()
        assert transport.closed == (1013, "vad_full")
        assert transport.sent[0]["error"]["message"] == "no slot is free"

    run_virtual(main(), limit_s=100)


def test_fifteen_mebibytes_at_once_are_heard_and_answered() -> None:
    """Five minutes in one append, with a question of 0.7 s in them, 100 times too fast."""
    audio = np.concatenate([silence(30_000), tone(700), silence(296_000)])

    async def main() -> None:
        transport = PipeTransport()
        running = asyncio.create_task(SessionRuntime(transport, ScriptedCascade(), SETUP).run())
        data = pcm(audio)
        assert 14 * 2**20 < len(data) <= 15 * 2**20
        transport.client_sends(append(data), {"type": "nonsense"})
        stopped = await transport.until("input_audio_buffer.speech_stopped")
        # A draft may still be on its way while the audio rushes past: its limit is 1.5 s.
        assert 30_700 < stopped["audio_end_ms"] < 32_300
        await transport.until("response.done")
        await transport.until("error")  # what was sent behind the audio is handled behind it
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=100)


def test_formats_change_in_order() -> None:
    """What follows a session.update is read as it says, without waiting for the answer."""

    async def main() -> None:
        transport, cascade = PipeTransport(), ScriptedCascade()
        running = asyncio.create_task(SessionRuntime(transport, cascade, SETUP).run())
        audio = {"input": {"format": {"type": "audio/pcmu"}, "turn_detection": None}}
        update = {"type": "session.update", "session": {"type": "realtime", "audio": audio}}
        commit = {"type": "input_audio_buffer.commit"}
        quiet = b"\xff" * 8000  # one second of mu-law silence
        transport.client_sends(update, append(quiet), commit)
        await transport.until("conversation.item.done")
        async with asyncio.timeout(5):
            await cascade.has_heard.wait()
        assert len(cascade.heard[0]) == 16_000
        assert np.abs(cascade.heard[0]).max() == 0
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=100)


def test_the_last_word_is_heard_without_any_silence_behind_it() -> None:
    async def main() -> None:
        setup = SessionSetup(SessionSettings(turn_detection=None), seed=1)
        transport, cascade = PipeTransport(), ScriptedCascade()
        running = asyncio.create_task(SessionRuntime(transport, cascade, setup).run())
        word = tone(515)
        word[:-240] = 0.0  # all that sounds is the last 10 ms
        transport.client_sends(append(pcm(word)), {"type": "input_audio_buffer.commit"})
        async with asyncio.timeout(5):
            await cascade.has_heard.wait()
        assert len(cascade.heard[0]) == 515 * 16
        assert np.abs(cascade.heard[0][-160:]).max() > 0.25
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=100)


def test_a_recorded_session_replays(tmp_path: Path) -> None:
    path = tmp_path / "records" / "one.jsonl"

    async def main() -> None:
        setup = SessionSetup(SessionSettings(), seed=11, record_path=path)
        transport = PipeTransport()
        running = asyncio.create_task(SessionRuntime(transport, ScriptedCascade(), setup).run())
        for at in range(0, len(TURN), 480):
            transport.client_sends(append(pcm(TURN[at : at + 480])))
            await asyncio.sleep(0.02)
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=1000)
    assert replay(path).is_same


def test_a_server_has_so_many_places_and_drains_in_a_bound() -> None:
    async def main() -> None:
        metrics = Metrics()
        registry = Registry(2, metrics)
        cascade = ScriptedCascade()
        transports = [PipeTransport() for _ in range(3)]
        sessions = [SessionRuntime(t, cascade, SETUP, metrics=metrics) for t in transports]
        hosted = [asyncio.create_task(registry.host(s)) for s in sessions[:2]]
        await transports[1].until("session.created")
        assert registry.count == 2 and registry.open_requests == 0
        with pytest.raises(ServerFull, match="All 2 sessions"):
            await registry.host(sessions[2])
        transports[0].client_leaves()
        await hosted[0]
        assert registry.count == 1
        await registry.drain(timeout_s=30)
        assert registry.count == 0
        with pytest.raises(ServerFull, match="shutting down"):
            registry.check_room()
        await asyncio.wait(hosted)
        assert metrics.counts[Count.SESSIONS_REFUSED] == 2

    run_virtual(main(), limit_s=100)


def test_a_reply_that_outlasts_the_draining_has_its_end_told() -> None:
    async def main() -> None:
        registry, transport = Registry(1, Metrics()), PipeTransport()
        session = SessionRuntime(
            transport, ScriptedCascade(reply=spoken_reply("A long story.", 60_000)), SETUP
        )
        hosted = asyncio.create_task(registry.host(session))
        transport.client_sends({"type": "response.create"})
        await transport.until("response.output_audio.delta")
        await registry.drain(timeout_s=5)
        assert registry.count == 0 and not hosted.cancelled()
        (done,) = transport.of("response.done")
        assert done["response"]["status"] == "cancelled"
        assert transport.closed == (1001, "The session has ended.")
        await hosted

    run_virtual(main(), limit_s=100)


def test_a_session_that_will_not_end_is_cut_off() -> None:
    async def main() -> None:
        registry, transport = Registry(1, Metrics()), PipeTransport()
        stubborn = ScriptedMachine(lambda _: [])
        session = SessionRuntime(transport, ScriptedCascade(), SETUP, conversation=stubborn)
        hosted = asyncio.create_task(registry.host(session))
        await asyncio.sleep(1)
        await registry.drain(timeout_s=5)
        assert registry.count == 0 and hosted.cancelled()

    run_virtual(main(), limit_s=100)


def test_sessions_leave_nothing_behind() -> None:
    """After 50 sessions no object of theirs is alive."""

    async def one() -> None:
        transport = PipeTransport()
        running = asyncio.create_task(SessionRuntime(transport, ScriptedCascade(), SETUP).run())
        for at in range(0, len(TURN), 4800):
            transport.client_sends(append(pcm(TURN[at : at + 4800])))
        await transport.until("response.done")
        transport.client_leaves()
        await running

    async def main() -> None:
        for _ in range(50):
            await one()

    run_virtual(main(), limit_s=10_000)
    gc.collect()
    alive = [o for o in gc.get_objects() if type(o) is SessionRuntime]
    assert alive == []
