from __future__ import annotations

import asyncio
import itertools
import time

import numpy as np
import pytest

from pipelines.fakes.clock import LoopClock
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser, by_frame
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import VirtualTimeLoop, run_virtual
from pipelines.fakes.writer import FakeWriter, Say, echo, words
from pipelines.types import (
    Finished,
    Message,
    RecogniseRequest,
    SpeakRequest,
    StageError,
    TextDelta,
    WordEnd,
    WriteRequest,
)


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


def test_virtual_time_passes_at_once_and_in_order() -> None:
    order: list[str] = []

    async def sleep(name: str, duration_s: float) -> None:
        await asyncio.sleep(duration_s)
        order.append(name)

    async def main() -> float:
        assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
        async with asyncio.TaskGroup() as tasks:
            for name, duration_s in [("long", 86_400.0), ("short", 1.0), ("middle", 3600.0)]:
                tasks.create_task(sleep(name, duration_s))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    began_s = time.monotonic()
    assert run_virtual(main()) == pytest.approx(86_500)
    assert order == ["short", "middle", "long"]
    assert time.monotonic() - began_s < 60


def test_virtual_time_waits_for_calls_in_threads() -> None:
    async def main() -> tuple[str, float]:
        async with asyncio.timeout(1):
            return await asyncio.to_thread(lambda: "done"), now_ms()

    assert run_virtual(main()) == ("done", 0.0)


def test_virtual_time_has_an_end() -> None:
    async def main() -> None:
        for _ in itertools.count():
            await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match="limit"):
        run_virtual(main(), limit_s=60)


def test_a_detector_hears_energy_or_follows_its_script() -> None:
    async def main() -> None:
        stage = FakeDetectorStage()
        detector = stage.open()
        loud, quiet = np.full(512, 0.1, np.float32), np.full(512, 0.001, np.float32)
        assert await detector.step(loud) > 0.9 and await detector.step(quiet) < 0.1
        scripted = FakeDetectorStage(by_frame([0.1, 0.9])).open()
        heard = [await scripted.step(quiet) for _ in range(3)]
        assert heard[:2] == [0.1, 0.9] and heard[2] < 0.1
        scripted.reset()
        assert await scripted.step(quiet) == 0.1
        detector.close()
        detector.close()
        assert stage.active == 0

    run_virtual(main())


def test_a_judge_takes_its_time_and_may_fail() -> None:
    async def main() -> None:
        judge = FakeJudge([0.2, StageError("turn_failed", "x"), 0.9], delay_ms=50)
        audio = np.zeros(100, np.float32)
        assert await judge.ask(audio) == 0.2 and now_ms() == pytest.approx(50)
        with pytest.raises(StageError):
            await judge.ask(audio)
        assert [await judge.ask(audio) for _ in range(2)] == [0.9, 0.9]
        assert list(judge.asked_samples) == [100] * 4

    run_virtual(main())


def test_a_recogniser_hears_by_turn_or_by_function() -> None:
    async def hear(recogniser: FakeRecogniser, samples: int) -> str:
        stream = recogniser.open(RecogniseRequest("r"))
        await stream.push(np.zeros(samples, np.float32))
        await stream.finish()
        (final,) = [transcript async for transcript in stream]
        assert final.is_final
        return final.text

    async def main() -> None:
        by_turn = FakeRecogniser(["one", StageError("asr_failed", "x"), "three"], delay_ms=80)
        by_length = FakeRecogniser(lambda request, samples: f"{samples} samples")
        for stage in (by_turn, by_length):
            await stage.start(lambda line: None)
        assert await hear(by_turn, 10) == "one" and now_ms() == pytest.approx(80)
        with pytest.raises(StageError):
            await hear(by_turn, 10)
        assert [await hear(by_turn, 10) for _ in range(2)] == ["three", "three"]
        assert await hear(by_length, 77) == "77 samples"
        for stage in (by_turn, by_length):
            await stage.close()

    run_virtual(main())


def test_a_writer_keeps_its_times_and_its_order() -> None:
    async def main() -> None:
        writer = FakeWriter([words("One two.", 100, 50), [Say("again")]])
        await writer.start(lambda line: None)
        stream = writer.open(WriteRequest("r", ()))
        seen = [(round(now_ms()), output) async for output in stream]
        assert [(at, o.text) for at, o in seen if isinstance(o, TextDelta)] == [
            (100, "One"),
            (150, " two."),
        ]
        assert isinstance(seen[-1][1], Finished) and seen[-1][1].usage.output_tokens == 2
        again = [output async for output in writer.open(WriteRequest("r", ()))]
        assert again[0] == TextDelta("again")
        await writer.close()

    run_virtual(main())


def test_the_default_writer_repeats_what_it_heard() -> None:
    request = WriteRequest("r", (Message("user", "good day"),))
    assert "".join(s.text for s in echo(request) if isinstance(s, Say)) == "You said: good day"


def test_a_speaker_keeps_its_times_and_counts_its_characters() -> None:
    async def main() -> None:
        speaker = FakeSpeaker(ms_per_word=300, first_ms=40, real_time_factor=0.5, rate_hz=8000)
        await speaker.start(lambda line: None)
        stream = speaker.open(SpeakRequest("r", "tone", speed=1.5))
        await stream.push("One two, ")
        await stream.push("three")
        await stream.finish()
        seen = [(round(now_ms()), delta) async for delta in stream]
        assert [(at, delta.text_end) for at, delta in seen] == [(140, 4), (240, 9), (340, 14)]
        assert all(len(delta.samples) == 1600 and delta.rate_hz == 8000 for _, delta in seen)
        words = [delta.words for _, delta in seen]
        assert words == [(WordEnd(1600, end),) for end in (3, 8, 14)]
        assert all(delta.samples.dtype == np.float32 for _, delta in seen)
        assert 0.2 < float(np.abs(seen[0][1].samples).max()) < 0.4
        await speaker.close()

    run_virtual(main())


def test_a_speaker_fails_in_mid_word_when_told() -> None:
    async def main() -> None:
        speaker = FakeSpeaker(fail_after_words=1.5)
        await speaker.start(lambda line: None)
        stream = speaker.open(SpeakRequest("r", "tone"))
        await stream.push("One two three")
        assert len((await anext(stream)).samples) == 7200
        assert len((await anext(stream)).samples) == 3600
        with pytest.raises(StageError):
            await anext(stream)
        await speaker.close()

    run_virtual(main())


def test_the_clock_is_the_loops() -> None:
    async def main() -> float:
        clock = LoopClock()
        await clock.sleep_until(1500)
        await clock.sleep_until(1000)
        return clock.now_ms

    assert run_virtual(main()) == pytest.approx(1500)
