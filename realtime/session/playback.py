"""What the listener has heard: sent audio against a paced clock, corrected by who knows better.

The clock assumes that a client plays frames one after another from their arrival. A report of the
client or the carrier overrules it; the client's own truncation overrules both.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

ROUNDING_MS = 1  # sums of frames against their total; and clients report whole milliseconds
# How far a report is carried on: longer than any client's interval, shorter than a sentence.
CARRIED_MS = 500
HEARD_SHARE = 0.75  # of a word's sound, from which on a listener has understood it


class Mark(NamedTuple):
    """At `samples` so many `characters` have been spoken: the end of a word, of a pause, or merely
    of a piece of audio, in which words may lie anywhere."""

    samples: int
    characters: int
    ends_word: bool = False


@dataclass(slots=True)
class Track:
    """One item's audio.

    spans: (start on the shell's clock in ms, samples) of stretches that play without a gap.
    marks: ascending in both counts.
    """

    rate_hz: int
    padding_ms: int = 0  # of silence that a client may count as audio
    sent_samples: int = 0
    spans: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    marks: list[Mark] = field(default_factory=list[Mark])
    stopped_at_ms: float | None = None  # when an interruption silenced it, before its end
    known_ms: float | None = None  # played time by report
    known_at_ms: float = 0.0  # when the report came
    cut_ms: int | None = None  # where the client truncated it
    is_complete: bool = False  # nothing more will be sent
    is_broken_off: bool = False  # an interruption kept the rest of it from being sent

    @property
    def sent_ms(self) -> float:
        return self.sent_samples * 1000 / self.rate_hz

    @property
    def is_heard_out(self) -> bool:
        """Whether the client cut nothing away, though it truncated."""
        return (
            self.is_whole and self.cut_ms is not None and self.cut_ms + ROUNDING_MS >= self.sent_ms
        )

    @property
    def is_whole(self) -> bool:
        """Whether everything was sent: then all of the text belongs to it, with or without sound.

        Of a reply that was broken off more text may be told than was spoken.
        """
        return self.is_complete and not self.is_broken_off

    def has_played(self, now_ms: float) -> bool:
        """Whether the whole of it has been heard."""
        return self.is_whole and self.heard_ms(now_ms) + ROUNDING_MS >= self.sent_ms

    def heard_ms(self, now_ms: float) -> float:
        if self.cut_ms is not None:
            return min(self.cut_ms, self.sent_ms)
        until_ms = now_ms if self.stopped_at_ms is None else min(now_ms, self.stopped_at_ms)
        if self.known_ms is not None:
            since_ms = min(max(0.0, until_ms - self.known_at_ms), CARRIED_MS)
            return min(self.known_ms + since_ms, self.sent_ms)
        heard = 0.0
        for start_ms, samples in self.spans:
            heard += min(max(0.0, until_ms - start_ms), samples * 1000 / self.rate_hz)
        return heard

    def heard_characters(self, now_ms: float) -> int:
        """Characters of the item's text that were heard."""
        return self.characters_at(self.heard_ms(now_ms))

    def characters_at(self, played_ms: float) -> int:
        """A word counts when enough of it was played; without word ends, by interpolation."""
        samples = played_ms * self.rate_hz / 1000
        place = bisect_right(self.marks, samples, key=lambda mark: mark.samples)
        before = self.marks[place - 1] if place else Mark(0, 0)
        if place == len(self.marks):
            return before.characters
        after = self.marks[place]
        share = (samples - before.samples) / max(1, after.samples - before.samples)
        if after.ends_word:
            return after.characters if share >= HEARD_SHARE else before.characters
        return before.characters + int((after.characters - before.characters) * share)


class Playback:
    """All tracks of the voice lane, and when the lane falls silent."""

    __slots__ = ("_tracks", "end_ms")

    def __init__(self) -> None:
        self._tracks: dict[str, Track] = {}
        self.end_ms = 0.0  # when everything sent so far has been played

    def open(self, item_id: str, rate_hz: int, padding_ms: int = 0) -> Track:
        track = self._tracks[item_id] = Track(rate_hz, padding_ms)
        return track

    def get(self, item_id: str) -> Track | None:
        return self._tracks.get(item_id)

    def forget(self, item_id: str) -> None:
        self._tracks.pop(item_id, None)

    def send(self, track: Track, samples: int, now_ms: float) -> None:
        """`samples` more of an item leave now; they play behind what was sent before."""
        start_ms = max(self.end_ms, now_ms)
        if track.spans:
            last_start_ms, last_samples = track.spans[-1]
            last_end_ms = last_start_ms + last_samples * 1000 / track.rate_hz
            # Half a millisecond: below any frame, above the rounding of sums.
            if start_ms - last_end_ms < 0.5:
                track.spans[-1] = (last_start_ms, last_samples + samples)
                start_ms = last_end_ms
            else:
                track.spans.append((start_ms, samples))
        else:
            track.spans.append((start_ms, samples))
        track.sent_samples += samples
        self.end_ms = start_ms + samples * 1000 / track.rate_hz

    def take_back(self, item_id: str, samples: int) -> None:
        """The last `samples` sent of an item never left."""
        track = self._tracks.get(item_id)
        if track is None:
            return
        while samples > 0 and track.spans:
            start_ms, length = track.spans.pop()
            kept = max(0, length - samples)
            track.sent_samples -= length - kept
            samples -= length - kept
            if kept:
                track.spans.append((start_ms, kept))

    def cut(self, track: Track, cut_ms: int, now_ms: float) -> None:
        """The client has dropped all of an item from `cut_ms` on: it plays that much less."""
        waits_ms = sum(
            max(0.0, start_ms + samples * 1000 / track.rate_hz - max(start_ms, now_ms))
            for start_ms, samples in track.spans
        )
        if track.cut_ms is None and track.stopped_at_ms is None:
            left_ms = max(0.0, cut_ms - track.heard_ms(now_ms))
            self.end_ms = max(now_ms, self.end_ms - max(0.0, waits_ms - left_ms))
        track.cut_ms = cut_ms

    def stop(self, now_ms: float) -> None:
        """The listener hears nothing more of what was sent so far."""
        for track in self._tracks.values():
            if track.stopped_at_ms is None and not track.has_played(now_ms):
                track.stopped_at_ms = now_ms
                track.is_broken_off = not track.is_complete
        self.end_ms = min(self.end_ms, now_ms)

    def report(self, item_id: str, played_ms: float, now_ms: float) -> None:
        """The client or the carrier knows. Unknown items are ignored: they may be deleted."""
        track = self._tracks.get(item_id)
        if track is not None and played_ms >= (track.known_ms or 0.0):
            track.known_ms = played_ms
            track.known_at_ms = now_ms
