"""What a gathering stage says of a request before it has all of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.one_shot import OneShotStage, OneShotStream, Previews
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, StageError
from tests.pipelines.waiting import check, until

Stage = OneShotStage[SpeakRequest, str, str]


def whole(_: None, request: SpeakRequest, texts: list[str], ticket: Ticket) -> Iterator[str]:
    yield "".join(texts)


def so_far(_: None, request: SpeakRequest, texts: list[str], ticket: Ticket) -> Iterator[str]:
    if "!" in texts:
        raise ValueError("no preview of this")
    yield "".join(texts) + "..."


@asynccontextmanager
async def started():
    previews = Previews(so_far, len, every=lambda request: 3 if request.voice == "eager" else None)
    stage: Stage = OneShotStage(
        "ears", lambda progress: None, whole, CpuToken(), gather=True, previews=previews
    )
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        await stage.close()


async def collect(stream: OneShotStream[str, str]) -> list[str]:
    return [output async for output in stream]


def test_a_preview_comes_when_enough_is_new_and_the_whole_comes_last() -> None:
    async def main() -> None:
        async with started() as stage:
            stream = stage.open(SpeakRequest("r", "eager"))
            await stream.push("abc")
            assert await anext(stream) == "abc..."
            await stream.push("d")
            await stream.push("ef")
            assert await anext(stream) == "abcdef..."
            await stream.push("g")
            await stream.finish()
            assert await collect(stream) == ["abcdefg"]
            assert stage.active == 0

    check(main)


def test_nobody_gets_a_preview_without_asking() -> None:
    async def main() -> None:
        async with started() as stage:
            stream = stage.open(SpeakRequest("r", "patient"))
            for text in ("abc", "def"):
                await stream.push(text)
            await stream.finish()
            assert await collect(stream) == ["abcdef"]

    check(main)


def test_a_preview_that_fails_ends_the_request() -> None:
    async def main() -> None:
        async with started() as stage:
            stream = stage.open(SpeakRequest("r", "eager"))
            for text in ("ab", "!"):
                await stream.push(text)
            try:
                await collect(stream)
            except StageError as error:
                assert "no preview of this" in error.message
            else:
                raise AssertionError("the failure was not told")
            assert stage.active == 0

    check(main)


def test_an_abort_between_previews_frees_the_request() -> None:
    async def main() -> None:
        async with started() as stage:
            stream = stage.open(SpeakRequest("r", "eager"))
            await stream.push("abc")
            assert await anext(stream) == "abc..."
            stream.abort()
            await stream.push("def")
            assert await collect(stream) == []
            await until(lambda: stage.active == 0)

    check(main)
