"""A simulated reply: a decoder that makes frames, a codec that keeps some back, a listener."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES
from pipelines.higgs.reply.emission import Emission, Piece

DELAY_ROWS = 7  # rows of a chunk before its first frame is known
PREFILL_S = 0.012  # of a chunk's text
STEP_S = 0.002  # of an engine without work for this stream


@dataclass
class Line:
    """What one reply's listener got: when samples came, and how long there was nothing to hear."""

    pieces: list[Piece] = field(default_factory=list)
    first_s: float | None = None
    stalled_s: float = 0.0
    stalls: list[float] = field(default_factory=list)
    samples: int = 0
    until_s: float = 0.0

    def hear(self, samples: int, now_s: float) -> None:
        if not samples:
            return
        if self.first_s is None:
            self.first_s = now_s
        elif now_s > self.until_s + 1e-9:
            self.stalled_s += now_s - self.until_s
            self.stalls.append(self.until_s)
        self.until_s = max(self.until_s, now_s) + samples / CODEC_RATE_HZ
        self.samples += samples


@dataclass
class Codec:
    """Gives samples `latency_s` after a piece, `lag` samples late."""

    lag: int
    frames: int = 0

    def decode(self, piece: Piece) -> int:
        before = max(0, self.frames * FRAME_SAMPLES - self.lag)
        self.frames += piece.frames
        if piece.closes:
            after = self.frames * FRAME_SAMPLES
            self.frames = 0
        else:
            after = max(0, self.frames * FRAME_SAMPLES - self.lag)
        return after - before


def frame_times(
    texts: list[tuple[float, int]], period: Callable[[int], float]
) -> tuple[list[float], list[tuple[float, float]]]:
    """When each frame is known, and the times between which there is no text to speak.

    texts: when each chunk's text comes, and how many frames it has. period: of row number n.
    """
    now_s, row = 0.0, 0
    known: list[float] = []
    waits: list[tuple[float, float]] = []
    for at_s, frames in texts:
        if at_s > now_s:
            waits.append((now_s, at_s))
            now_s = at_s
        now_s += PREFILL_S
        for number in range(frames + DELAY_ROWS):
            now_s += period(row)
            row += 1
            if number >= DELAY_ROWS:
                known.append(now_s)
    return known, waits


def play(
    known: list[float], waits: list[tuple[float, float]], lag: int, latency_s: float
) -> tuple[Line, Emission]:
    """Ask an Emission after every frame, and every STEP_S where none comes."""
    emission, codec, line = Emission(lag), Codec(lag), Line()
    arriving: list[tuple[float, int]] = []
    taken = 0
    steps = max(1, math.ceil(known[-1] / STEP_S))
    times = sorted({*known, *(n * STEP_S for n in range(steps))})
    for now_s in times:
        while arriving and arriving[0][0] <= now_s:
            at_s, samples = arriving.pop(0)
            emission.emitted(samples, at_s)
            line.hear(samples, at_s)
        available = sum(1 for at_s in known[taken : taken + 200] if at_s <= now_s)
        ends = now_s >= known[-1]
        waiting = any(begin <= now_s < end for begin, end in waits)
        piece = emission.due(available, now_s, ends=ends, waiting_for_text=waiting)
        if piece is not None:
            assert piece.frames <= available
            line.pieces.append(piece)
            taken += piece.frames
            arriving.append((now_s + latency_s, codec.decode(piece)))
    for at_s, samples in arriving:
        emission.emitted(samples, at_s)
        line.hear(samples, at_s)
    return line, emission


def play_at_once(known: list[float], lag: int, latency_s: float) -> Line:
    """The best that can be had without closing: every frame goes to the codec as it comes."""
    codec, line = Codec(lag), Line()
    for at_s in known:
        closes = at_s == known[-1]
        line.hear(codec.decode(Piece(1, closes)), at_s + latency_s)
    return line
