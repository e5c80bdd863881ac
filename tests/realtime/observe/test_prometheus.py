"""The text format, and what the server's figures look like in it."""

from __future__ import annotations

import math

import pytest

from pipelines.ports import Capacity, StageStats
from realtime.observe.figures import COUNTERS, GAUGES, HISTOGRAMS, server_families
from realtime.observe.metrics import MOST_LABELS, OTHER, Count, Histogram, Metrics
from realtime.observe.prometheus import Family, Kind, render
from realtime.runtime.stage_figures import stage_families
from tests.realtime.observe.exposition import Exposition, parse

IDLE = dict.fromkeys(GAUGES, 0.0)
UNITS = ("_seconds", "_bytes", "_per_second", "_factor")


def told(metrics: Metrics, *stats: StageStats) -> Exposition:
    return parse(render([*server_families(metrics, IDLE), *stage_families(stats)]))


def test_a_family_is_written_as_the_format_has_it() -> None:
    family = Family("parley_things_total", Kind.COUNTER, "What\\ever\nthere is.")
    family.put(3, {"key": 'a "b" \\ c\nd', "kind": "x"})
    family.put(0.25)
    assert render([family]) == (
        "# HELP parley_things_total What\\\\ever\\nthere is.\n"
        "# TYPE parley_things_total counter\n"
        'parley_things_total{key="a \\"b\\" \\\\ c\\nd",kind="x"} 3\n'
        "parley_things_total 0.25\n"
    )
    read = parse(render([family]))
    assert read.value("parley_things_total", key='a "b" \\ c\nd', kind="x") == 3
    assert render([]) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1, "0.1"), (2.0, "2"), (1e15, "1000000000000000"), (math.inf, "+Inf"), (1e-7, "1e-07")],
)
def test_numbers_are_exact(value: float, shown: str) -> None:
    family = Family("parley_number", Kind.GAUGE, "A number.")
    family.put(value)
    assert render([family]).splitlines()[-1] == f"parley_number {shown}"


