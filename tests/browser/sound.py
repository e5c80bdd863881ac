"""Measures of recorded sound. Samples are float32 in -1..1 at RATE_HZ, [n] per channel."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import soundfile

RATE_HZ = 24_000  # of the page's recordings and of the wire
FRAME_MS = 10  # the grain in which sound and silence are told apart
AUDIBLE = 0.01  # RMS of a frame, -40 dB: above a noise floor, below any voice
SAMPLES_PER_MS = RATE_HZ // 1000

Samples: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recording:
    """What the microphone sent and what was heard, on one time line."""

    microphone: Samples
    heard: Samples

    @property
    def length_ms(self) -> float:
        return len(self.heard) / SAMPLES_PER_MS


def read_recording(wav: bytes) -> Recording:
    """The page's two-channel WAV; AssertionError if it is anything else."""
    with soundfile.SoundFile(io.BytesIO(wav)) as file:
        assert (file.format, file.subtype) == ("WAV", "PCM_16")
        assert (file.channels, file.samplerate) == (2, RATE_HZ)
        samples = file.read(dtype="float32")
    left, right = samples.astype(np.float32).T
    return Recording(left, right)


def as_wav(samples: Samples) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE_HZ, format="WAV", subtype="PCM_16")
    return file.getvalue()


def loudness(samples: Samples) -> Samples:
    """RMS per whole frame of FRAME_MS."""
    size = FRAME_MS * SAMPLES_PER_MS
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    return np.sqrt(np.mean(frames**2, axis=1, dtype=np.float64)).astype(np.float32)


def audible_ms(samples: Samples) -> float:
    """For how long anything was to be heard."""
    return float(np.count_nonzero(loudness(samples) > AUDIBLE)) * FRAME_MS


def first_sound_ms(samples: Samples, after_ms: float = 0) -> float:
    """The onset of the first audible frame; AssertionError if there is none."""
    first = int(after_ms // FRAME_MS)
    frames = np.flatnonzero(loudness(samples)[first:] > AUDIBLE)
    assert frames.size, f"no sound after {after_ms:.0f} ms"
    return float(first + frames[0]) * FRAME_MS


def last_sound_ms(samples: Samples, before_ms: float) -> float:
    """The end of the last audible frame that begins before `before_ms`."""
    frames = np.flatnonzero(loudness(samples)[: int(before_ms // FRAME_MS)] > AUDIBLE)
    assert frames.size, f"no sound before {before_ms:.0f} ms"
    return float(frames[-1] + 1) * FRAME_MS


def pause_after(samples: Samples, from_ms: float, pause_ms: float) -> float:
    """Where sound ends for at least `pause_ms`, at or after `from_ms`."""
    is_audible = loudness(samples) > AUDIBLE
    needed = int(pause_ms // FRAME_MS)
    first = int(from_ms // FRAME_MS)
    for frame in range(first, len(is_audible)):
        if not is_audible[frame : frame + needed].any():
            return max(from_ms, frame * FRAME_MS)
    return len(is_audible) * FRAME_MS


# ---- gaps ----------------------------------------------------------------------------------------

WINDOW_MS = 60  # long enough to be found again for certain, short beside a word
REACH_MS = 600  # how far a window is looked for beyond the place of the one before
MIN_LIKENESS = 0.9  # correlation at which a window has been found
CERTAIN_LIKENESS = 0.97  # the same, where it may be anywhere
FIRST_WINDOWS = 12  # among which one has to be found for certain: one with a gap in it is not


def inserted_gaps_ms(sent: Samples, heard: Samples) -> list[float]:
    """How much silence, in ms, was inserted between each piece of `sent` and the next in `heard`.

    Pauses of the speech itself are in both, so they are none: every window of `sent` that can be
    told from silence is found again in `heard` by normalised cross-correlation, and what it is
    later than its predecessor is a gap (negative: something is missing).

    Raises:
        AssertionError: less than nine of ten windows were found: it is not the same sound.
    """
    size = WINDOW_MS * SAMPLES_PER_MS
    reach = REACH_MS * SAMPLES_PER_MS
    shift = _first_shift(sent, heard)
    places: list[int] = []
    tried = 0
    for start in range(0, len(sent) - size, size):
        window = sent[start : start + size]
        if np.sqrt(np.mean(window**2)) < AUDIBLE * 2:
            continue
        tried += 1
        low = max(0, start + shift - (size if places else reach))
        place, likeness = _find(window, heard[low : start + shift + size + reach])
        if likeness >= MIN_LIKENESS:
            shift = low + place - start
            places.append(shift)
    assert tried and len(places) >= 0.9 * tried, f"found {len(places)} of {tried} windows again"
    return [float(gap) / SAMPLES_PER_MS for gap in np.diff(places)]


def _first_shift(sent: Samples, heard: Samples) -> int:
    """By how much `heard` is later than `sent`, by the first piece that is found for certain."""
    size = WINDOW_MS * SAMPLES_PER_MS
    lead = int(first_sound_ms(sent)) * SAMPLES_PER_MS
    best = 0.0
    for start in range(lead, min(lead + FIRST_WINDOWS * size, len(sent) - size), size):
        place, likeness = _find(sent[start : start + size], heard)
        if likeness >= CERTAIN_LIKENESS:
            return place - start
        best = max(best, likeness)
    raise AssertionError(f"the beginning was not heard as sent ({best:.2f})")


def _find(window: Samples, within: Samples) -> tuple[int, float]:
    """Where `window` lies in `within`, and the normalised correlation there."""
    if len(within) < len(window):
        return 0, 0.0
    count = len(within) + len(window) - 1
    spectrum = np.fft.rfft(within, count) * np.fft.rfft(window[::-1], count)
    products = np.fft.irfft(spectrum, count)[len(window) - 1 : len(within)]
    energy = np.concatenate([[0.0], np.cumsum(within.astype(np.float64) ** 2)])
    energies = energy[len(window) :] - energy[: -len(window)]
    norm = np.sqrt(np.maximum(energies, 1e-6) * np.sum(window.astype(np.float64) ** 2))
    likeness = products / norm
    place = int(np.argmax(likeness))
    return place, float(likeness[place])


# ---- edges ---------------------------------------------------------------------------------------

EDGE_MS = 5  # on each side of a border between sound and silence
SILENT = 1.5 / 32_768  # a sample of nothing, rounded
MIN_SILENCE_MS = 5  # shorter runs of zeros are the speech's own


def steps(samples: Samples) -> Samples:
    """Each sample's distance from the one before."""
    return np.abs(np.diff(samples, prepend=np.float32(0)))


def edges(samples: Samples) -> list[int]:
    """The samples at which sound begins after silence, or ends in it."""
    is_sound = np.abs(samples) > SILENT
    places = np.flatnonzero(is_sound)
    if not places.size:
        return []
    breaks = np.flatnonzero(np.diff(places) > MIN_SILENCE_MS * SAMPLES_PER_MS)
    begins = [places[0], *places[breaks + 1]]
    ends = [*places[breaks], places[-1]]
    return sorted(int(place) for place in [*begins, *ends])


def largest_step_at_edges(samples: Samples) -> float:
    reach = EDGE_MS * SAMPLES_PER_MS
    taken = steps(samples)
    return max(float(taken[max(0, e - reach) : e + reach].max()) for e in edges(samples))


def largest_step_inside(samples: Samples) -> float:
    reach = EDGE_MS * SAMPLES_PER_MS
    taken = steps(samples).copy()
    for edge in edges(samples):
        taken[max(0, edge - reach) : edge + reach] = 0
    return float(taken.max())
