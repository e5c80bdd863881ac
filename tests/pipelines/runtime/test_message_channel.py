"""The line goes on after a handler's mistake, and is reported once when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager

import pytest
import zmq

from pipelines.runtime.message_channel import Channel, connected
from pipelines.runtime.message_codec import STAGE_CODEC
from pipelines.runtime.messages import Loading
from tests.pipelines.waiting import check, until


class Line:
    """A channel with its far end."""

    def __init__(self, on_message: Callable[[object], None]) -> None:
        self.context = zmq.Context()
        self.far = connected(self.context.socket(zmq.PAIR))
        self.far.bind("inproc://line")
        near = connected(self.context.socket(zmq.PAIR))
        near.connect("inproc://line")
        self.broken: list[Exception] = []
        self.channel = Channel(near, on_message, self.broken.append)

    def say(self, line: str) -> None:
        self.far.send_multipart(STAGE_CODEC.encode(Loading(line)))


@contextmanager
def a_line(on_message: Callable[[object], None]):
    line = Line(on_message)
    try:
        yield line
    finally:
        line.channel.close()
        line.far.close(linger=0)
        line.context.destroy(linger=0)


def test_what_follows_a_handlers_mistake_is_read() -> None:
    async def main() -> None:
        heard: list[str] = []
        mistakes: list[object] = []

        def hear(message: object) -> None:
            assert isinstance(message, Loading)
            if message.line == "bad":
                raise BrokenPipeError("nobody reads this")
            heard.append(message.line)

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: mistakes.append(context.get("exception")))
        with a_line(hear) as line:
            for text in ("a", "bad", "b", "bad", "c"):
                line.say(text)
            await until(lambda: heard == ["a", "b", "c"])
        assert [type(mistake) for mistake in mistakes] == [BrokenPipeError] * 2

    check(main)


@pytest.mark.parametrize("sends", [True, False])
def test_a_broken_line_is_reported_once(sends: bool) -> None:
    async def main() -> None:
        heard: list[object] = []
        with a_line(heard.append) as line:
            for _ in range(3):
                line.far.send_multipart([b"\xc1"])
            line.say("late")
            await until(lambda: bool(line.broken))
            if sends:
                line.channel.send(Loading("still"))  # which looks for what can be read
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(line.broken) == 1 and heard == []

    check(main)
