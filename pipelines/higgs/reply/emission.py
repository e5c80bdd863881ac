"""When frames go to the codec: at once where the listener would wait, in large pieces otherwise.

The listener is taken to hear the first samples as they leave, and all others in real time behind
them. The lead is how much sound has left and is still to be heard. Pieces double from one frame to
half a second of sound, but a frame is never held longer than the lead allows, so a slow decoder
sends small pieces and a fast one few.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES

MOST_FRAMES = 12  # of a piece: half a second; larger ones save nothing and make others wait
LOW_LEAD_MS = 200  # while no text comes: enough for the codec and the network to end the sound
SAFETY_MS = 5  # what a step of the engine varies by, before its own variation is known
GUESSED_PERIOD_MS = 10  # of a frame, until two were seen
MOST_FIRST_FRAMES = 75  # three seconds: who wants more before the first sound wants no stream

MEAN_GAIN = 1 / 8  # the gains of RFC 6298, which smooths round-trip times
DEVIATION_GAIN = 1 / 4
OUTLIER = 4  # times the mean, and alone: the pause between two chunks, which is no frame's period


@dataclass(frozen=True, slots=True)
class Piece:
    """Frames to decode now. closes: nothing follows on them, so the codec gives all it holds."""

    frames: int
    closes: bool = False


class Emission:
    """One reply. Times are seconds of any clock that does not go back.

    lag_samples: how many samples the codec keeps back until more frames, or the end, come.
    first_frames: how many are there before the first leave, unless they are all for now; at most
        MOST_FIRST_FRAMES.
    """

    def __init__(self, lag_samples: int, first_frames: int = 0) -> None:
        self._lag_samples = lag_samples
        self._first_frames = min(first_frames, MOST_FIRST_FRAMES)
        self._stretch_frames = 0  # given to the codec since it was last closed
        self._last_frames = 0  # of the last piece of this stretch that could be heard
        self._taken_frames = 0
        self._in_flight: deque[tuple[int, float]] = deque()  # samples of a piece, when it was due
        self._plays_until_s: float | None = None  # the end of what has left
        self._seen: tuple[int, float] | None = None  # frames that were there, and when
        self._period = _Smoothed(GUESSED_PERIOD_MS / 1000)
        # Unlike the period, it grows when replies begin together: the second may be longer.
        self._latency = _Smoothed(0.0, first_deviation=1 / 2)

    @property
    def frame_period_s(self) -> float:
        """How long the decoder takes for a frame, smoothed."""
        return self._period.mean

    def lead_s(self, now_s: float) -> float:
        """How much sound has left and was not heard yet; 0 before the first."""
        return 0.0 if self._plays_until_s is None else max(0.0, self._plays_until_s - now_s)

    def due(
        self, available_frames: int, now_s: float, *, ends: bool, waiting_for_text: bool
    ) -> Piece | None:
        """What the codec is to be given now; None: wait.

        To be asked after every step of the decoder, and while text is awaited after `again_s`.
        available_frames: those known and not taken by an earlier piece.
        ends: no frame will follow. waiting_for_text: none will follow before more text comes.
        """
        self._watch(available_frames, now_s, waiting_for_text)
        if ends:
            return self._close(available_frames, now_s)
        if waiting_for_text:
            return self._hold(available_frames, now_s)
        least = self._least_frames
        if available_frames < least:
            return None
        ahead_s = self._ahead_s(now_s)
        if ahead_s <= 0:
            # What is heard first must last until what comes next, if that comes soon.
            gained_s = self._gained(available_frames) / CODEC_RATE_HZ
            soon_s = self._period.bound + SAFETY_MS / 1000
            if available_frames == least and gained_s < soon_s and self._waited_s(now_s) < soon_s:
                return None
            return self._take(available_frames, now_s)
        if available_frames >= min(2 * max(1, self._last_frames), MOST_FRAMES):
            return self._take(available_frames, now_s)
        if ahead_s < self._period.bound + self._latency.bound + SAFETY_MS / 1000:
            return self._take(available_frames, now_s)
        return None

    def again_s(self, available_frames: int, now_s: float) -> float | None:
        """While text is awaited: in how many seconds `due` may answer anew; None: not by itself."""
        if available_frames == 0 and self._stretch_frames == 0:
            return None
        return max(0.0, self._ahead_s(now_s) - self._low_lead_s)

    def emitted(self, samples: int, now_s: float) -> None:
        """The samples of the oldest piece have left; to be told of every piece, in order."""
        if self._in_flight:
            _, due_s = self._in_flight.popleft()
            self._latency.add(now_s - due_s)
        if samples:
            begins_s = now_s if self._plays_until_s is None else max(self._plays_until_s, now_s)
            self._plays_until_s = begins_s + samples / CODEC_RATE_HZ

    # ---- the inside --------------------------------------------------------------------------

    def _hold(self, available_frames: int, now_s: float) -> Piece | None:
        """What is left of a chunk waits for the next one, as long as the listener does not."""
        if self._ahead_s(now_s) > self._low_lead_s:
            return None
        if self._gained(available_frames) > 0:
            return self._take(available_frames, now_s)
        return self._close(available_frames, now_s)

    def _take(self, available_frames: int, now_s: float) -> Piece:
        frames = min(available_frames, max(MOST_FRAMES, self._least_frames))
        begins = self._stretch_frames * FRAME_SAMPLES < self._lag_samples
        self._in_flight.append((self._gained(frames), now_s))
        self._stretch_frames += frames
        self._taken_frames += frames
        # Only the end of a stretch's first piece is heard.
        self._last_frames = 1 if begins else frames
        return Piece(frames)

    def _close(self, frames: int, now_s: float) -> Piece | None:
        if frames == 0 and self._stretch_frames == 0:
            return None
        samples = (self._stretch_frames + frames) * FRAME_SAMPLES - self._out(self._stretch_frames)
        self._in_flight.append((samples, now_s))
        self._taken_frames += frames
        self._stretch_frames = self._last_frames = 0
        return Piece(frames, closes=True)

    @property
    def _least_frames(self) -> int:
        """How many frames it takes until the codec gives a sample that may leave."""
        least = max(1, self._lag_samples // FRAME_SAMPLES + 1 - self._stretch_frames)
        return least if self._taken_frames else max(least, self._first_frames)

    @property
    def _low_lead_s(self) -> float:
        return LOW_LEAD_MS / 1000 + self._latency.bound

    def _out(self, frames: int) -> int:
        """How many samples are out after so many frames of a stretch."""
        return max(0, frames * FRAME_SAMPLES - self._lag_samples)

    def _gained(self, frames: int) -> int:
        return self._out(self._stretch_frames + frames) - self._out(self._stretch_frames)

    def _ahead_s(self, now_s: float) -> float:
        """The lead, with what is still in the codec's hands."""
        coming = sum(samples for samples, _ in self._in_flight)
        return self.lead_s(now_s) + coming / CODEC_RATE_HZ

    def _waited_s(self, now_s: float) -> float:
        """Since the newest frame came."""
        return 0.0 if self._seen is None else now_s - self._seen[1]

    def _watch(self, available_frames: int, now_s: float, waiting_for_text: bool) -> None:
        """Measure the period of frames, but for the time in which there was nothing to decode."""
        frames = self._taken_frames + available_frames
        if waiting_for_text:
            self._seen = None
        elif self._seen is None:
            self._seen = (frames, now_s) if frames else None
        elif frames > self._seen[0]:
            self._period.add((now_s - self._seen[1]) / (frames - self._seen[0]))
            self._seen = (frames, now_s)


class _Smoothed:
    """A mean and a mean deviation that forget.

    first_deviation: what the first value is taken to be off by, as a share of it.
    """

    def __init__(self, guess: float, first_deviation: float = 0.0) -> None:
        self.mean = guess
        self._first_deviation = first_deviation
        self._deviation = 0.0
        self._is_guess = True
        self._was_outlier = False

    @property
    def bound(self) -> float:
        """What the next value rarely exceeds."""
        return self.mean + 2 * self._deviation

    def add(self, value: float) -> None:
        if self._is_guess:
            self._is_guess = False
            self.mean, self._deviation = value, value * self._first_deviation
            return
        self._was_outlier = value > OUTLIER * self.mean > 0 and not self._was_outlier
        if self._was_outlier:
            return
        error = value - self.mean
        self.mean += MEAN_GAIN * error
        self._deviation += DEVIATION_GAIN * (abs(error) - self._deviation)
