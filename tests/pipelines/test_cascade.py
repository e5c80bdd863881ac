from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest

from pipelines import ports
from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import Call, End, Fail, FakeWriter, Say, Stall, Step, words
from pipelines.reply import ReplyTiming
from pipelines.runtime.async_stage import AsyncDuplexStage, AsyncStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    RecogniseRequest,
    ReplyOutput,
    ReplyRequest,
    SpeakRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    ToolCallDelta,
    Urgency,
    WriteOutput,
    WriteRequest,
)

C = TypeVar("C", bound=VoiceCascade)
SENTENCES = "I can help you with that, if you tell me more about it. What does it say? Thank you!"


def request(speak: bool = True, urgency: Urgency = Urgency.FIRST_AUDIO) -> ReplyRequest:
    return ReplyRequest("r", (Message("user", "hi"),), urgency, speak, "tone")


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


def with_cascade(cascade: C, body: Callable[[C], Awaitable[None]]) -> None:
    async def main() -> None:
        await cascade.start(lambda line: None)
        try:
            await body(cascade)
            for _ in range(10):
                await asyncio.sleep(0)
            assert cascade.active == 0
        finally:
            await cascade.close()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


def scripted(
    script: list[Step], speaker: FakeSpeaker | None = None, pause_ms: int = 150, **timing: Any
) -> FakeCascade:
    chosen = ReplyTiming(pause_ms, **timing)
    return FakeCascade(writer=FakeWriter([script]), speaker=speaker, timing=chosen)


async def collect(stream: ports.ReplyStream) -> tuple[list[ReplyOutput], StageError | None]:
    outputs: list[ReplyOutput] = []
    try:
        async for output in stream:
            outputs.append(output)  # noqa: PERF401 (what came before a failure counts)
    except StageError as error:
        return outputs, error
    return outputs, None


def text_of(outputs: list[ReplyOutput]) -> str:
    return "".join(output.text for output in outputs if isinstance(output, TextDelta))


def check_order(outputs: list[ReplyOutput]) -> None:
    """Speech never runs ahead of its text, never goes back; Finished comes once, and last."""
    shown = heard = 0
    for number, output in enumerate(outputs):
        match output:
            case TextDelta(text):
                shown += len(text)
            case SpeechDelta(text_end=text_end, words=words):
                ends = [heard, *(word.text_end for word in words), text_end]
                assert ends == sorted(ends) and text_end <= shown
                heard = text_end
            case Finished():
                assert number == len(outputs) - 1
            case ToolCallDelta():
                pass


@pytest.mark.parametrize("speak", [True, False])
def test_a_text_that_stands_is_said_and_nothing_is_written(speak: bool) -> None:
    async def body(cascade: FakeCascade) -> None:
        recited = replace(request(speak), text="What was not heard. And more.")
        outputs, error = await collect(cascade.reply(recited))
        assert error is None
        check_order(outputs)
        assert text_of(outputs) == "What was not heard. And more."
        speech = [output for output in outputs if isinstance(output, SpeechDelta)]
        assert [len(speech) > 0, not cascade.writer.requests] == [speak, True]

    with_cascade(scripted([Stall()]), body)


def test_text_and_speech_come_in_one_order_and_speech_covers_the_text() -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is None
        check_order(outputs)
        assert text_of(outputs) == SENTENCES
        assert isinstance(outputs[-1], Finished)
        speech = [output for output in outputs if isinstance(output, SpeechDelta)]
        assert speech[-1].text_end == len(SENTENCES)
        assert sum(len(delta.samples) for delta in speech) == 19 * 7200
        # It ended by itself: nothing is left, and nothing counts as aborted.
        assert cascade.active == 0
        assert cascade.reply_abort_latency.count == 0
        assert cascade.writer.abort_latency.count == cascade.speaker.abort_latency.count == 0

    with_cascade(scripted(words(SENTENCES, 100, 50)), body)


def test_the_voice_starts_while_the_writer_writes() -> None:
    async def body(cascade: FakeCascade) -> None:
        heard_ms = ended_ms = None
        async for output in cascade.reply(request()):
            if isinstance(output, SpeechDelta) and heard_ms is None:
                heard_ms = now_ms()
            if isinstance(output, TextDelta):
                ended_ms = now_ms()
        # Four words at 100 ms each are known when the fifth begins; then 80 ms of voice.
        assert heard_ms == pytest.approx(300 + 4 * 100 + 80)
        assert ended_ms == pytest.approx(300 + 18 * 100)

    speaker = FakeSpeaker(first_ms=20, real_time_factor=0.2)
    with_cascade(scripted(words(SENTENCES, 300, 100), speaker), body)


