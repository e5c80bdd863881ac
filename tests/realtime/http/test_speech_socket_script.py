"""What waits between a client's pen and the voice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from realtime.http.speech_socket.schema import SessionConfig
from realtime.http.speech_socket.script import PIECE_CHARACTERS, Mark, Script
from realtime.http.speech_socket.setup import Setup, SetupDesk
from tests.realtime.runtime.stand_ins import ScriptedCascade


def a_setup() -> Setup:
    desk = SetupDesk(ScriptedCascade(), lambda _name: None, list)
    return asyncio.run(desk.take(SessionConfig(speed=2.0)))


async def waits(writing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Started, and not done after every other task has had its turn."""
    task = asyncio.create_task(writing)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def entries(script: Script) -> list[Any]:
    taken: list[Any] = []
    while script.has_text:
        taken.append(await script.take())
    return taken


def test_short_texts_come_as_one_and_a_long_one_in_pieces() -> None:
    async def run() -> None:
        script = Script()
        for letter in "one two":
            await script.write(letter)
        await script.flush()
        await script.flush()
        await script.write("x" * (2 * PIECE_CHARACTERS + 1))
        await script.end()
        pieces = ["x" * PIECE_CHARACTERS, "x" * PIECE_CHARACTERS, "x"]
        assert await entries(script) == ["one two", Mark.FLUSH, *pieces, Mark.DONE]

    asyncio.run(run())


def test_a_flush_of_nothing_is_none() -> None:
    async def run() -> None:
        script = Script()
        await script.flush()
        await script.write("")
        await script.flush()
        assert not script.has_text

    asyncio.run(run())


def test_whoever_writes_too_much_waits_and_text_of_any_length_is_taken() -> None:
    async def run() -> None:
        script = Script(waiting_characters=10)
        await script.write("far more than ten")
        writing = await waits(script.write("a"))
        assert await script.take() == "far more than ten"
        await writing
        await script.write("123456789")
        ending = await waits(script.end())
        assert await script.take() == "a123456789"
        await ending
        assert await script.take() is Mark.DONE

    asyncio.run(run())


def test_a_cleared_script_keeps_how_later_requests_sound() -> None:
    setup = a_setup()

    async def run() -> None:
        script = Script(waiting_characters=4)
        await script.write("one")
        await script.end()
        script.clear()
        await script.configure(setup)
        await script.write("two")
        script.clear()
        assert not script.is_writing
        assert not script.has_text
        assert await script.take() is setup
        await script.write("four")  # there is room for it
        assert await script.take() == "four"

    asyncio.run(run())


@pytest.mark.parametrize("has_come", [True, False])
def test_a_skipped_request_takes_its_rest_along_and_nothing_else(has_come: bool) -> None:
    async def run() -> None:
        script = Script()
        await script.write("one")
        assert await script.take() == "one"
        await script.write("the rest")
        if has_come:
            await script.end()
        script.skip()
        if not has_come:
            await script.write("what comes late")
            await script.flush()
            await script.end()
        assert not script.has_text
        await script.write("next")
        await script.end()
        assert await entries(script) == ["next", Mark.DONE]

    asyncio.run(run())


def test_what_waits_to_be_written_is_skipped_too() -> None:
    async def run() -> None:
        script = Script(waiting_characters=4)
        await script.write("one")
        await script.take()
        await script.write("four")
        writing = await waits(script.write("five"))
        script.skip()
        await writing
        ending = asyncio.create_task(script.end())
        await ending
        assert not script.has_text
        await script.end()
        assert await entries(script) == [Mark.DONE]

    asyncio.run(run())


def test_an_end_that_waits_to_be_written_ends_the_skipped_request() -> None:
    async def run() -> None:
        script = Script(waiting_characters=4)
        await script.write("one")
        await script.take()
        await script.write("four")
        ending = await waits(script.end())
        script.skip()
        await ending
        assert not script.has_text
        await script.write("next")
        assert await script.take() == "next"

    asyncio.run(run())
