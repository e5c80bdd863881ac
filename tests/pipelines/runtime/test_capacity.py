"""What a stage could deliver, learnt from steps whose true cost is known."""

from __future__ import annotations

import math
import random

import pytest

from pipelines.ports import Capacity
from pipelines.runtime.capacity import CapacityMeter, Listening, Rate


class Device:
    """A step of n streams lasts `base_s + slope_s * n` and makes `made_s` for each of them."""

    def __init__(self, slots: int, base_s: float, slope_s: float, made_s: float = 0.04) -> None:
        self.now_s = 100.0
        self.meter = CapacityMeter(slots, self.now_s)
        self._base_s, self._slope_s, self._made_s = base_s, slope_s, made_s

    def step(self, streams: int, noise: float = 1.0) -> None:
        lasted_s = (self._base_s + self._slope_s * streams) * noise
        self.now_s += lasted_s
        made_s = streams * self._made_s
        self.meter.record(streams, made_s, made_s, lasted_s, self.now_s)

    def capacity(self) -> Capacity:
        capacity = self.meter.capacity(self.now_s)
        assert capacity is not None
        return capacity


def test_nothing_is_said_before_enough_was_seen() -> None:
    device = Device(8, 0.02, 0.001)
    assert device.meter.capacity(device.now_s) is None
    for _ in range(50):
        device.step(1)
    assert device.meter.capacity(device.now_s) is None
    for _ in range(100):
        device.step(1)
    assert device.meter.capacity(device.now_s) is not None


def test_the_slope_of_the_steps_tells_how_many_streams_are_in_real_time() -> None:
    """40 ms of audio a step: 0.04 = 0.01 + 0.002 n at n = 15."""
    device = Device(64, 0.01, 0.002)
    rng = random.Random(5)
    for number in range(4000):
        crowd = 1 + number // 100 % 6
        device.step(max(1, crowd + rng.choice((-1, 0, 1))), rng.uniform(0.9, 1.1))
    capacity = device.capacity()
    assert capacity.streams == pytest.approx(15, rel=0.1)
    assert capacity.could_deliver == pytest.approx(64 * 0.04 / (0.01 + 0.128), rel=0.1)


def test_a_flat_device_is_bounded_by_its_slots() -> None:
    device = Device(32, 0.015, 0.0)
    for number in range(1000):
        device.step(1 + number // 100 % 8)
    assert device.capacity().streams == 32


def test_one_size_of_batch_in_real_time_leaves_the_slots_as_the_limit() -> None:
    device = Device(8, 0.02, 0.002)
    for _ in range(500):
        device.step(4)
    assert device.capacity().streams == 8


def test_one_size_of_batch_too_slow_is_bounded_by_what_it_makes() -> None:
    device = Device(8, 0.0, 0.02)  # 4 streams take 80 ms for 40 ms each
    for _ in range(500):
        device.step(4)
    capacity = device.capacity()
    assert capacity.streams == pytest.approx(2.0, rel=1e-6)
    assert capacity.delivers == pytest.approx(2.0, rel=0.05)
    assert capacity.headroom == pytest.approx(0.0, abs=0.1)


def test_a_device_that_is_too_slow_for_one_serves_a_part_of_one() -> None:
    device = Device(4, 0.08, 0.0)
    for number in range(500):
        device.step(1 + number // 50 % 2)
    assert device.capacity().streams == pytest.approx(0.5)


def test_headroom_is_what_is_not_delivered() -> None:
    """Three listeners in real time, each step followed by rest until its sound is needed."""
    device = Device(10, 0.01, 0.001)
    for _ in range(4000):
        device.step(3)
        device.now_s += 0.04 - 0.013
    capacity = device.capacity()
    assert capacity.delivers == pytest.approx(3.0, rel=0.02)
    assert capacity.headroom == pytest.approx(7.0, rel=0.02)
    device.now_s += 300
    capacity = device.capacity()
    assert capacity.delivers < 0.01 and capacity.headroom == pytest.approx(10, abs=0.01)


def test_a_device_that_became_slower_is_noticed() -> None:
    device = Device(64, 0.01, 0.001)
    for number in range(2000):
        device.step(1 + number // 100 % 16)
    before = device.capacity().streams
    device._slope_s = 0.003
    for number in range(4000):
        device.step(1 + number // 100 % 16)
    assert before == pytest.approx(30, rel=0.1)
    assert device.capacity().streams == pytest.approx(10, rel=0.15)


def test_prompts_among_the_steps_cost_capacity() -> None:
    """A step of 20 ms without sound for every 16 steps of a stream: 1.25 ms more for each.

    Real time then ends at 0.03 / 0.00225 = 13 streams, not 30; the fit sees most of it.
    """
    device = Device(64, 0.01, 0.001)
    owed = 0
    for number in range(6000):
        streams = 1 + number // 100 % 12
        device.step(streams)
        owed += streams
        if owed >= 16:
            owed -= 16
            device.now_s += 0.02
            device.meter.record(1, 0.0, 0.0, 0.02, device.now_s)
    assert 12 < device.capacity().streams < 20


def test_one_step_that_stood_still_takes_little() -> None:
    """A minute in one step, as when the machine sleeps: a fifth of the capacity at most."""
    device = Device(64, 0.01, 0.002)
    for number in range(2000):
        device.step(1 + number // 100 % 12)
    before = device.capacity().streams
    device.now_s += 60
    device.meter.record(3, 0.12, 0.12, 60.0, device.now_s)
    for number in range(100):
        device.step(1 + number // 10 % 12)
    assert device.capacity().streams > 0.8 * before


def test_a_device_whose_every_step_is_slow_is_believed() -> None:
    device = Device(4, 3.0, 0.5, made_s=1.0)
    for number in range(40):
        device.step(1 + number % 4)
    assert device.capacity().streams == pytest.approx(1 / 3.5, rel=0.1)


def test_a_rate_is_right_at_once_and_forgets() -> None:
    rate = Rate(0.0)
    for tick in range(100):
        rate.add(0.5, tick * 0.1)
    assert rate.per_second(10.0) == pytest.approx(5.0, rel=0.05)
    for tick in range(100, 1200):
        rate.add(0.5, tick * 0.1)
    assert rate.per_second(120.0) == pytest.approx(5.0, rel=0.05)
    assert rate.per_second(150.0) == pytest.approx(5.0 * math.exp(-1), rel=0.05)


def test_a_listener_hears_one_second_a_second_however_fast_the_voice_is() -> None:
    listening = Listening()
    assert listening.news_s(5.0) == 0.0, "nothing was made"
    listening.make(3.0, 10.0)
    assert listening.news_s(10.5) == pytest.approx(0.5)
    listening.make(5.0, 10.6)
    assert listening.news_s(11.0) == pytest.approx(0.5)
    assert listening.news_s(11.0) == 0.0
    assert listening.news_s(11.5, is_over=True) == pytest.approx(7.0), "the rest will be heard"


def test_a_listener_who_waits_hears_no_more_than_was_made() -> None:
    listening = Listening()
    listening.make(1.0, 10.0)
    assert listening.news_s(20.0) == pytest.approx(1.0)
    listening.make(1.0, 20.0)
    assert listening.news_s(20.1) == pytest.approx(1.0)
