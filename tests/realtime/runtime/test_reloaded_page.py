"""A page is loaded anew in mid-conversation: it knows a token, and must learn everything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from pipelines.types import (
    Finished,
    FinishReason,
    ReplyOutput,
    ReplyRequest,
    SpeechDelta,
    TextDelta,
    ToolCallDelta,
)
from realtime.runtime.session import SessionRuntime
from realtime.session.settings import SessionSettings, Transcription
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
)
from tests.realtime.runtime.stand_ins import RATE_HZ, PipeTransport, ScriptedStream, tone

GOING_AWAY = 1001  # what a browser closes with when its page goes
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": '{"degrees":20}'}


class Looking(Counting):
    """Calls a tool first, with some words before; then counts."""

    is_broken_off = False  # in mid-call

    def reply(self, request: ReplyRequest) -> ScriptedStream:
        if self.calls["reply"] > 0 and not self.is_broken_off:
            return super().reply(request)
        self.calls["reply"] += 1
        self.requests.append(request)
        is_broken_off, self.is_broken_off = self.is_broken_off, False

        async def script() -> AsyncIterator[ReplyOutput]:
            if not is_broken_off:
                yield TextDelta("Let me look.")
                yield SpeechDelta(tone(1000), RATE_HZ, len("Let me look."))
            yield ToolCallDelta(0, "call_1", "look", '{"where":')
            if is_broken_off:
                await asyncio.Event().wait()
            yield ToolCallDelta(0, "call_1", "look", '"Rome"}')
            yield Finished(FinishReason.TOOL_CALLS)

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        return stream


async def open_page(house: House) -> PipeTransport:
    page = PipeTransport()
    session = SessionRuntime(
        page, house.cascade, house.setup, parking=house.registry.parking, wants_details=True
    )
    house.tasks.append(asyncio.create_task(house.registry.host(session)))
    await page.until("session.created")
    settings = {"type": "realtime", "instructions": "Be brief.", "tools": [LOOK]}
    page.client_sends({"type": "session.update", "session": settings})
    await page.until("session.updated")
    return page


async def reload(house: House, page: PipeTransport) -> PipeTransport:
    page.client_leaves(GOING_AWAY)
    await house.parked()
    anew = PipeTransport()
    claim = house.registry.parking.claim(token_of(page))
    house.tasks.append(asyncio.create_task(claim.session.attach(anew, True)))
    await anew.until("parley.state")
    return anew


def create(page: PipeTransport, item: dict[str, Any]) -> None:
    page.client_sends({"type": "conversation.item.create", "item": item})
    page.client_sends({"type": "response.create"})


def house() -> House:
    settings = SessionSettings(transcription=Transcription())
    return House(Looking(), setup=replace(SETUP, settings=settings))


def test_a_page_learns_the_settings_and_every_item_and_then_the_state() -> None:
    async def script(house: House) -> None:
        page = await open_page(house)
        await say(page)
        await page.until("response.done")
        await asyncio.sleep(1)
        create(page, OUTPUT)
        await page.until("response.output_audio.delta", 40)
        await asyncio.sleep(1)
        anew = await reload(house, page)

        told = anew.sent[: anew.types().index("parley.state") + 1]
        kinds = [event["type"] for event in told]
        pairs = ["conversation.item.added", "conversation.item.done"]
        assert kinds == ["session.created", *pairs * 5, "response.created", "parley.state"]
        settings = page.of("session.updated")[0]["session"]
        assert told[0]["session"] == settings and settings["instructions"] == "Be brief."
        assert set(told[0]["parley"]["resume"]) == {"token", "within_ms"}

        question, words, call, output, broken = items_of(anew)[:5]
        assert (question["role"], text_of(question)) == ("user", "hello")
        assert (words["status"], text_of(words)) == ("completed", "Let me look.")
        assert (call["type"], call["status"]) == ("function_call", "completed")
        assert (call["name"], call["arguments"]) == ("look", '{"where":"Rome"}')
        assert output["type"] == "function_call_output" and output["output"] == OUTPUT["output"]
        assert call["call_id"] == output["call_id"] == "call_1"
        heard = text_of(broken).split()
        assert broken["status"] == "incomplete" and heard == list(WORDS[: len(heard)])
        assert 2 < len(heard) < len(WORDS)
        ids = [event["previous_item_id"] for event in told if "previous_item_id" in event]
        assert ids[::2] == [None, *(item["id"] for item in items_of(anew)[:4])]

    play(script, house())


def test_a_call_without_an_output_waits_for_the_new_page() -> None:
    async def script(house: House) -> None:
        page = await open_page(house)
        await say(page)
        await page.until("response.done")
        await asyncio.sleep(2)
        anew = await reload(house, page)
        assert [item["type"] for item in items_of(anew)] == ["message", "message", "function_call"]
        assert anew.of("parley.state")[0]["state"] == "listening"
        assert not anew.of("response.created"), "the new page is to answer the call"
        create(anew, OUTPUT)
        done = await anew.until("response.done")
        assert done["response"]["status"] == "completed"

    play(script, house())


def test_a_call_that_was_broken_off_is_told_as_incomplete_and_made_anew() -> None:
    async def script(house: House) -> None:
        page = await open_page(house)
        assert isinstance(house.cascade, Looking)
        house.cascade.is_broken_off = True
        text = {"type": "input_text", "text": "Look!"}
        create(page, {"type": "message", "role": "user", "content": [text]})
        await page.until("response.function_call_arguments.delta")
        anew = await reload(house, page)
        (typed, call) = items_of(anew)[:2]
        assert text_of(typed) == "Look!"
        assert (call["status"], call["arguments"]) == ("incomplete", '{"where":')
        assert anew.of("parley.state")[0]["state"] == "thinking"
        done = await anew.until("response.done")
        assert done["response"]["status"] == "completed"

    play(script, house())
