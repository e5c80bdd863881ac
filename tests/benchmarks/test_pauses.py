"""Pauses of a recording, and what an agent did in them."""

from __future__ import annotations

import numpy as np

from benchmarks.end_of_turn import by_pause
from benchmarks.listening import Span
from benchmarks.pauses import Kind, Pause, Reply, attribute, pauses_of
from benchmarks.recordings import Recording, voiced_spans

RATE_HZ = 24_000


def recording(
    *lengths_ms: int, tags: tuple[str, ...] = (), put: tuple[int, int] | None = None
) -> Recording:
    """Voice and silence in turn, voice first."""
    pieces = [
        np.full(RATE_HZ * ms // 1000, 0 if place % 2 else 8000, np.int16)
        for place, ms in enumerate(lengths_ms)
    ]
    return Recording("r", "", frozenset(tags), np.concatenate(pieces), put)


def test_voiced_spans_leave_out_silence_and_clicks() -> None:
    pcm = recording(500, 300, 400, 200, 20, 100).pcm
    per_ms = RATE_HZ // 1000
    assert voiced_spans(pcm) == [(0, 500 * per_ms), (800 * per_ms, 1200 * per_ms)]


def test_digital_silence_has_no_voice() -> None:
    assert voiced_spans(np.zeros(RATE_HZ, np.int16)) == []


def test_short_breaks_are_no_pauses() -> None:
    assert pauses_of(recording(500, 200, 500, 700, 500)) == [Pause(Kind.NATURAL, 1200, 1900)]


def test_a_pause_that_was_put_in_has_its_own_length() -> None:
    cut = recording(500, 400, 500, 700, 500, tags=("mid-pause",), put=(1250, 1850))
    assert pauses_of(cut) == [
        Pause(Kind.NATURAL, 500, 900),
        Pause(Kind.MID_PAUSE, 1250, 1850),
    ]
    assert [pause.label for pause in pauses_of(cut)] == ["250-450", "600"]


def test_a_pause_between_utterances_is_told_apart() -> None:
    joined = recording(500, 600, 500, tags=("two-utterances",), put=(500, 1100))
    assert [pause.kind for pause in pauses_of(joined)] == [Kind.TWO_UTTERANCES]


TWO = [Pause(Kind.NATURAL, 1000, 1600), Pause(Kind.MID_PAUSE, 3000, 4000)]


def test_a_sound_belongs_to_the_pause_before_it() -> None:
    early = Reply((Span(3500.0, 4400.0),), None)
    first, second = attribute(TWO, 6000.0, [early], [3400.0])
    assert not first.is_cut_in and not first.is_early
    assert second.is_cut_in and second.is_early and not second.is_take_over


def test_a_long_sound_is_a_take_over() -> None:
    early = Reply((Span(1500.0, 2600.0),), None)
    assert [t.is_take_over for t in attribute(TWO, 6000.0, [early], [])] == [True, False]


def test_an_answer_after_the_last_word_is_no_cut_in() -> None:
    answer = Reply((Span(6000.0, 9000.0),), 12)
    taken = attribute(TWO, 6000.0, [answer], [6100.0])
    assert not any(t.is_cut_in or t.is_early for t in taken)


def test_a_reply_that_was_never_heard_is_no_cut_in() -> None:
    taken = attribute(TWO, 6000.0, [Reply((), None)], [1300.0])
    assert [t.is_cut_in for t in taken] == [False, False]
    assert [t.is_early for t in taken] == [True, False]


def row(name: str, latency_ms: float | None, *pauses: dict, one_answer: bool = True) -> dict:
    return {
        "recording": name,
        "pauses": list(pauses),
        "one_answer": one_answer,
        "answered": True,
        "latency_ms": latency_ms,
    }


def pause(kind: Kind, label: str, cut_in: bool = False, early: bool = False) -> dict:
    return {"kind": kind, "label": label, "cut_in": cut_in, "take_over": cut_in, "early": early}


def test_the_table_counts_pauses_and_takes_the_latency_of_recordings() -> None:
    table = by_pause(
        [
            row("plain", 500.0),
            row("a", 700.0, pause(Kind.MID_PAUSE, "600", early=True), pause(Kind.NATURAL, "-250")),
            row("b", None, pause(Kind.MID_PAUSE, "600", cut_in=True), one_answer=False),
            row("c", 900.0, pause(Kind.MID_PAUSE, "1000", early=True), one_answer=False),
        ]
    )
    shown = [(r["kind"], r["length"], r["n"], r["cut_ins"], r["early"], r["joined"]) for r in table]
    assert shown == [
        (Kind.MID_PAUSE, "600", 2, 1, 1, 1),
        (Kind.MID_PAUSE, "1000", 1, 0, 1, 0),
        (Kind.NATURAL, "-250", 1, 0, 0, 0),
        (Kind.END, "", 1, 0, 0, 0),
    ]
    assert [r["latency_ms"]["median"] for r in table] == [700.0, 900.0, 700.0, 500.0]
