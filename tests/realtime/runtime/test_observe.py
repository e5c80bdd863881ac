"""Counters, histograms, the line of a turn, the lag of the loop."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pipelines.fakes.virtual_time import run_virtual
from realtime.observe.loop_lag import RecentLag, watch_loop_lag
from realtime.observe.metrics import Count, Histogram, Metrics
from realtime.observe.slow_voice import watch_voices
from realtime.runtime.clock import LoopClock, ManualClock


def test_percentiles_are_upper_bounds_of_buckets() -> None:
    histogram = Histogram()
    assert histogram.percentile_ms(50) is None
    for value_ms in range(1, 101):
        histogram.observe(value_ms)
    assert histogram.percentile_ms(50) == 50
    assert histogram.percentile_ms(95) == 100
    histogram.observe(1_000_000)
    assert histogram.percentile_ms(100) == 1_000_000
    assert histogram.buckets()[-1] == (float("inf"), 101)
    assert histogram.buckets()[0] == (1.0, 1)


def test_a_turn_is_counted_and_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    with caplog.at_level(logging.INFO, "parley.turn"):
        metrics.turn(
            label="session 3",
            status="completed",
            drafted=True,
            stamps_ms=[("speech_end", 1000.0), ("first_sent", 1420.0), ("done", 3000.0)],
            response_id="resp_1",
        )
        metrics.turn(label="s", status="failed", drafted=False, stamps_ms=[], response_id="r")
    assert caplog.messages == [
        "session 3 resp_1 completed, drafted: speech_end 0, first_sent 420, done 2000 ms",
        "s r failed: no stations ms",
    ]
    assert metrics.counts[Count.TURNS] == 2 and metrics.counts[Count.TURNS_DRAFTED] == 1
    assert metrics.snapshot()["turn_first_sent_ms_max"] == 420


def test_the_recent_lag_forgets_what_was_long_ago() -> None:
    recent = RecentLag()
    assert recent.view() == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    recent.observe(900.0)
    for lag_ms in range(1, 401):
        recent.observe(float(lag_ms))
    assert recent.view() == {"p50": 200.0, "p99": 396.0, "max": 400.0}


def test_a_loop_that_keeps_time_has_no_lag() -> None:
    async def main() -> Metrics:
        metrics = Metrics()
        watching = asyncio.create_task(watch_loop_lag(metrics, RecentLag()))
        await asyncio.sleep(1.0)
        watching.cancel()
        await asyncio.wait({watching})
        return metrics

    metrics = run_virtual(main())
    assert metrics.histograms["loop_lag_ms"].count >= 19
    assert metrics.histograms["loop_lag_ms"].largest_ms < 1e-6  # virtual time has no lag


def test_a_voice_that_cannot_keep_up_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    streams = dict[str, float]()

    async def main() -> None:
        watching = asyncio.create_task(watch_voices(lambda: streams))
        await asyncio.sleep(60.0)
        streams["tts"] = 1.0
        await asyncio.sleep(60.0)
        assert caplog.messages == []
        streams["tts"] = 0.52
        await asyncio.sleep(60.0)
        watching.cancel()
        await asyncio.wait({watching})

    run_virtual(main())
    (told,) = caplog.messages
    assert told.startswith(
        "the voice (stage tts) makes 0.52 s of sound a second: it cannot keep up with one listener"
    )


def test_clocks_wake_by_event_or_by_time() -> None:
    async def main() -> None:
        clock, event = LoopClock(), asyncio.Event()
        start_ms = clock.now_ms()
        await clock.wait(event, start_ms + 50)
        assert clock.now_ms() == pytest.approx(start_ms + 50)
        event.clear()
        asyncio.get_running_loop().call_later(0.02, event.set)
        await clock.wait(event, start_ms + 500)
        assert clock.now_ms() == pytest.approx(start_ms + 70)
        event.clear()
        await clock.wait(event, start_ms)  # in the past: at once
        assert clock.now_ms() == pytest.approx(start_ms + 70)

    run_virtual(main())


def test_a_manual_clock_stands_still() -> None:
    async def main() -> None:
        clock, event = ManualClock(), asyncio.Event()
        waiting = asyncio.create_task(clock.wait(event, 100))
        await asyncio.sleep(1)
        clock.advance(99)
        await asyncio.sleep(1)
        assert not waiting.done()
        clock.advance(1)
        await waiting
        event.clear()
        await clock.wait(event, 100)
        assert clock.now_ms() == 100

    run_virtual(main())