@pytest.mark.parametrize(
    "text",
    [
        "a_total 1\n",  # no TYPE
        "# HELP a b\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a b\n# TYPE a gauge\na_bucket 1\n",
        '# HELP a b\n# TYPE a gauge\na{b="c"d"} 1\n',
        '# HELP a b\n# TYPE a gauge\na{b="\\x"} 1\n',
        "# HELP a b\n# TYPE a gauge\na 1\n# HELP a b\n",
        "# HELP a b\n# TYPE a gauge\na one\n",
        "# HELP a b\n# TYPE a gauge\na 1",
    ],
)
def test_the_reader_sees_what_is_wrong(text: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        parse(text)


def test_buckets_are_cumulative_and_in_seconds() -> None:
    metrics = Metrics()
    for value_ms in (0.5, 40, 40, 700, 120_000):
        metrics.observe("turn_end_to_first_audio_ms", value_ms)
    read = told(metrics)
    name = "parley_turn_end_to_first_audio_seconds"
    assert read.value(f"{name}_bucket", le="0.001") == 1
    assert read.value(f"{name}_bucket", le="0.03") == 1
    assert read.value(f"{name}_bucket", le="0.05") == 3
    assert read.value(f"{name}_bucket", le="60") == 4
    assert read.value(f"{name}_bucket", le="+Inf") == read.value(f"{name}_count") == 5
    assert read.value(f"{name}_sum") == pytest.approx(120.7805)
    for (series, labels), buckets in read.histograms().items():
        bounds, counts = zip(*buckets, strict=True)
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, series
        assert list(counts) == sorted(counts), series
        assert counts[-1] == read.samples[f"{series}_count", labels]


def test_every_count_has_a_name_and_stands_there_before_it_happens() -> None:
    assert set(COUNTERS) == set(Count)
    read = told(Metrics())
    assert read.value("parley_sessions_opened_total") == 0
    assert read.value("parley_loop_lag_seconds_count") == 0
    assert {f"parley_{name}" for name, _ in HISTOGRAMS.values()} <= set(read.kinds)
    for name, kind in read.kinds.items():
        assert name.startswith("parley_"), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert kind != "histogram" or name.endswith(UNITS), name


def test_a_response_is_observed_between_its_stations() -> None:
    metrics = Metrics()
    stamps = [("speech_end", 1000.0), ("turn_end", 1200.0), ("created", 1210.0)]
    stamps += [("voiced", 1250.0), ("first_audio", 1290.0), ("first_sent", 1300.0)]
    metrics.turn(label="s", status="completed", drafted=True, stamps_ms=stamps, response_id="r")
    # A draft: its first audio was there before the response began; of typed text no speech ends.
    stamps = [("voiced", 50.0), ("first_audio", 90.0), ("created", 100.0), ("first_sent", 100.0)]
    metrics.turn(label="s", status="cancelled", drafted=False, stamps_ms=stamps, response_id="r")
    read = told(metrics)
    sums = {
        name: (read.value(f"parley_{name}_seconds_count"), read.value(f"parley_{name}_seconds_sum"))
        for name in (
            *("speech_end_to_first_audio", "turn_end_to_first_audio"),
            *("response_first_audio", "voice_first_audio"),
        )
    }
    assert sums == {
        "speech_end_to_first_audio": (1, pytest.approx(0.3)),
        "turn_end_to_first_audio": (1, pytest.approx(0.1)),
        "response_first_audio": (2, pytest.approx(0.09)),
        "voice_first_audio": (2, pytest.approx(0.08)),
    }
    assert read.value("parley_responses_total", status="cancelled") == 1
    assert read.value("parley_turn_station_seconds_count", station="first_sent") == 2
    assert read.value("parley_turns_drafted_total") == 1


def test_what_others_can_choose_makes_no_more_than_so_many_samples() -> None:
    metrics = Metrics()
    for number in range(MOST_LABELS + 50):
        metrics.add(Count.SESSIONS_REFUSED, labels=(f"code {number}",))
    metrics.add(Count.SESSIONS_REFUSED, labels=("code 0",))
    read = told(metrics)
    name = "parley_sessions_refused_total"
    assert read.value(name, code="code 0") == 2
    assert read.value(name, code=OTHER) == 50
    counts = [value for (family, _), value in read.samples.items() if family == name]
    assert len(counts) == MOST_LABELS + 1 and sum(counts) == metrics.counts[Count.SESSIONS_REFUSED]


def test_stages_tell_what_they_know() -> None:
    read = told(
        Metrics(),
        StageStats("asr", 2, aborts=3, last_abort_ms=4.0, worst_abort_ms=90.0),
        StageStats(
            "tts",
            5,
            queued=1,
            slots=4,
            slots_used=4,
            capacity=Capacity(8.0, 2.5, 9.0),
            state="restarting",
            restarts=2,
            failure="gone",
        ),
    )
    assert read.value("parley_stage_active_requests", stage="asr") == 2
    assert read.value("parley_stage_aborts_total", stage="asr") == 3
    assert read.value("parley_stage_abort_worst_seconds", stage="asr") == 0.09
    assert read.value("parley_stage_up", stage="asr") == 1
    assert read.value("parley_stage_up", stage="tts") == 0
    assert read.value("parley_stage_slots", stage="tts") == 4
    assert read.value("parley_stage_queued_requests", stage="tts") == 1
    assert read.value("parley_stage_capacity_streams", stage="tts") == 8
    assert read.value("parley_stage_restarts_total", stage="tts") == 2
    assert read.value("parley_stage_state", stage="tts", state="restarting") == 1
    assert ("parley_stage_slots", (("stage", "asr"),)) not in read.samples


def test_two_stages_of_one_name_are_one_sample() -> None:
    read = told(Metrics(), StageStats("tts", 1), StageStats("tts", 2))
    assert read.value("parley_stage_active_requests", stage="tts") == 2


def test_a_histogram_adds_up_what_it_was_told() -> None:
    histogram = Histogram()
    histogram.observe(2)
    histogram.observe(5)
    assert (histogram.total_ms, histogram.count, histogram.largest_ms) == (7, 2, 5)
