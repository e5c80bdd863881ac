"""What is observed of requests on their way through, and that nothing of them is changed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from pipelines.ports import Cascade, SpeechStream
from pipelines.types import (
    RecogniseRequest,
    ReplyRequest,
    SpeakRequest,
    SpeechDelta,
    StageError,
    Urgency,
)
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.watched_cascade import WatchedCascade
from tests.realtime.runtime.stand_ins import ScriptedCascade, tone

RATE_HZ = 24_000


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class House:
    def __init__(self) -> None:
        self.inner, self.metrics, self.clock = ScriptedCascade(), Metrics(), Hand()
        self.cascade: Cascade = WatchedCascade(self.inner, self.metrics, self.clock)

    def observed(self, name: str) -> list[float]:
        """[count, total ms]"""
        histogram = self.metrics.histograms.get(name)
        return [histogram.count, round(histogram.total_ms, 6)] if histogram else []

    def outcomes(self, what: Count) -> dict[str, int]:
        return {labels[0]: n for labels, n in self.metrics.labelled.get(what, {}).items()}


class TimedSpeech:
    """Each output takes as long as it says to make."""

    def __init__(self, clock: Hand, outputs: list[tuple[float, SpeechDelta | StageError]]) -> None:
        self._clock, self._outputs = clock, outputs
        self.told: list[Any] = []

    async def push(self, item: str) -> None:
        self.told.append(item)

    async def flush(self) -> None:
        self.told.append("flush")

    async def finish(self) -> None:
        self.told.append("finish")

    def abort(self) -> None:
        self.told.append("abort")

    def hurry(self, urgency: Urgency) -> None:
        self.told.append(urgency)

    async def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        for takes_s, output in self._outputs:
            self._clock.now_s += takes_s
            if isinstance(output, StageError):
                raise output
            yield output


def sound(seconds: float) -> SpeechDelta:
    return SpeechDelta(np.zeros(round(seconds * RATE_HZ), np.float32), RATE_HZ, 1)


def open_speech(
    house: House, monkeypatch: pytest.MonkeyPatch, *outputs: tuple[float, Any]
) -> tuple[SpeechStream, TimedSpeech]:
    inner = TimedSpeech(house.clock, list(outputs))
    monkeypatch.setattr(house.inner, "speak", lambda _request: inner)
    return house.cascade.speak(SpeakRequest("s1", "default")), inner


def test_a_speech_is_measured_by_what_its_reader_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        house = House()
        stream, inner = open_speech(
            house, monkeypatch, (0.2, sound(0.0)), (0.1, sound(1.0)), (0.5, sound(3.0))
        )
        house.clock.now_s += 50  # nothing was asked for yet
        await stream.push("Hello.")
        await stream.flush()
        await stream.finish()
        stream.hurry(Urgency.STEADY)
        assert inner.told == ["Hello.", "flush", "finish", Urgency.STEADY]
        lengths = list[int]()
        async for delta in stream:
            lengths.append(len(delta.samples))
            house.clock.now_s += 7 if len(delta.samples) else 0  # a reader that is slow itself
        assert lengths == [0, RATE_HZ, 3 * RATE_HZ]
        assert house.observed("speech_first_audio_ms") == [1, 300.0]
        assert house.observed("speech_waited_ms_per_s") == [1, 200.0]  # 0.8 s for 4 s
        assert house.outcomes(Count.SPEECH_REQUESTS) == {"completed": 1}
        assert house.metrics.counts[Count.AUDIO_SPOKEN_US] == 4_000_000
        stream.abort()  # after its end: it changes nothing
        assert house.outcomes(Count.SPEECH_REQUESTS) == {"completed": 1}

    asyncio.run(run())


def test_a_text_that_is_still_written_says_nothing_about_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        house = House()
        stream, _ = open_speech(house, monkeypatch, (0.1, sound(1.0)), (9.0, sound(1.0)))
        await stream.push("Hel")
        outputs = aiter(stream)
        await anext(outputs)
        await stream.push("lo.")
        await stream.finish()
        assert len([delta async for delta in outputs]) == 1
        assert house.observed("speech_first_audio_ms") == [1, 100.0]
        assert house.observed("speech_waited_ms_per_s") == []

    asyncio.run(run())


def test_a_speech_without_sound_or_with_an_error_has_an_outcome_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        house = House()
        stream, _ = open_speech(house, monkeypatch)
        await stream.finish()
        assert [delta async for delta in stream] == []
        error = StageError("tts_failed", "broken")
        stream, _ = open_speech(house, monkeypatch, (0.1, sound(1.0)), (0.1, error))
        await stream.push("Hello.")
        await stream.finish()
        with pytest.raises(StageError, match="broken"):
            _ = [delta async for delta in stream]
        stream.abort()
        stream, inner = open_speech(house, monkeypatch, (0.1, sound(1.0)))
        stream.abort()
        assert inner.told == ["abort"]
        assert house.outcomes(Count.SPEECH_REQUESTS) == {
            "completed": 1,
            "failed": 1,
            "aborted": 1,
        }
        assert house.observed("speech_waited_ms_per_s") == []

    asyncio.run(run())


class QueuedSpeech(TimedSpeech):
    """Its outputs are there when a test puts them; a cancelled wait for one loses nothing."""

    def __init__(self, clock: Hand) -> None:
        super().__init__(clock, [])
        self.queue = asyncio.Queue[SpeechDelta]()

    def __aiter__(self) -> AsyncIterator[SpeechDelta]:
        return self

    async def __anext__(self) -> SpeechDelta:
        return await self.queue.get()


def test_whoever_waits_with_a_deadline_may_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        house = House()
        inner = QueuedSpeech(house.clock)
        monkeypatch.setattr(house.inner, "speak", lambda _request: inner)
        outputs = aiter(house.cascade.speak(SpeakRequest("s1", "default")))
        waiting = asyncio.ensure_future(anext(outputs))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled() and not house.outcomes(Count.SPEECH_REQUESTS)
        inner.queue.put_nowait(sound(1.0))
        assert len((await anext(outputs)).samples) == RATE_HZ

    asyncio.run(run())


def test_a_recognition_is_timed_from_the_end_of_its_sound() -> None:
    async def run() -> None:
        house = House()
        stream = house.cascade.recognise(RecogniseRequest("r1"))
        await stream.push(tone(1500, rate_hz=16_000))
        house.clock.now_s += 3
        await stream.finish()
        house.clock.now_s += 0.25
        (heard,) = [transcript async for transcript in stream]
        assert (heard.text, heard.is_final) == ("hello", True)
        assert house.observed("recognition_ms") == [1, 250.0]
        assert house.metrics.counts[Count.AUDIO_RECOGNISED_US] == 1_500_000
        house.cascade.recognise(RecogniseRequest("r2")).abort()
        assert house.outcomes(Count.RECOGNITIONS) == {"completed": 1, "aborted": 1}

    asyncio.run(run())


def test_a_reply_counts_its_sound_and_passes_everything() -> None:
    async def run() -> None:
        house = House()
        stream = house.cascade.reply(ReplyRequest("p1", (), Urgency.FIRST_AUDIO, True, "default"))
        stream.hold_speech(True)
        stream.hold_speech(False)
        stream.hurry(Urgency.STEADY)
        outputs = [output async for output in stream]
        assert outputs == house.inner.outputs
        inner = house.inner.streams[-1]
        assert (inner.holds, inner.urgencies) == ([True, False], [Urgency.STEADY])
        assert house.metrics.labelled[Count.AUDIO_SPOKEN_US] == {("reply",): 2_000_000}
        stream.abort()
        assert inner.is_aborted

    asyncio.run(run())


def test_everything_else_is_the_cascade_s_own() -> None:
    async def run() -> None:
        house = House()
        gate = house.inner.judge_gate = asyncio.Event()
        asking = asyncio.ensure_future(house.cascade.judge(tone(100)))
        await asyncio.sleep(0)
        house.clock.now_s += 0.5
        gate.set()
        assert await asking == house.inner.probability
        assert house.observed("judge_ms") == [1, 500.0]
        house.cascade.detect()
        assert len(house.inner.detectors) == 1
        for name in ("voices", "copies_voices", "model", "stats", "capacity", "active"):
            assert getattr(house.cascade, name) == getattr(house.inner, name), name

    asyncio.run(run())


def test_nothing_of_the_port_is_missing() -> None:
    of_port = {name for name, _ in inspect.getmembers(Cascade) if not name.startswith("_")}
    assert of_port <= set(dir(WatchedCascade))