def test_a_writer_that_pauses_is_spoken_meanwhile() -> None:
    script: list[Step] = [Say("One moment "), Say("please, I will look.", after_ms=5000)]

    async def body(cascade: FakeCascade) -> None:
        stream = cascade.reply(request())
        first_speech_ms = None
        async for output in stream:
            if isinstance(output, SpeechDelta) and first_speech_ms is None:
                first_speech_ms = now_ms()
        assert first_speech_ms == pytest.approx(150)
        assert [text for _, text in cascade.speaker.pushed][0] == "One moment "

    with_cascade(scripted(script, pause_ms=150), body)


def test_text_alone_leaves_the_voice_alone() -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request(speak=False)))
        assert error is None and text_of(outputs) == SENTENCES
        assert {type(output) for output in outputs} == {TextDelta, Finished}
        assert not cascade.speaker.requests

    with_cascade(scripted(words(SENTENCES)), body)


@pytest.mark.parametrize("speak", [True, False])
def test_an_empty_reply_finishes(speak: bool) -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request(speak)))
        assert error is None and outputs == [Finished(FinishReason.LENGTH)]

    with_cascade(scripted([Say(""), End(FinishReason.LENGTH)]), body)


def test_tool_calls_come_as_they_are_written() -> None:
    script: list[Step] = [
        Say("Let me see, "),
        Call("look", '{"a"', after_ms=10),
        Call("look", ":1}", after_ms=10),
        Call("find", "{}", "call_2", index=1),
    ]

    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is None
        check_order(outputs)
        assert [output for output in outputs if isinstance(output, ToolCallDelta)] == [
            ToolCallDelta(0, "call_1", "look", '{"a"'),
            ToolCallDelta(0, "", "", ":1}"),
            ToolCallDelta(1, "call_2", "find", "{}"),
        ]
        assert isinstance(outputs[-1], Finished)
        assert outputs[-1].reason is FinishReason.TOOL_CALLS

    with_cascade(scripted(script), body)


def test_what_cannot_be_spoken_is_covered_in_the_end() -> None:
    script: list[Step] = [Say("That is good news, "), Say("😀" * 3, after_ms=5000)]

    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is None
        check_order(outputs)
        speech = [output for output in outputs if isinstance(output, SpeechDelta)]
        assert speech[-1].text_end == len(text_of(outputs)) == 22
        assert len(speech[-1].samples) == 0  # all the sound had left long before

    with_cascade(scripted(script), body)


def test_display_text_stays_and_spoken_text_goes_to_the_voice() -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, _ = await collect(cascade.reply(request()))
        assert text_of(outputs) == "**It costs $5.**"
        assert [text for _, text in cascade.speaker.pushed] == ["It costs five dollars."]

    with_cascade(scripted([Say("**It costs "), Say("$5.**")]), body)


def test_a_failing_voice_ends_the_reply_after_what_was_spoken() -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is not None and error.code == "tts_failed"
        check_order(outputs)
        speech = [output for output in outputs if isinstance(output, SpeechDelta)]
        assert [len(delta.samples) for delta in speech] == [7200, 7200, 3600]
        # Every output before the failure was kept; the writer was stopped by it.
        assert len(text_of(outputs)) < len(SENTENCES)

    speaker = FakeSpeaker(fail_after_words=2.5, real_time_factor=0.1)
    with_cascade(scripted(words(SENTENCES, 100, 100), speaker), body)


def test_a_failing_writer_ends_the_reply_after_what_was_spoken() -> None:
    script = [*words("I can help you with that, if ", 10, 10), Fail(StageError("llm_broke", "x"))]

    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is not None and error.code == "llm_broke"
        check_order(outputs)
        assert text_of(outputs) == "I can help you with that, if "
        spoken = "".join(text for _, text in cascade.speaker.pushed)
        assert spoken == "I can help you with that, "
        speech = [output for output in outputs if isinstance(output, SpeechDelta)]
        assert len(speech) == 6 and speech[-1].text_end == len(spoken)

    with_cascade(scripted(script, FakeSpeaker(first_ms=500, real_time_factor=0.5)), body)


