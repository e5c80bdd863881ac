"""The page's resampler: exact in length, in time and over the borders of blocks."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt
import pytest

from tests.web.node_script import run_script

Samples = npt.NDArray[np.float64]

RATES_HZ = [(48000, 24000), (44100, 24000), (24000, 48000), (24000, 44100), (16000, 24000)]
EDGE = 200  # samples at each end, where the filter sees the silence around the sound

_RUN = """
const resampler = new Resampler(fromHz, toHz);
const output = [];
let at = 0;
for (let n = 0; at < input.length; n += 1) {
  const size = sizes[n % sizes.length];
  output.push(...resampler.push(Float32Array.from(input.slice(at, at + size))));
  at += size;
}
output.push(...resampler.finish());
return output;
"""


def resample(samples: Samples, rates_hz: tuple[int, int], sizes: list[int]) -> Samples:
    """samples, given in blocks of these sizes, over and over."""
    output = run_script(
        "client/sound/resampler.js",
        "Resampler",
        _RUN,
        input=samples.tolist(),
        sizes=sizes,
        fromHz=rates_hz[0],
        toHz=rates_hz[1],
    )
    return np.array(output)


def sine(tone_hz: float, rate_hz: int, count: int) -> Samples:
    return 0.5 * np.sin(2 * np.pi * tone_hz * np.arange(count) / rate_hz)


def decibels(power: float) -> float:
    return 10 * np.log10(max(power, 1e-20))


@pytest.mark.parametrize("rates_hz", RATES_HZ)
def test_the_result_does_not_depend_on_the_blocks(rates_hz: tuple[int, int]) -> None:
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 5000)
    whole = resample(noise, rates_hz, [5000])
    for sizes in ([128], [1, 2, 3, 977], [480], [7, 0, 1500]):
        assert np.array_equal(resample(noise, rates_hz, sizes), whole)


@pytest.mark.parametrize("rates_hz", RATES_HZ)
@pytest.mark.parametrize("count", [1, 13, 480, 4999])
def test_no_sample_is_lost_or_made_up(rates_hz: tuple[int, int], count: int) -> None:
    output = resample(np.ones(count), rates_hz, [128])
    assert len(output) == ceil(Fraction(count * rates_hz[1], rates_hz[0]))


@pytest.mark.parametrize("rates_hz", RATES_HZ)
@pytest.mark.parametrize("tone_hz", [440, 3000, 6000])
def test_a_tone_stays_what_and_when_it_is(rates_hz: tuple[int, int], tone_hz: int) -> None:
    from_hz, to_hz = rates_hz
    output = resample(sine(tone_hz, from_hz, from_hz // 4), rates_hz, [128])
    wanted = sine(tone_hz, to_hz, len(output))
    error = (output - wanted)[EDGE:-EDGE]
    assert decibels(float(np.mean(error**2)) / 0.125) < -80


@pytest.mark.parametrize("from_hz", [48000, 44100, 96000])
@pytest.mark.parametrize("tone_hz", [12500, 15000, 20000])
def test_what_the_lower_rate_cannot_hold_is_gone(from_hz: int, tone_hz: int) -> None:
    output = resample(sine(tone_hz, from_hz, from_hz // 4), (from_hz, 24000), [128])
    assert decibels(float(np.mean(output[EDGE:-EDGE] ** 2)) / 0.125) < -80


@pytest.mark.parametrize("rates_hz", RATES_HZ)
def test_no_phase_is_louder_than_another(rates_hz: tuple[int, int]) -> None:
    output = resample(np.ones(2000), rates_hz, [128])
    assert np.abs(output[EDGE:-EDGE] - 1).max() < 1e-6
