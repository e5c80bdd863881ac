"""Where one stream follows another there is no step, however the second one is cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from realtime.audio.seam import Seam


@given(
    st.floats(-1, 1, width=32),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=200),
    st.lists(st.integers(0, 30), min_size=1, max_size=9),
)
def test_the_difference_falls_off_in_a_line(
    before: float, values: list[float], sizes: list[int]
) -> None:
    samples = np.array(values, np.float32)
    given_samples = samples.copy()
    seam, out, at = Seam(before, 80), list[np.ndarray](), 0
    for size in [*sizes, len(samples)]:
        out.append(seam.join(samples[at : at + size]))
        at += size
    joined = np.concatenate(out)
    slope = np.clip(1 - np.arange(len(samples)) / 80, 0, None)
    assert np.allclose(joined, samples + (before - samples[0]) * slope, atol=1e-6)
    assert np.array_equal(samples, given_samples)
    assert seam.is_over == (len(samples) >= 80)
    assert abs(joined[0] - before) < 1e-6


def test_what_comes_after_the_seam_is_passed_on_untouched() -> None:
    seam = Seam(0.5, 10)
    seam.join(np.zeros(10, np.float32))
    later = np.ones(5, np.float32)
    assert seam.join(later) is later
