"""Lanes, epochs, holding and pacing, in any order of events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.types import Samples
from realtime.runtime.egress import FRAME_MS, Egress, Frame
from realtime.session.effects import PlayReply
from realtime.session.settings import AudioFormat

PCM = AudioFormat()
FRAME = 24 * FRAME_MS


def play(request: str, epoch: int = 0, lane: str = "voice") -> PlayReply:
    return PlayReply(request, lane, epoch, f"resp_{request}", f"item_{request}", 0, 0)


def ramp(start: int, count: int) -> Samples:
    return np.arange(start, start + count, dtype=np.float32)


def leave(egress: Egress, now_ms: float) -> list[Frame]:
    """Every frame that may leave now."""
    frames = list[Frame]()
    while (frame := egress.peek(now_ms)) is not None:
        assert egress.commit(frame, now_ms)
        frames.append(frame)
    return frames


@given(st.lists(st.integers(0, 3000), max_size=12))
def test_every_sample_leaves_once_and_in_order(sizes: list[int]) -> None:
    egress = Egress(lead_ms=None)
    egress.open("a", PCM)
    egress.attach(play("a"))
    frames, at = list[Frame](), 0
    for size in sizes:
        egress.add("a", ramp(at, size))
        at += size
        frames += leave(egress, 0)
    egress.finish("a")
    frames += leave(egress, 0)
    sent = np.concatenate([frame.samples for frame in frames]) if frames else ramp(0, 0)
    assert np.array_equal(sent, ramp(0, at))
    assert [frame.total for frame in frames] == list(
        np.cumsum([len(frame.samples) for frame in frames])
    )
    assert egress.take_drained() == (["a"] if at else [])
    assert egress.open_replies == 0


def test_unfinished_audio_leaves_in_whole_frames() -> None:
    egress = Egress(lead_ms=None)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, FRAME - 1))
    assert egress.peek(0) is None and egress.next_due_ms() is None
    egress.add("a", ramp(FRAME - 1, 1))
    assert [len(frame.samples) for frame in leave(egress, 0)] == [FRAME]
    assert egress.take_drained() == []


def test_nothing_leaves_before_it_is_attached() -> None:
    egress = Egress(lead_ms=None)
    egress.open("draft", PCM)
    egress.add("draft", ramp(0, 10 * FRAME))
    assert egress.next_due_ms() is None
    egress.attach(play("draft"))
    assert len(leave(egress, 0)) == 10


@pytest.mark.parametrize("lead_ms", [60.0, 200.0, 1000.0])
def test_sending_stays_a_lead_ahead_of_playing(lead_ms: float) -> None:
    egress = Egress(lead_ms)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, 24 * 4000))
    sent_ms = 0.0
    for now_ms in range(0, 3000, 10):
        sent_ms += FRAME_MS * len(leave(egress, now_ms))
        assert now_ms + lead_ms - FRAME_MS - 10 < sent_ms <= now_ms + lead_ms
        due_ms = egress.next_due_ms()
        assert due_ms is not None and now_ms < due_ms <= now_ms + FRAME_MS


def test_the_playing_waits_while_nothing_comes() -> None:
    egress = Egress(lead_ms=100)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, 2 * FRAME))
    assert len(leave(egress, 0)) == 2  # heard until 80 ms
    egress.add("a", ramp(2 * FRAME, 24 * 1000))
    # After a gap of a second the listener starts afresh: a lead, not a second more.
    assert len(leave(egress, 1080)) == 2


def test_a_short_lead_still_plays_without_gaps() -> None:
    egress = Egress(lead_ms=0)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, 5 * FRAME))
    assert len(leave(egress, 0)) == 1
    assert egress.next_due_ms() == FRAME_MS


def test_replies_of_one_lane_queue_up() -> None:
    egress = Egress(lead_ms=None)
    for request in ("a", "b"):
        egress.open(request, PCM)
        egress.attach(play(request))
        egress.add(request, ramp(0, FRAME))
    assert [frame.play.request for frame in leave(egress, 0)] == ["a"]
    egress.finish("a")
    assert egress.take_drained() == ["a"]
    assert [frame.play.request for frame in leave(egress, 0)] == ["b"]


def test_release_goes_on_at_the_next_sample() -> None:
    egress = Egress(lead_ms=1000)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, 100 * FRAME))
    before = leave(egress, 0)
    egress.hold("voice")
    assert leave(egress, 5000) == [] and egress.next_due_ms() is None
    egress.release("voice")
    after = leave(egress, 5000)
    assert after[0].samples[0] == before[-1].samples[-1] + 1


def test_a_hold_in_mid_word_makes_no_click_and_loses_no_sample() -> None:
    egress = Egress(lead_ms=100)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", np.ones(10 * FRAME, dtype=np.float32))
    frames = leave(egress, 0)
    fade = egress.hold("voice", "a", 120)
    assert fade is not None and fade.total == frames[-1].total + 120
    assert fade.samples[0] == 1 and fade.samples[-1] == 0
    assert leave(egress, 5000) == []
    egress.release("voice")
    after = leave(egress, 5000)
    assert after[0].samples[0] == 0 and after[0].samples[200] == 1
    frames += [fade, *after]
    egress.finish("a")
    for now_ms in range(5000, 6000, FRAME_MS):
        frames += leave(egress, now_ms)
    assert sum(len(frame.samples) for frame in frames) == 10 * FRAME
    assert frames[-1].samples[0] == 1, "only the first frame after the hold rises"


def test_a_frame_that_was_held_meanwhile_stays() -> None:
    egress = Egress()
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, 2 * FRAME))
    frame = egress.peek(0)
    assert frame is not None
    egress.hold("voice")
    assert not egress.commit(frame, 0)
    egress.release("voice")
    again = egress.peek(0)
    assert again is not None and np.array_equal(again.samples, frame.samples)


def test_a_cut_fades_from_the_next_unsent_sample() -> None:
    egress = Egress(lead_ms=80)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", np.full(10 * FRAME, 0.5, dtype=np.float32))
    sent = leave(egress, 0)
    fade = egress.cut("voice", 1, "a", 120)
    assert fade is not None and fade.epoch == 1 and len(fade.samples) == 120
    assert fade.total == sent[-1].total + 120
    assert fade.samples[0] == 0.5 and fade.samples[-1] == 0
    assert egress.open_replies == 0 and leave(egress, 1e9) == []
    egress.add("a", ramp(0, FRAME))  # a late output of the dead reply
    assert leave(egress, 1e9) == []


def test_no_fade_without_unsent_samples() -> None:
    egress = Egress(lead_ms=None)
    egress.open("a", PCM)
    egress.attach(play("a"))
    egress.add("a", ramp(0, FRAME))
    leave(egress, 0)
    assert egress.cut("voice", 1, "a", 120) is None
    assert egress.cut("voice", 2, None, 0) is None


def test_a_listener_who_has_enough_makes_the_voice_wait_until_it_is_half_used() -> None:
    told: list[str] = []
    egress = Egress()
    egress.open("a", PCM, lambda: told.append("a"))
    egress.add("a", ramp(0, 24_000 * 3 - 1))
    assert egress.has_room("a")
    egress.add("a", ramp(0, 1))
    assert not egress.has_room("a")
    egress.attach(play("a"))
    left = 0
    for now_ms in range(0, 2000, FRAME_MS):
        left += sum(len(frame.samples) for frame in leave(egress, now_ms))
        assert egress.has_room("a") == (left >= 24_000)
    assert told == ["a"]
    assert egress.has_room("unknown")


def test_a_dropped_reply_makes_nobody_wait() -> None:
    told: list[str] = []
    egress = Egress()
    egress.open("a", PCM, lambda: told.append("a"))
    egress.add("a", ramp(0, 24_000 * 4))
    egress.drop("a")
    assert egress.has_room("a") and told == ["a"]


def test_lanes_that_have_played_out_are_forgotten() -> None:
    egress = Egress()
    for n in range(100):
        egress.open(f"r{n}", PCM)
        egress.add(f"r{n}", ramp(0, FRAME))
        egress.attach(play(f"r{n}", lane=f"side {n}"))
        egress.finish(f"r{n}")
        assert len(leave(egress, n * 100)) == 1
        egress.take_drained()
    assert egress.open_lanes <= 18


def test_lanes_that_were_cut_are_forgotten_but_for_the_latest() -> None:
    egress = Egress()
    for n in range(1000):
        egress.cut(f"side {n}", 1, None, 0)
        egress.cut("voice", n + 1, None, 0)
    assert egress.open_lanes <= 19
    assert not egress.is_current("voice", 999), "the voice's own is never forgotten"
    assert not egress.is_current("side 999", 0)


REQUESTS = ("a", "b", "c")
Act = tuple[str, str, int]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["open", "add", "finish", "play", "hold", "release", "cut", "drop", "go"]),
        st.sampled_from(REQUESTS),
        st.integers(1, 3000),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(ACTS)
def test_no_order_of_events_lets_an_older_epoch_leave(acts: list[Act]) -> None:
    """Every sample says of which epoch it is; none leaves after its epoch's end."""
    egress, epoch, now_ms = Egress(lead_ms=100), 0, 0.0
    owner: dict[str, int] = {}
    count, held = 0, False
    for act, request, number in acts:
        name = f"{request}{epoch}"
        match act:
            case "open" if name not in owner:
                egress.open(name, PCM)
                owner[name] = epoch
            case "add":
                for old in owner:  # of every epoch: dead streams go on delivering
                    egress.add(old, np.full(number, owner[old], dtype=np.float32))
            case "finish":
                egress.finish(name)
            case "play":
                for old in owner:
                    egress.attach(play(old, owner[old]))
            case "hold":
                egress.hold("voice")
                held = True
            case "release":
                egress.release("voice")
                held = False
            case "cut":
                epoch += 1
                held = False
                fade = egress.cut("voice", epoch, name, number % 200)
                assert fade is None or fade.epoch == epoch
            case "drop":
                egress.drop(name)
                owner.pop(name, None)
            case _:
                now_ms += number
                for frame in leave(egress, now_ms):
                    assert not held
                    assert frame.epoch == epoch and (frame.samples == epoch).all()
                    assert egress.is_current("voice", frame.epoch)
                    count += 1
                egress.take_drained()
