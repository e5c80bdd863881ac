from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.audio.fade import fade_out
from realtime.audio.level import TELEPHONE_CEILING, level_dbfs, soften


def test_the_level_of_known_signals() -> None:
    square = np.full(512, 0.5, dtype=np.float32)
    assert level_dbfs(square) == pytest.approx(-6.02, abs=0.01)
    assert level_dbfs(np.zeros(512, dtype=np.float32)) == -100.0
    assert level_dbfs(np.zeros(0, dtype=np.float32)) == -100.0


@given(st.lists(st.floats(-8, 8, width=32), max_size=50), st.sampled_from([0.98, 0.707]))
def test_peaks_bend_below_the_ceiling(values: list[float], ceiling: float) -> None:
    samples = np.array(values, dtype=np.float32)
    soft = soften(samples, ceiling)
    assert soft.dtype == np.float32
    assert (np.abs(soft) <= ceiling + 1e-6).all()
    assert (np.sign(soft) == np.sign(samples)).all()
    quiet = np.abs(samples) <= ceiling * 0.8
    assert np.array_equal(soft[quiet], samples[quiet])


def test_softening_does_not_depend_on_the_cut() -> None:
    samples = np.linspace(-2, 2, 100, dtype=np.float32)
    whole = soften(samples, TELEPHONE_CEILING)
    halves = [soften(samples[:37], TELEPHONE_CEILING), soften(samples[37:], TELEPHONE_CEILING)]
    assert np.array_equal(whole, np.concatenate(halves))


def test_a_fade_ends_in_silence() -> None:
    faded = fade_out(np.ones(120, dtype=np.float32))
    assert faded[0] == 1.0 and faded[-1] == 0.0
    assert (np.diff(faded) < 0).all()
    assert len(fade_out(np.zeros(0, dtype=np.float32))) == 0
