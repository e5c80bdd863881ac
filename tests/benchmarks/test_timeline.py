"""One turn on two clocks."""

from __future__ import annotations

import numpy as np

from benchmarks.higgs.timeline import LAST_HEARD, SOUND, Timeline
from realtime.commands.playback import Playback

RATE_HZ = 24_000


def turn() -> Timeline:
    timeline = Timeline(speech_end_ms=1000.0)
    playback = Playback(RATE_HZ)
    playback.arrive(1450.0, "item", np.full(RATE_HZ // 10, 5000, np.int16))
    playback.arrive(1600.0, "item", np.full(RATE_HZ // 10, 5000, np.int16))
    for at_ms, event in (
        (1300.0, {"type": "input_audio_buffer.committed"}),
        (1400.0, {"type": "response.output_audio_transcript.delta", "delta": "Well"}),
        (1420.0, {"type": "response.output_audio_transcript.delta", "delta": ", yes"}),
        (1450.0, {"type": "response.output_audio.delta", "item_id": "item"}),
        (
            1700.0,
            {
                "type": "response.done",
                "response": {"status": "completed", "usage": {"output_tokens": 7}},
                "parley": {"latency_ms": {"committed": 280, "first_token": 350, "done": 690}},
            },
        ),
    ):
        timeline.note(at_ms, event)
    timeline.heard(playback, ["a: b"])
    return timeline


def test_stations_of_both_clocks_stand_in_their_order() -> None:
    assert turn().rows() == [
        ("committed", 280, 300),
        ("first_token", 350, 400),
        ("first_audio_sent", None, 450),
        (SOUND, None, 450),
        ("done", 690, 700),
        (LAST_HEARD, None, 700),
    ]


def test_the_first_of_each_kind_counts_and_all_text_does() -> None:
    timeline = turn()
    assert timeline.said == "Well, yes"
    assert timeline.first_sound_ms == 450.0
    assert timeline.gaps_ms == [50.0]
    assert timeline.audio_ms == 200.0
    assert timeline.notes()[1] == "error: a: b"


def test_a_reply_without_sound_has_no_first_sound() -> None:
    timeline = Timeline()
    timeline.heard(Playback(RATE_HZ), [])
    assert timeline.first_sound_ms is None
    assert timeline.rows() == []
