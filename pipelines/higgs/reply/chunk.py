"""One piece of text and its speech, as it stands in a sequence of the decoder."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.model.delay import delay, frames_of
from pipelines.higgs.text.prompt import Item


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Text to be spoken as one piece.

    items: its prompt; the last one draws the first row. closing: what stands between its speech and
    the next text. row_limit: rows after which the speech is ended, whatever the model says.
    """

    items: tuple[Item, ...]
    row_limit: int
    closing: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Frames:
    """Whole frames of a chunk, the next ones in order; `is_last`: the chunk has no more.

    is_short: the chunk was not ended by the model, but for its length or by a cut.
    """

    chunk: int
    codes: tuple[tuple[int, ...], ...]
    is_last: bool
    is_short: bool = False


@dataclass(slots=True)
class ChunkSpeech:
    """A chunk and what was drawn for it.

    stray_code: what a begin or end code within a frame becomes.
    """

    chunk: TextChunk
    audio: AudioConfig
    stray_code: int
    audio_start: int  # the position of its first row
    row_limit: int
    attempt: int = 0
    rows: list[tuple[int, ...]] = field(default_factory=list)
    launched: int = 0
    taken: int = 0  # frames that have left
    row_count: int | None = None  # how many rows it has in all, once that is known
    frame_count: int | None = None  # how many frames it has in all, likewise
    is_short: bool = False  # the model has not ended it

    @property
    def is_whole(self) -> bool:
        return self.row_count is not None and len(self.rows) >= self.row_count

    @property
    def wants_row(self) -> bool:
        return self.launched < (self.row_limit if self.row_count is None else self.row_count)

    @property
    def whole_frames(self) -> int:
        """How many of its frames are there."""
        whole = frames_of(len(self.rows), self.audio.codebooks)
        return whole if self.frame_count is None else min(whole, self.frame_count)

    def frame(self, number: int) -> tuple[int, ...]:
        """As `delay.undelay` has it, for one frame and without arrays: this is done for every
        stream at every step."""
        begin = self.audio.begin_code
        codes = (self.rows[number + book][book] for book in range(self.audio.codebooks))
        return tuple(code if code < begin else self.stray_code for code in codes)

    def history(self) -> list[Item]:
        """The chunk as a model is told of speech before: its rows with exact begin and end."""
        return [*self.chunk.items, *self.history_rows(), *self.chunk.closing]

    def history_rows(self) -> list[tuple[int, ...]]:
        frames = np.array([self.frame(number) for number in range(self.frame_count or 0)], np.int32)
        frames = frames.reshape(-1, self.audio.codebooks)
        rows = delay(frames, self.audio.begin_code, self.audio.end_code)
        return [tuple(row) for row in rows.tolist()]
