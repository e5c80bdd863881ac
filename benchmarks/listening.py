"""What a listener hears of an agent: when it sounds, when it falls silent, when it goes on.

The definitions are those of benchmarks of full-duplex speech: silence is a level, not an event; an
agent has taken over when it has spoken for a second or said more than three words; it has stopped
at the end of its last audible speech, however it was made to stop. Times are ms on one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from realtime.commands.playback import FULL_SCALE, Segment

SILENCE_DBFS = -40.0  # below it lie breath and the hiss of a voice model
WINDOW_MS = 10
ROUNDING_MS = 1.0  # less than this between two stretches of sound is none
TAKE_OVER_MS = 1000
TAKE_OVER_WORDS = 3
HEARD_GAP_MS = 100  # a shorter break of the sound passes for articulation
HEARD_OUT_MS = 300  # a reply that ends so soon after a sound shows nothing of what it did to it
NO_YIELD_MS = 2500  # who goes on for so long under a long sound does not yield to it


@dataclass(frozen=True, slots=True)
class Span:
    """[start_ms, end_ms)."""

    start_ms: float
    end_ms: float

    @property
    def length_ms(self) -> float:
        return self.end_ms - self.start_ms


def audible(segments: Iterable[Segment], rate_hz: int, item_id: str | None = None) -> list[Span]:
    """When played audio is louder than SILENCE_DBFS, of one item or of all."""
    window = rate_hz * WINDOW_MS // 1000
    least = FULL_SCALE * 10 ** (SILENCE_DBFS / 20)
    spans: list[Span] = []
    for segment in segments:
        if item_id is not None and segment.item_id != item_id:
            continue
        for start in range(0, len(segment.pcm), window):
            piece = segment.pcm[start : start + window].astype(np.float64)
            if np.sqrt(np.mean(piece**2)) >= least:
                begin_ms = segment.start_ms + start * 1000 / rate_hz
                spans.append(Span(begin_ms, begin_ms + len(piece) * 1000 / rate_hz))
    return joined(spans, ROUNDING_MS)


def played(segments: Iterable[Segment], rate_hz: int, item_id: str | None = None) -> list[Span]:
    """When there was something to play, loud or not."""
    return joined(
        [
            Span(s.start_ms, s.start_ms + len(s.pcm) * 1000 / rate_hz)
            for s in segments
            if item_id is None or s.item_id == item_id
        ],
        ROUNDING_MS,
    )


def joined(spans: Iterable[Span], gap_ms: float) -> list[Span]:
    """Spans in order, those that are `gap_ms` or less apart as one."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start_ms):
        if result and span.start_ms - result[-1].end_ms <= gap_ms:
            end_ms = max(result[-1].end_ms, span.end_ms)
            result[-1] = Span(result[-1].start_ms, end_ms)
        else:
            result.append(span)
    return result


def is_take_over(sound: Sequence[Span], words: int | None = None) -> bool:
    """Whether that much sound is a turn. words: of a reply that was heard to its end."""
    audible_ms = sum(span.length_ms for span in sound)
    return audible_ms >= TAKE_OVER_MS or (words is not None and words > TAKE_OVER_WORDS)


class Outcome(StrEnum):
    """What a sound over its speech did to a reply."""

    TALKED_ON = "talked on"  # nobody could hear a difference
    RESUMED = "resumed"  # it was silent for a while, then it went on
    YIELDED = "yielded"  # the rest was never heard
    UNMEASURED = "unmeasured"  # it did not sound when the other began, or was over with it


@dataclass(frozen=True, slots=True)
class Reaction:
    """stop_ms: from the onset of the sound to the end of audible speech; None: it never stopped.
    gap_ms: for how long it was silent before it went on."""

    outcome: Outcome
    stop_ms: float | None = None
    gap_ms: float | None = None


def react(
    sound: Span, reply_played: Sequence[Span], reply_audible: Sequence[Span], *, was_cut: bool
) -> Reaction:
    """What became of a reply over which `sound` was made.

    was_cut: whether some of the reply was never played. Its own pauses are no gaps: a gap is where
    the listener's loudspeaker had nothing to play, and it lasts from the last to the next sound.
    """
    before = [span for span in reply_audible if span.start_ms <= sound.start_ms]
    # A reply may pause for breath at the very moment, and is still going on.
    is_playing = any(p.start_ms <= sound.start_ms <= p.end_ms for p in reply_played)
    if not before or not is_playing:
        return Reaction(Outcome.UNMEASURED)
    end_ms = reply_audible[-1].end_ms
    if was_cut:
        return Reaction(Outcome.YIELDED, max(0.0, end_ms - sound.start_ms))
    if end_ms < min(sound.end_ms + HEARD_OUT_MS, sound.start_ms + NO_YIELD_MS):
        return Reaction(Outcome.UNMEASURED)
    gaps = _gaps(sound.start_ms, reply_played, reply_audible)
    if not gaps:
        return Reaction(Outcome.TALKED_ON)
    longest = max(gaps, key=lambda gap: gap.length_ms)
    stop_ms = max(0.0, longest.start_ms - sound.start_ms)
    return Reaction(Outcome.RESUMED, stop_ms, longest.length_ms)


def _gaps(
    onset_ms: float, reply_played: Sequence[Span], reply_audible: Sequence[Span]
) -> list[Span]:
    """Silences after the onset that came from nothing to play."""
    gaps: list[Span] = []
    for one, other in zip(reply_played, reply_played[1:], strict=False):
        if other.start_ms < onset_ms or other.start_ms - one.end_ms < HEARD_GAP_MS:
            continue
        ends = [s.end_ms for s in reply_audible if s.start_ms < one.end_ms]
        starts = [s.start_ms for s in reply_audible if s.start_ms >= other.start_ms]
        if ends and starts:
            gaps.append(Span(ends[-1], starts[0]))
    return gaps
