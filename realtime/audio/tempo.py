"""Speech made faster or slower at its own pitch, while it is still being spoken."""

from __future__ import annotations

import math

import av.error
import numpy as np
from av.audio.frame import AudioFrame
from av.filter import Graph

from realtime.audio.quantise import FloatSamples

SLOWEST_SPEED = 0.25
FASTEST_SPEED = 4.0

# One filter overlaps and adds between these; beyond, it skips sound, or cannot.
_SLOWEST_STEP = 0.5
_FASTEST_STEP = 2.0
# The filters choose by similarity, and where a sound repeats itself the cut of their frames breaks
# ties: frames of one length make the output depend on the sound alone.
_FRAMES_PER_S = 100
_TAIL_S = 0.4  # silence that pushes the last sound out of two filters' windows, 85 ms at most each


class Tempo:
    """One stream of mono speech at `speed` times its tempo: any number of `process`, one `finish`.

    n samples in become round(n / speed) samples out, the same ones however they were cut; at speed
    1.0 they come out as they went in. The first ones come after 0.1 s of input (0.3 s at the
    fastest). By FFmpeg's `atempo`: waveform similarity overlap-add (Verhelst and Roelands, 1993).

    The work is blocking, about a hundredth of the audio's duration: on an event loop make it
    and call each method through `asyncio.to_thread`, one after the other, in order.

    Raises ValueError: a speed outside 0.25 to 4, a rate that is not positive.
    """

    def __init__(self, rate_hz: int, speed: float) -> None:
        if not SLOWEST_SPEED <= speed <= FASTEST_SPEED:
            raise ValueError(f"speed is {speed}; it must be {SLOWEST_SPEED} to {FASTEST_SPEED}")
        if rate_hz <= 0:
            raise ValueError(f"a voice cannot have a rate of {rate_hz} Hz")
        self._rate_hz = rate_hz
        self._speed = speed
        self._held: FloatSamples = np.zeros(0, dtype=np.float32)
        self._seen_samples = 0
        self._fed_samples = 0
        self._given_samples = 0
        self._graph = None if speed == 1.0 else _build(rate_hz, speed)

    def process(self, samples: FloatSamples) -> FloatSamples:
        """float32 [n] to the float32 [m] that are ready, at the same rate."""
        if self._graph is None or len(samples) == 0:
            return samples
        self._seen_samples += len(samples)
        return self._give(self._stretch(self._graph, samples))

    def finish(self) -> FloatSamples:
        """The last samples; nothing may be processed after it."""
        if self._graph is None or self._seen_samples == 0:
            return np.zeros(0, dtype=np.float32)
        tail = np.zeros(round(_TAIL_S * self._rate_hz), dtype=np.float32)
        stretched = self._stretch(self._graph, tail)
        self._graph.push(None)
        given = self._give(np.concatenate([stretched, _pull(self._graph)]))
        missing = max(0, self._due_samples() - self._given_samples)
        return np.concatenate([given, np.zeros(missing, dtype=np.float32)])

    def to_output_s(self, input_s: float) -> float:
        """When the sound that lay at input_s is heard, within about 30 ms; seconds."""
        return input_s / self._speed

    def _due_samples(self) -> int:
        return round(self._seen_samples / self._speed)

    def _give(self, ready: FloatSamples) -> FloatSamples:
        """As much as the input is long; the rest is the sound of the tail."""
        given = ready[: max(0, self._due_samples() - self._given_samples)]
        self._given_samples += len(given)
        return given

    def _stretch(self, graph: Graph, samples: FloatSamples) -> FloatSamples:
        """Whole frames through the filters; what is left waits for the next samples."""
        held = np.concatenate([self._held, samples])
        size = max(1, self._rate_hz // _FRAMES_PER_S)
        whole = len(held) - len(held) % size
        self._held = held[whole:].copy()
        out = [np.zeros(0, dtype=np.float32)]
        for start in range(0, whole, size):
            frame = AudioFrame.from_ndarray(
                held[None, start : start + size], format="flt", layout="mono"
            )
            frame.sample_rate = self._rate_hz
            frame.pts = self._fed_samples
            self._fed_samples += size
            graph.push(frame)
            out.append(_pull(graph))
        return np.concatenate(out)


def _pull(graph: Graph) -> FloatSamples:
    """What the filters have ready."""
    out = [np.zeros(0, dtype=np.float32)]
    while True:
        try:
            frame = graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return np.concatenate(out)
        assert isinstance(frame, AudioFrame)
        out.append(frame.to_ndarray().reshape(-1).astype(np.float32, copy=False))


def _build(rate_hz: int, speed: float) -> Graph:
    graph = Graph()
    source = graph.add_abuffer(sample_rate=rate_hz, format="flt", layout="mono")
    stretches = [graph.add("atempo", f"{step:.9f}") for step in _steps(speed)]
    graph.link_nodes(source, *stretches, graph.add("abuffersink")).configure()
    return graph


def _steps(speed: float) -> list[float]:
    """The speeds of the filters, whose product is the whole."""
    if _SLOWEST_STEP <= speed <= _FASTEST_STEP:
        return [speed]
    return [math.sqrt(speed)] * 2
