"""Details and pings on the wire of a whole session, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import RecogniseRequest, Transcript
from realtime.observe.metrics import Metrics
from realtime.runtime.outbound import CLOSE_STALLED
from realtime.runtime.registry import Registry
from realtime.runtime.replay import replay
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import ServerVad, SessionSettings, Transcription
from tests.realtime.runtime.stand_ins import (
    PipeTransport,
    ScriptedCascade,
    ScriptedStream,
    append,
    pcm,
    silence,
    tone,
)
from tests.wire_invariants import WireInvariants

SETUP = SessionSetup(SessionSettings(transcription=Transcription()), seed=7)
DETAILS = ("parley.state", "parley.transcript")
Client = Callable[[PipeTransport], Coroutine[Any, Any, None]]


class Whispering(ScriptedCascade):
    """A recogniser that tells what it has heard so far, a word per 300 ms."""

    WORDS = "what time is it now".split()

    def recognise(self, request: RecogniseRequest) -> ScriptedStream:
        self.calls["recognise"] += 1

        async def script() -> AsyncIterator[Transcript]:
            words = 0
            while not stream.has_finished.is_set():
                pushed_s = sum(len(piece) for piece in stream.pushed) / 16_000
                if request.wants_partials and words < min(5, pushed_s // 0.3):
                    words += 1
                    yield Transcript(" ".join(self.WORDS[:words]), is_final=False)
                await asyncio.sleep(0.02)
            yield Transcript("What time is it now?", is_final=True)

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        return stream


def serve(
    client: Client, setup: SessionSetup = SETUP, *, wants_details: bool = False
) -> PipeTransport:
    async def main() -> PipeTransport:
        transport = PipeTransport()
        session = SessionRuntime(transport, Whispering(), setup, wants_details=wants_details)
        running = asyncio.create_task(session.run())
        await client(transport)
        transport.client_leaves()
        await running
        return transport

    return run_virtual(main(), limit_s=3600)


async def talk(transport: PipeTransport) -> None:
    """A question, and its answer to the end."""
    audio = np.concatenate([silence(300), tone(1500), silence(900)])
    for at in range(0, len(audio), 480):
        transport.client_sends(append(pcm(audio[at : at + 480])))
        await asyncio.sleep(0.02)
    await transport.until("response.done")
    await asyncio.sleep(4)


def states(transport: PipeTransport) -> list[str]:
    return [event["state"] for event in transport.of("parley.state")]


def test_a_client_that_asks_sees_the_state_and_the_words_as_they_come() -> None:
    transport = serve(talk, wants_details=True)
    assert transport.types()[:2] == ["session.created", "parley.state"]
    assert states(transport)[:2] == ["listening", "hearing"]
    assert states(transport)[-2:] == ["speaking", "listening"]
    told = transport.of("parley.transcript")
    texts = [event["transcript"] for event in told]
    assert texts[:4] == ["what", "what time", "what time is", "what time is it"]
    assert texts[-1] == "What time is it now?"
    (item_id,) = {event["item_id"] for event in told}
    (started,) = transport.of("input_audio_buffer.speech_started")
    assert item_id == started["item_id"]
    types = transport.types()
    assert types.index("input_audio_buffer.speech_started") < types.index("parley.transcript")
    completed = types.index("conversation.item.input_audio_transcription.completed")
    assert "parley.transcript" not in types[completed:]
    ids = [event["event_id"] for event in transport.sent]
    assert len(ids) == len(set(ids))


def test_whoever_does_not_ask_is_told_nothing_more_and_everything_else() -> None:
    plain, detailed = (serve(talk, wants_details=wants) for wants in (False, True))
    assert not [kind for kind in plain.types() if kind.startswith("parley.")]
    standard = [event for event in detailed.sent if event["type"] not in DETAILS]
    assert [event["type"] for event in standard] == plain.types()
    for told, same in zip(standard, plain.sent, strict=True):
        assert {**told, "event_id": ""} == {**same, "event_id": ""}
    invariants = WireInvariants()
    for event in standard:
        invariants.take(event)
    invariants.finish()


@pytest.mark.parametrize("wants_details", [False, True])
def test_a_record_says_the_same_whoever_listened(tmp_path: Path, wants_details: bool) -> None:
    path = tmp_path / "one.jsonl"
    serve(talk, replace(SETUP, record_path=path), wants_details=wants_details)
    assert replay(path).is_same
    assert '"$":"StateShown"' in path.read_text()


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True), (True, True)])
def test_each_client_of_one_session_chooses_for_itself(before: bool, after: bool) -> None:
    async def main() -> None:
        registry = Registry(1, Metrics())
        first, second = PipeTransport(), PipeTransport()
        session = SessionRuntime(
            first,
            Whispering(),
            replace(SETUP, resume_ms=60_000),
            parking=registry.parking,
            wants_details=before,
        )
        hosting = asyncio.create_task(registry.host(session))
        await talk(first)
        first.client_leaves(1001)
        token = first.of("session.created")[0]["parley"]["resume"]["token"]
        await asyncio.sleep(1)
        claim = registry.parking.claim(token)
        attached = asyncio.create_task(claim.session.attach(second, after))
        await second.until("conversation.item.done", 2)
        await asyncio.sleep(1)
        assert bool(states(first)) is before
        assert states(second) == (["listening"] if after else [])
        if after:
            assert second.types()[0] == "session.created"
            assert second.types()[-1] == "parley.state", "after the last item"
        second.client_leaves(1000)
        await asyncio.gather(hosting, attached)

    run_virtual(main(), limit_s=3600)


# ---- pings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wants_details", [False, True])
def test_a_ping_is_answered_at_once_and_in_its_place(wants_details: bool) -> None:
    async def client(transport: PipeTransport) -> None:
        await transport.until("session.created")
        transport.client_sends({"type": "nonsense"})
        transport.client_sends({"type": "parley.ping", "id": "a", "event_id": "e"})
        transport.client_sends({"type": "parley.ping"})
        transport.client_sends({"type": "parley.ping", "id": 5})
        await transport.until("error", 2)

    transport = serve(client, wants_details=wants_details)
    types = [kind for kind in transport.types() if kind not in DETAILS]
    assert types == ["session.created", "error", "parley.pong", "parley.pong", "error"]
    pongs = transport.of("parley.pong")
    assert [(set(pong), pong["id"]) for pong in pongs] == [
        ({"type", "event_id", "id"}, "a"),
        ({"type", "event_id", "id"}, None),
    ]
    assert transport.of("error")[1]["error"]["param"] == "id"


def test_a_ping_is_answered_while_a_reply_is_thought_about() -> None:
    async def main() -> None:
        cascade, transport = ScriptedCascade(), PipeTransport()
        cascade.reply_gate = asyncio.Event()
        running = asyncio.create_task(SessionRuntime(transport, cascade, SETUP).run())
        await transport.until("session.created")
        transport.client_sends({"type": "response.create"})
        await transport.until("response.created")
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        transport.client_sends({"type": "parley.ping", "id": "b"})
        await transport.until("parley.pong")
        assert loop.time() - asked_s < 0.05
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=600)


def idle_prompts(pings: bool) -> int:
    settings = SessionSettings(turn_detection=ServerVad(idle_timeout_ms=6000))

    async def client(transport: PipeTransport) -> None:
        await talk(transport)
        for _ in range(30):
            await asyncio.sleep(0.5)
            if pings:
                transport.client_sends({"type": "parley.ping"})

    transport = serve(client, replace(SETUP, settings=settings))
    return len(transport.of("input_audio_buffer.timeout_triggered"))


def test_a_ping_is_no_sign_of_the_user() -> None:
    assert idle_prompts(pings=True) == idle_prompts(pings=False) > 0


def test_a_flood_of_pings_is_slowed_down_and_answered() -> None:
    count = 3000  # more than the queue holds, and than two seconds allow

    async def client(transport: PipeTransport) -> None:
        await transport.until("session.created")
        for number in range(count):
            transport.client_sends({"type": "parley.ping", "id": str(number)})
        await transport.until("parley.pong", count, timeout_s=600)

    transport = serve(client)
    assert [pong["id"] for pong in transport.of("parley.pong")] == [str(n) for n in range(count)]
    assert transport.closed is not None and transport.closed[0] != CLOSE_STALLED
