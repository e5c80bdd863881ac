"""A stage in a worker, seen from outside, is the same stage."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import FakeWriter, words
from pipelines.ports import Speaker, Writer
from pipelines.runtime.remote_stage import ProcessStage
from pipelines.types import (
    FinishReason,
    Message,
    RecogniseRequest,
    SpeechDelta,
    StageError,
    Transcript,
    Urgency,
    WriteRequest,
)
from tests.pipelines.runtime.worker_driving import (
    eventually,
    request,
    rest,
    say,
    serving,
    stage_of,
)
from tests.pipelines.waiting import check

UNICODE = "\u00fc\u4f60\u597d \U0001f600 a\u0301 \u202b\u05d0"


def test_speech_is_that_of_the_stage_itself() -> None:
    async def speech(stage: Speaker) -> list[tuple[object, ...]]:
        stream = stage.open(request())
        for text in ("Hello ", f"my {UNICODE}", " friend."):
            await stream.push(text)
        await stream.finish()
        outputs: list[SpeechDelta] = await rest(stream)
        assert stage.active == 0
        return [(d.samples.tobytes(), d.rate_hz, d.text_end, d.words) for d in outputs]

    async def main() -> None:
        here: Speaker = FakeSpeaker(ms_per_word=10.0)
        await here.start(lambda line: None)
        async with serving("speaker") as there:
            said = await speech(there)
            assert len(said) > 3 and said == await speech(here)
        await here.close()

    check(main)


def test_writing_is_that_of_the_stage_itself() -> None:
    async def main() -> None:
        text = f"Some words, {UNICODE}."
        asked = WriteRequest("r", (Message("user", text),))
        here: Writer = FakeWriter([words(text)])
        await here.start(lambda line: None)
        async with serving("writer", {"text": text}) as there:
            assert await rest(here.open(asked)) == (outputs := await rest(there.open(asked)))
            assert outputs[-1].reason is FinishReason.STOP
        await here.close()

    check(main)


def test_audio_goes_in_and_a_transcript_comes_out() -> None:
    async def main() -> None:
        async with serving("recogniser") as stage:
            stream = stage.open(RecogniseRequest("r", prompt=UNICODE))
            for _ in range(300):  # more than may be on its way at once
                await stream.push(np.zeros(512, np.float32))
            await stream.finish()
            assert await rest(stream) == [Transcript(f"{UNICODE}{300 * 512}", is_final=True)]

    check(main)


def test_big_arrays_come_whole() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            small, big = await say(stage, "big 0", "big 3000000")
            assert small.samples.size == 0
            assert np.array_equal(big.samples, np.arange(3_000_000, dtype=np.float32))

    check(main)


def test_thousands_of_outputs_keep_their_order() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            assert await say(stage, "count 5000") == [str(number) for number in range(5000)]
            texts = [f"t{number}" for number in range(2000)]
            stream = stage.open(request())

            async def push() -> None:
                for text in texts:
                    await stream.push(text)
                await stream.finish()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(push())
                assert await rest(stream) == texts

    check(main)


def test_two_hundred_streams_at_once_do_not_mix() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:

            async def talk(number: int) -> None:
                texts = [f"{number}-{part}" for part in range(20)]
                assert await say(stage, *texts) == texts

            async with asyncio.TaskGroup() as tasks:
                for number in range(200):
                    tasks.create_task(talk(number))
            assert stage.active == 0 and stage.abort_latency.count == 0

    check(main)


def test_a_change_of_urgency_arrives() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            stream = stage.open(request(urgency=Urgency.DRAFT))
            await stream.push("urgency")
            assert await anext(stream) == "DRAFT"
            stream.hurry(Urgency.FIRST_AUDIO)
            await stream.push("urgency")
            assert await anext(stream) == "FIRST_AUDIO"
            stream.abort()
            stream.hurry(Urgency.STEADY)
            await eventually(lambda: stage.active == 0)

    check(main)


def test_what_is_said_after_the_end_is_ignored() -> None:
    async def main() -> None:
        async with serving("obedient") as stage:
            stream = stage.open(request())
            await stream.push("a")
            await stream.finish()
            await stream.push("late")
            await stream.finish()
            assert await rest(stream) == ["a"]
            await stream.push("later")
            stream.hurry(Urgency.DRAFT)
            stream.abort()
            assert await rest(stream) == []
            assert await say(stage, "b") == ["b"]
            assert stage.abort_latency.count == 0

    check(main)


@pytest.mark.parametrize(
    ("told", "code", "message"),
    [
        ("fail", "told_to_fail", "It was told so: \u00fc\u4f60\U0001f600"),
        ("break", "obedient_failed", "ZeroDivisionError: by nothing"),
        ("doubles", "obedient_failed", r"SpeechDelta.samples is an array of float64 \[3\]"),
    ],
)
def test_a_failure_is_of_one_request(told: str, code: str, message: str) -> None:
    async def main() -> None:
        async with serving("obedient", name="obedient") as stage:
            other = stage.open(request())
            stream = stage.open(request())
            await stream.push("before")
            await stream.push(told)
            assert await anext(stream) == "before"
            with pytest.raises(StageError, match=message) as raised:
                await anext(stream)
            assert raised.value.code == code
            await other.push("still here")
            await other.finish()
            assert await rest(other) == ["still here"]
            assert stage.active == 0 and stage.restarts == 0

    check(main)


def test_an_input_that_cannot_be_sent_fails_its_request() -> None:
    async def main() -> None:
        async with serving("obedient", name="obedient") as stage:
            stream = stage.open(request())
            await stream.push(object())
            with pytest.raises(StageError, match="builtins.object is none of the types that"):
                await rest(stream)
            with pytest.raises(StageError, match="SpeakRequest.voice is int 3"):
                await rest(stage.open(type(request())("r", 3)))  # type: ignore[arg-type]
            assert stage.active == 0
            assert await say(stage, "a") == ["a"]

    check(main)


def test_before_start_and_after_close() -> None:
    async def main() -> None:
        stage = stage_of("obedient")
        with pytest.raises(RuntimeError, match="before it was started"):
            stage.open(request())
        await stage.start(lambda line: None)
        with pytest.raises(RuntimeError, match="started once"):
            await stage.start(lambda line: None)
        stream = stage.open(request())
        await stage.close()
        assert await rest(stream) == []  # aborted
        await stream.push("a")
        with pytest.raises(StageError, match="is closed"):
            await rest(stage.open(request()))
        await stage.close()

    check(main)


def test_a_stage_that_cannot_be_asked_for_shows_at_once() -> None:
    for wrong in ("", "a.b", "a.b:", ":c", "a b:c", "a..b:c"):
        with pytest.raises(ValueError, match="stage tts: .* is not of the form"):
            ProcessStage("tts", wrong)
    with pytest.raises(ValueError, match="builtins.object is none of the types that travel"):
        ProcessStage("tts", "a.b:c", {"deep": [object()]})


@pytest.mark.parametrize("seed", range(2))
def test_a_storm_of_aborts_leaves_nothing_and_mixes_nothing(seed: int) -> None:
    """Requests of one id, aborted at any moment, with others between them that are read whole."""
    chance = random.Random(seed)

    async def main() -> None:
        async with serving("obedient") as stage:
            aborted = 0

            async def interrupted(number: int) -> None:
                nonlocal aborted
                stream = stage.open(request("same"))
                for _ in range(chance.randrange(4)):
                    await stream.push(f"count {1 + chance.randrange(40)}")
                    if chance.random() < 0.5:
                        assert await anext(stream) == "0"
                        break
                if chance.random() < 0.3:
                    await stream.finish()
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
                stream.abort()
                aborted += 1
                assert await rest(stream) == []

            async def whole(number: int) -> None:
                texts = [f"{number}-{part}" for part in range(5)]
                stream = stage.open(request("same"))
                for text in texts:
                    await stream.push(text)
                await stream.finish()
                assert await rest(stream) == texts

            async with asyncio.TaskGroup() as tasks:
                for number in range(300):
                    tasks.create_task((whole if number % 3 == 0 else interrupted)(number))
            await eventually(lambda: stage.active == 0)
            assert aborted == 200 and 0 < stage.abort_latency.count <= 200
            assert stage.restarts == 0

    check(main)
