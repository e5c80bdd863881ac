"""The ring against a plain list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from realtime.audio.quantise import to_float32, to_int16
from realtime.audio.ring import Ring


@given(st.lists(st.integers(0, 25), max_size=20), st.integers(1, 17), st.integers(-3, 120))
def test_reads_are_what_was_written(sizes: list[int], capacity: int, start: int) -> None:
    ring = Ring(capacity)
    written = np.arange(sum(sizes), dtype=np.int16)
    at = 0
    for size in sizes:
        ring.write(to_float32(written[at : at + size]))
        at += size
    assert ring.position == len(written)
    for end in (start, start + 3, start + capacity + 5):
        oldest = max(0, len(written) - capacity)
        expected = written[max(start, oldest) : max(0, min(end, len(written)))]
        assert np.array_equal(ring.read(start, end), expected)


def test_a_read_is_a_copy() -> None:
    ring = Ring(8)
    ring.write(to_float32(np.arange(8, dtype=np.int16)))
    before = ring.read(0, 8)
    ring.write(to_float32(np.full(8, 99, dtype=np.int16)))
    assert np.array_equal(before, np.arange(8))


def test_loud_samples_clip_and_do_not_wrap() -> None:
    assert to_int16(np.array([1.0, 2.0, -1.0, -2.0], dtype=np.float32)).tolist() == [
        *(32767, 32767, -32768, -32768)
    ]


def test_a_forgotten_ring_holds_nothing_and_still_takes_samples() -> None:
    ring = Ring(100)
    ring.write(np.full(50, 0.5, dtype=np.float32))
    ring.forget()
    ring.write(np.full(50, 0.5, dtype=np.float32))
    assert ring.position == 100
    assert len(ring.read(0, 100)) <= 1