@pytest.mark.parametrize("script", [[Stall()], [Say("Well, you know, I "), Stall()]])
def test_a_silent_writer_ends_the_reply(script: list[Step]) -> None:
    async def body(cascade: FakeCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is not None and error.code == "stage_timeout"
        assert "fake-writer" in error.message
        assert now_ms() == pytest.approx(3000)
        assert text_of(outputs) == "".join(s.text for s in script if isinstance(s, Say))

    with_cascade(scripted(script, writer_timeout_ms=3000), body)


def test_a_voice_that_hangs_ends_the_reply() -> None:
    async def hang(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        await asyncio.Event().wait()
        yield SpeechDelta(np.zeros(1, np.float32), 16_000, 0)

    async def body(cascade: VoiceCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is not None and error.code == "stage_timeout"
        assert text_of(outputs) == SENTENCES

    speaker = AsyncDuplexStage[SpeakRequest, str, SpeechDelta]("hanging", hang)
    with_cascade(composed(FakeWriter([words(SENTENCES)]), speaker), body)


def test_a_writer_that_ends_without_finishing_is_an_error() -> None:
    async def write(request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        yield TextDelta("Well, ")

    async def body(cascade: VoiceCascade) -> None:
        outputs, error = await collect(cascade.reply(request()))
        assert error is not None and error.code == "writer_broke_off"

    with_cascade(composed(AsyncStage("rude", write), FakeSpeaker()), body)


def composed(writer: ports.Writer, speaker: ports.Speaker) -> VoiceCascade:
    options = CascadeOptions(("tone",), "script")
    return VoiceCascade(
        FakeDetectorStage(), FakeJudge(), FakeRecogniser(), writer, speaker, options
    )


def test_hurry_reaches_the_parts_and_the_first_sound_calms_them() -> None:
    tickets: dict[str, Ticket] = {}

    async def write(request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        tickets["writer"] = ticket
        assert request.urgency is Urgency.DRAFT
        await asyncio.sleep(2)
        yield TextDelta("So it is. ")
        await asyncio.sleep(2)
        yield Finished(FinishReason.STOP)

    async def speak(
        request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        tickets["speaker"] = ticket
        async for text in inputs:
            yield SpeechDelta(np.zeros(10, np.float32), 16_000, len(text))

    async def body(cascade: VoiceCascade) -> None:
        stream = cascade.reply(request(urgency=Urgency.DRAFT))
        await asyncio.sleep(1)
        stream.hurry(Urgency.FIRST_AUDIO)
        assert [tickets[part].urgency for part in ("writer", "speaker")] == [
            Urgency.FIRST_AUDIO
        ] * 2
        await asyncio.sleep(2)
        assert [tickets[part].urgency for part in ("writer", "speaker")] == [Urgency.STEADY] * 2
        outputs, error = await collect(stream)
        assert error is None and isinstance(outputs[-1], Finished)

    speaker = AsyncDuplexStage[SpeakRequest, str, SpeechDelta]("speaker", speak)
    with_cascade(composed(AsyncStage("writer", write), speaker), body)


def test_a_stalled_session_pauses_the_writer() -> None:
    made: list[int] = []

    async def write(request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        for number in range(10_000):
            made.append(number)
            yield TextDelta("word ")
        yield Finished(FinishReason.STOP)

    async def body(cascade: VoiceCascade) -> None:
        stream = cascade.reply(request())
        await asyncio.sleep(3600)
        assert len(made) < 1000
        outputs, error = await collect(stream)
        assert error is None
        check_order(outputs)
        assert text_of(outputs) == "word " * 10_000

    with_cascade(composed(AsyncStage("prolific", write), FakeSpeaker(ms_per_word=1)), body)


def test_a_part_that_fails_to_start_closes_the_rest() -> None:
    class Missing(FakeWriter):
        async def start(self, progress: ports.Progress) -> None:
            raise StageError("model_missing", "get it")

    async def main() -> None:
        cascade = FakeCascade(writer=Missing())
        with pytest.raises(StageError, match="get it"):
            await cascade.start(lambda line: None)
        assert len(asyncio.all_tasks()) == 1
        with pytest.raises(StageError, match="closed"):
            await anext(aiter(cascade.reply(request())))

    run_virtual(main())


def test_hearing_goes_to_its_stages() -> None:
    async def body(cascade: FakeCascade) -> None:
        port: ports.Cascade = cascade
        assert port.voices == ("tone",) and port.model == "script"
        detector = port.detect()
        assert port.active == 1
        assert await detector.step(np.full(512, 0.5, np.float32)) > 0.9
        detector.close()
        assert await port.judge(np.zeros(16_000, np.float32)) > 0.9
        stream = port.recognise(RecogniseRequest("r"))
        await stream.push(np.zeros(512, np.float32))
        await stream.finish()
        assert [transcript.text async for transcript in stream] == ["hello"]

    with_cascade(FakeCascade(), body)
