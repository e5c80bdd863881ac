"""What a listener hears: audio plays from its arrival, in order, and a flush silences the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

AUDIBLE_LEVEL = 10 ** (-50 / 20)  # of full scale; below it lie codec noise and breath
FULL_SCALE = 32_768


@dataclass(frozen=True, slots=True)
class Segment:
    """Audio of one item that plays without a gap: int16 [n], from `start_ms` on."""

    item_id: str
    start_ms: float
    pcm: npt.NDArray[np.int16]


class Playback:
    """A loudspeaker with a queue. Times are in ms on the caller's clock."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._end_ms = 0.0
        self.segments: list[Segment] = []

    def arrive(self, at_ms: float, item_id: str, pcm: npt.NDArray[np.int16]) -> None:
        if len(pcm) == 0:
            return
        start_ms = max(at_ms, self._end_ms)
        self.segments.append(Segment(item_id, start_ms, pcm))
        self._end_ms = start_ms + self._length_ms(pcm)

    def flush(self, at_ms: float) -> tuple[str, int] | None:
        """Silence from `at_ms` on. Gives the item that was playing and how much of it was heard."""
        playing = self.playing_at(at_ms)
        kept: list[Segment] = []
        for segment in self.segments:
            heard = round((at_ms - segment.start_ms) * self._rate_hz / 1000)
            if heard > 0:
                kept.append(Segment(segment.item_id, segment.start_ms, segment.pcm[:heard]))
        self.segments = kept
        self._end_ms = min(self._end_ms, at_ms)
        return None if playing is None else (playing, int(self.heard_ms(playing)))

    def playing_at(self, at_ms: float) -> str | None:
        """The item that sounds at this moment or waits to."""
        for segment in self.segments:
            if segment.start_ms + self._length_ms(segment.pcm) > at_ms:
                return segment.item_id
        return None

    def heard_ms(self, item_id: str) -> float:
        """How much of an item plays, once all that has arrived has been played."""
        return sum(self._length_ms(s.pcm) for s in self.segments if s.item_id == item_id)

    @property
    def end_ms(self) -> float:
        """When the last sample that has arrived has been played."""
        return self._end_ms

    def first_audible_ms(self, item_id: str) -> float | None:
        """When the item's first sound, as opposed to silence, reaches the listener."""
        for segment in self.segments:
            if segment.item_id != item_id:
                continue
            loud = np.flatnonzero(np.abs(segment.pcm.astype(np.int32)) > AUDIBLE_LEVEL * FULL_SCALE)
            if loud.size:
                return segment.start_ms + float(loud[0]) * 1000 / self._rate_hz
        return None

    def gaps_ms(self, item_id: str) -> list[float]:
        """Silences inside an item that came from audio arriving too late."""
        mine = [segment for segment in self.segments if segment.item_id == item_id]
        gaps = (
            after.start_ms - (before.start_ms + self._length_ms(before.pcm))
            for before, after in zip(mine, mine[1:], strict=False)
        )
        return [gap for gap in gaps if gap > 1]  # less than a millisecond is rounding

    def render(self, origin_ms: float) -> npt.NDArray[np.int16]:
        """All that is heard from `origin_ms` on, with the silences between."""
        total = max(0, round((self._end_ms - origin_ms) * self._rate_hz / 1000))
        heard = np.zeros(total, np.int16)
        for segment in self.segments:
            start = round((segment.start_ms - origin_ms) * self._rate_hz / 1000)
            room = heard[max(0, start) : max(0, start) + len(segment.pcm)]
            room[:] = segment.pcm[: len(room)]
        return heard

    def _length_ms(self, pcm: npt.NDArray[np.int16]) -> float:
        return len(pcm) * 1000 / self._rate_hz
