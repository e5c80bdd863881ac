"""A listener who has enough: the voice waits, what is written does not, and the end comes last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import Call, Fail, FakeWriter, Say, Script, Stall, words
from pipelines.ports import ReplyStream
from pipelines.reply import UNSAID_LIMIT_CHARS, ReplyTiming
from pipelines.types import (
    Finished,
    FinishReason,
    ReplyOutput,
    ReplyRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    Written,
)

TEXT = "There is so much more to say now. " * 20
WORD_MS = 300.0
REQUEST = ReplyRequest("r", (), Urgency.FIRST_AUDIO, True, "tone")


class Reader:
    """Takes every output at once; holds the speech once it has `enough` pieces of it."""

    def __init__(self, stream: ReplyStream, enough: int) -> None:
        self.stream = stream
        self.outputs: list[ReplyOutput] = []
        self.error: StageError | None = None
        self.is_over = False
        self._enough = enough
        self._pieces = 0  # of speech so far: some replies here have a hundred thousand outputs

    async def read(self) -> None:
        try:
            async for output in self.stream:
                self.outputs.append(output)
                if isinstance(output, SpeechDelta):
                    self._pieces += 1
                    if self._pieces == self._enough:
                        self.stream.hold_speech(True)
        except StageError as error:
            self.error = error
        self.is_over = True

    def of(self, kind: type[ReplyOutput]) -> list[ReplyOutput]:
        return [output for output in self.outputs if isinstance(output, kind)]


def held(
    script: Script,
    body: Callable[[FakeCascade, Reader], Awaitable[None]],
    enough: int = 3,
    timing: ReplyTiming | None = None,
) -> None:
    async def main() -> None:
        cascade = FakeCascade(
            writer=FakeWriter([script]), speaker=FakeSpeaker(ms_per_word=WORD_MS), timing=timing
        )
        await cascade.start(lambda line: None)
        try:
            async with asyncio.TaskGroup() as tasks:
                reader = Reader(cascade.reply(REQUEST), enough)
                tasks.create_task(reader.read())
                await body(cascade, reader)
                reader.stream.hold_speech(False)
                reader.stream.abort()
        finally:
            await cascade.close()
        assert cascade.active == 0

    run_virtual(main(), limit_s=600)


def test_text_and_calls_come_while_the_speech_waits() -> None:
    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(60)
        assert len(reader.of(SpeechDelta)) <= 4, "what was on its way may still come"
        assert "".join(o.text for o in reader.of(TextDelta) if isinstance(o, TextDelta)) == TEXT
        assert len(reader.of(ToolCallDelta)) == 1
        assert reader.outputs[-1] == Written(FinishReason.TOOL_CALLS)
        assert not reader.is_over
        reader.stream.hold_speech(False)
        await asyncio.sleep(0.001)
        assert reader.is_over and reader.error is None
        assert len(reader.of(SpeechDelta)) == len(TEXT.split())
        assert isinstance(reader.outputs[-1], Finished)

    held([*words(TEXT, 500, 40), Call("look", "{}")], body)


def test_a_writer_never_waits_for_the_voice() -> None:
    """A thousand sentences ahead; what made them would be kept from others, or be ended."""
    text = TEXT * 50

    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(1)
        assert reader.outputs[-1] == Written(FinishReason.STOP)
        assert cascade.writer.active == 0 and not reader.is_over

    held(words(text), body)


def test_a_writer_without_end_is_ended() -> None:
    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(1)
        assert reader.outputs[-1] == Written(None) and cascade.writer.active == 0
        written = sum(len(o.text) for o in reader.outputs if isinstance(o, TextDelta))
        assert UNSAID_LIMIT_CHARS < written < UNSAID_LIMIT_CHARS + 2_000
        reader.stream.hold_speech(False)
        while not reader.is_over:
            await asyncio.sleep(1)
        assert reader.error is not None and reader.error.code == "reply_too_long"

    held(words(TEXT * 200), body)


def test_the_voice_makes_little_while_it_waits() -> None:
    """Two outlets of a second each, and a piece in between."""

    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(20)
        made_s = cascade.speaker.made_words * WORD_MS / 1000
        assert made_s <= 4 * WORD_MS / 1000 + 2.5

    held(words(TEXT), body)


def test_a_wait_is_no_stall_and_a_voice_that_hangs_after_it_is() -> None:
    timing = ReplyTiming(stall_timeout_ms=5_000)

    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(100)
        assert reader.error is None and not reader.is_over
        reader.stream.hold_speech(False)
        await asyncio.sleep(0.001)
        assert reader.error is None and reader.is_over

    held(words(TEXT), body, timing=timing)

    async def hang(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(10)
        reader.stream.hold_speech(False)
        await asyncio.sleep(25)
        assert reader.error is not None and reader.error.code == "stage_timeout"

    held([Say("One two three four. "), Stall()], hang, timing=timing)


def test_an_abort_while_the_speech_waits_leaves_nothing() -> None:
    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(20)
        count = len(reader.outputs)
        reader.stream.abort()
        reader.stream.hold_speech(False)
        await asyncio.sleep(0.001)
        assert reader.is_over and len(reader.outputs) == count
        assert cascade.active == 0

    held(words(TEXT), body)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_writer_that_fails_is_told_of_and_what_was_written_is_said(is_held: bool) -> None:
    failure = Fail(StageError("llm_broke", "It broke."))

    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(20)
        if is_held:
            assert reader.outputs[-1] == Written(None) and not reader.is_over
            reader.stream.hold_speech(False)
            await asyncio.sleep(0.001)
        assert reader.of(Written) == [Written(None)]
        assert reader.is_over and reader.error is not None and reader.error.code == "llm_broke"

    held([*words(TEXT), failure], body, enough=3 if is_held else 1000)


def test_a_reply_that_is_not_held_is_written_before_it_finishes() -> None:
    async def body(cascade: FakeCascade, reader: Reader) -> None:
        await asyncio.sleep(1)
        assert reader.of(Written) == [Written(FinishReason.STOP)]
        assert isinstance(reader.outputs[-1], Finished)

    held(words("One two."), body, enough=1000)
