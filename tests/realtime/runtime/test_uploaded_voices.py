"""A session speaks with an uploaded voice, by its name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import VoiceSample
from realtime.runtime import voice_lookup
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.runtime.voice_lookup import VoiceLookup
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import PipeTransport, ScriptedCascade

ANNA = VoiceSample(b"the sound of Anna", "Hello.")
CREATE = {"type": "response.create"}


class Shelf:
    """find: as an uploaded voices' folder has it; told from which threads it is asked."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.threads: set[threading.Thread] = set()
        self._failure = failure

    def find(self, name: str) -> VoiceSample | None:
        self.asked.append(name)
        self.threads.add(threading.current_thread())
        if self._failure is not None:
            raise self._failure
        return ANNA if name == "anna" else None


def update(voice: object) -> dict[str, Any]:
    output = {"voice": voice}
    return {"type": "session.update", "session": {"type": "realtime", "audio": {"output": output}}}


def converse(
    cascade: ScriptedCascade, find: Callable[[str], VoiceSample | None], *events: dict[str, Any]
) -> PipeTransport:
    """Send the events, and wait for a response to each `response.create` among them."""

    async def main() -> PipeTransport:
        transport = PipeTransport()
        settings = SessionSettings(turn_detection=None)
        setup = SessionSetup(settings, seed=1, voices=VoiceLookup(cascade, find))
        session = SessionRuntime(transport, cascade, setup)
        running = asyncio.create_task(session.run())
        for event in events:
            transport.client_sends(event)
            if event is CREATE:
                await transport.until("response.done")
        transport.client_leaves()
        await running
        assert session.open_requests == 0
        return transport

    return run_virtual(main(), limit_s=3600)


@pytest.mark.parametrize("voice", ["anna", {"id": "anna"}])
def test_a_session_speaks_with_an_uploaded_voice(voice: object) -> None:
    cascade, shelf = ScriptedCascade(), Shelf()
    transport = converse(cascade, shelf.find, update(voice), CREATE)
    assert [request.sample for request in cascade.requests if request.speak] == [ANNA]
    updated = next(event for event in transport.sent if event["type"] == "session.updated")
    assert updated["session"]["audio"]["output"]["voice"] == "anna"
    done = next(event for event in transport.sent if event["type"] == "response.done")
    assert done["response"]["status"] == "completed"
    assert threading.main_thread() not in shelf.threads  # a disk must not hold the others up


def test_so_does_a_single_response() -> None:
    cascade = ScriptedCascade()
    create = {"type": "response.create", "response": {"audio": {"output": {"voice": "anna"}}}}

    async def main() -> None:
        transport = PipeTransport()
        setup = SessionSetup(
            SessionSettings(turn_detection=None), seed=1, voices=VoiceLookup(cascade, Shelf().find)
        )
        running = asyncio.create_task(SessionRuntime(transport, cascade, setup).run())
        transport.client_sends(create)
        await transport.until("response.done")
        transport.client_leaves()
        await running

    run_virtual(main(), limit_s=3600)
    assert [request.sample for request in cascade.requests if request.speak] == [ANNA]


def test_a_name_that_nobody_knows_gets_the_default_voice() -> None:
    cascade, shelf = ScriptedCascade(), Shelf()
    converse(cascade, shelf.find, update("alloy"), CREATE)
    assert [request.sample for request in cascade.requests if request.speak] == [None]
    assert shelf.asked == ["alloy"]


def test_the_stage_s_own_voices_are_not_looked_for() -> None:
    cascade, shelf = ScriptedCascade(), Shelf()
    converse(cascade, shelf.find, CREATE)
    assert shelf.asked == []


def test_a_stage_that_cannot_copy_is_not_asked_to() -> None:
    cascade, shelf = ScriptedCascade(), Shelf()
    cascade.copies_voices = False
    converse(cascade, shelf.find, update("anna"), CREATE)
    assert [request.sample for request in cascade.requests if request.speak] == [None]
    assert shelf.asked == []


def test_a_disk_that_fails_costs_no_conversation(caplog: pytest.LogCaptureFixture) -> None:
    cascade = ScriptedCascade()
    transport = converse(cascade, Shelf(OSError("no disk")).find, update("anna"), CREATE)
    done = next(event for event in transport.sent if event["type"] == "response.done")
    assert done["response"]["status"] == "completed"
    assert "'anna' cannot be looked up" in caplog.text and "no disk" in caplog.text


def test_nor_does_one_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_lookup, "_DEADLINE_S", 0.05)
    may_end = threading.Event()

    def find(name: str) -> VoiceSample | None:
        may_end.wait(10)
        return ANNA

    async def main() -> VoiceSample | None:
        try:
            return await VoiceLookup(ScriptedCascade(), find).find("anna")
        finally:
            may_end.set()

    assert asyncio.run(main()) is None


def test_a_reply_that_is_aborted_while_its_voice_is_sought_is_never_begun() -> None:
    cascade, may_end = ScriptedCascade(), threading.Event()

    def find(name: str) -> VoiceSample | None:
        may_end.wait(10)
        return ANNA

    async def main() -> PipeTransport:
        transport = PipeTransport()
        setup = SessionSetup(
            SessionSettings(turn_detection=None), seed=1, voices=VoiceLookup(cascade, find)
        )
        running = asyncio.create_task(SessionRuntime(transport, cascade, setup).run())
        transport.client_sends(update("anna"), CREATE)
        await transport.until("response.created")
        transport.client_sends({"type": "response.cancel"})
        await transport.until("response.done")
        may_end.set()
        transport.client_leaves()
        await running
        return transport

    transport = asyncio.run(main())
    done = next(event for event in transport.sent if event["type"] == "response.done")
    assert done["response"]["status"] == "cancelled"
    assert [request for request in cascade.requests if request.speak] == []
    assert cascade.active == 0
