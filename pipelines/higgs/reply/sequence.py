"""One reply as one sequence of the decoder: preamble, then text and its speech in turns.

    <|tts|> [reference]  <|text|> t1 <|audio|> rows of t1   <|text|> t2 <|audio|> rows of t2  ...

Each piece of text is appended behind the speech of the last one, so that voice and melody go on and
the cache is extended, not made anew. What stands in the cache as history must be what the model
was trained on: speech whose begin and end are filled exactly. Rows that were drawn differ from
that where speech ends (the model draws what it likes behind the end) and where it was cut, so the
rows from the first difference on are fed again, before the new text.

Nothing here computes: rows to feed go out (`take`), the codes that they drew come in (`accept`), up
to two steps later.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from enum import Enum

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.member import Member
from pipelines.higgs.model.delay import frames_of
from pipelines.higgs.reply.chunk import ChunkSpeech, Frames, TextChunk
from pipelines.higgs.rows import NO_TOKEN, Row, Sampling
from pipelines.higgs.text.prompt import Item

HISTORY_CHUNKS = 4  # what a rebuilt sequence remembers at most: about half a minute of speech
MIN_ROWS = 64  # room for speech below which a chunk is not begun: 2.5 s

SEED_STEP = 0x2545F491  # odd, so that the seeds of chunks and attempts differ from each other


class SequenceState(Enum):
    FEEDING = "feeding"  # rows of a prompt are still to be fed
    DRAWING = "drawing"  # the next row can be drawn
    WAITING = "waiting"  # until the codes of rows that were launched are known
    STARVED = "starved"  # all text is spoken; more may come
    ENDED = "ended"  # all text is spoken, and no more comes


class SequenceTooLong(ValueError):
    """The text or the reference does not fit into the positions of a slot."""


def check_preamble(rows: int, positions: int) -> None:
    """Raises SequenceTooLong if a preamble of so many rows leaves no room for speech."""
    least = rows + 2 * MIN_ROWS
    if least > positions:
        raise SequenceTooLong(
            f"of {positions} positions the voice's reference takes {rows}, and its speech needs "
            f"{2 * MIN_ROWS}: raise the positions to {least} or more, or shorten the reference"
        )


class Sequence:
    """The rows of one slot. `positions`: how many the slot's cache takes."""

    def __init__(
        self,
        slot: int,
        audio: AudioConfig,
        member: Member,
        preamble: tuple[Item, ...],
        *,
        positions: int,
        sampling: Sampling,
        seed: int,
    ) -> None:
        check_preamble(len(preamble), positions)
        self._slot = slot
        self._audio = audio
        self._stray_code = member.stray_code(audio)
        self._stop = member.stop_rule(audio)
        self._preamble = preamble
        self._positions = positions
        self._sampling = sampling
        self._seed = seed
        self._pending: deque[Item] = deque(preamble)
        self._position = 0
        self._texts: deque[TextChunk] = deque()
        self._spoken: list[ChunkSpeech] = []  # whole chunks that the cache holds
        self._current: ChunkSpeech | None = None
        self._chunk = -1
        self._frames: list[Frames] = []
        self._finished = False
        self._generation = 0
        self._rows_drawn = 0
        self._rebuilds = 0

    # ---- text --------------------------------------------------------------------------------

    def has_room_for(self, chunk: TextChunk) -> bool:
        """Whether a chunk and what its speech is likely to take fit behind the preamble."""
        rows = len(chunk.items) + self._wanted(chunk)
        return len(self._preamble) + rows <= self._positions

    def append(self, chunk: TextChunk) -> None:
        """Raises SequenceTooLong if the text alone does not fit behind the preamble."""
        least = len(self._preamble) + len(chunk.items) + MIN_ROWS + self._tail(chunk)
        if least > self._positions:
            raise SequenceTooLong(
                f"{len(chunk.items)} tokens of text do not fit into {self._positions} positions "
                f"with a reference of {len(self._preamble)}: push shorter pieces"
            )
        self._texts.append(chunk)
        self._go_on()

    def finish(self) -> None:
        self._finished = True

    def break_off(self) -> None:
        """Draw nothing any more: what was not taken of frames and text is dropped."""
        self._generation += 1
        self._pending.clear()
        self._texts.clear()
        self._frames = []
        self._current = None
        self._finished = True

    # ---- rows out, codes in ------------------------------------------------------------------

    @property
    def state(self) -> SequenceState:
        current = self._current
        if current is None and self._finished:
            return SequenceState.ENDED
        if self._pending:
            return SequenceState.FEEDING
        if current is None:
            return SequenceState.STARVED
        return SequenceState.DRAWING if current.wants_row else SequenceState.WAITING

    @property
    def awaits_text(self) -> bool:
        """Whether no frame follows before more text comes."""
        return self._current is None and not self._finished

    @property
    def generation(self) -> int:
        """Goes up when rows that were launched no longer count; `accept` wants the one of then."""
        return self._generation

    @property
    def chunk(self) -> int:
        """Which of the appended chunks was begun last, from 0; -1 before the first."""
        return self._chunk

    @property
    def attempt(self) -> int:
        """How often the current chunk was begun anew."""
        return 0 if self._current is None else self._current.attempt

    @property
    def rows_drawn(self) -> int:
        """How many rows were drawn for it so far, those of vain attempts included."""
        return self._rows_drawn

    @property
    def rebuilds(self) -> int:
        """How often the cache was made anew from the last chunks."""
        return self._rebuilds

    @property
    def preamble_to_feed(self) -> int:
        """How many rows `skip_preamble` saves; 0 if feeding has begun."""
        return len(self._preamble) if self._position == 0 else 0

    def skip_preamble(self) -> None:
        """The cache already holds the whole preamble."""
        for _ in self._preamble:
            self._pending.popleft()
        self._position = len(self._preamble)

    @property
    def has_fed_preamble(self) -> bool:
        return self._position >= len(self._preamble)

    def take(self, limit: int) -> list[Row]:
        """The next rows to feed, at most `limit`; the last row of a chunk's prompt draws.

        What stands before a chunk is fed without waiting for its text.
        """
        current = self._current
        if limit < 1:
            return []
        if not self._pending:
            if current is None or not current.wants_row:
                return []
            row = self._drawing_row(current)
            self._position += 1
            return [row]
        rows: list[Row] = []
        while self._pending and len(rows) < limit:
            item = self._pending.popleft()
            if isinstance(item, int):
                row = Row(self._slot, self._position, token=item)
            else:
                row = Row(self._slot, self._position, codes=item)
            if current is not None and not self._pending:
                row = self._drawing_row(current, row.token, row.codes)
            rows.append(row)
            self._position += 1
        return rows

    def accept(self, codes: tuple[int, ...], generation: int) -> None:
        """The row that the oldest launched row drew."""
        current = self._current
        if generation != self._generation or current is None:
            return
        number = len(current.rows)
        current.rows.append(codes)
        self._rows_drawn += 1
        if current.row_count is None:
            current.frame_count = self._stop.frame_count(number, codes)
            if current.frame_count is not None:
                current.row_count = self._stop.row_count(current.frame_count)
            elif len(current.rows) >= current.row_limit:
                current.is_short = True
                current.row_count = len(current.rows)
                current.frame_count = frames_of(len(current.rows), self._audio.codebooks)
        self._release(current)
        self._go_on()

    def take_frames(self) -> list[Frames]:
        """The frames that became whole since the last call."""
        frames, self._frames = self._frames, []
        return frames

    # ---- when speech runs away ---------------------------------------------------------------

    def cut(self, frame: int) -> None:
        """End the current chunk before this frame of it: what was drawn from there on is dropped.

        Frames that were taken before are the caller's to drop.
        """
        current = self._current
        if current is None:
            return
        self._generation += 1
        self._pending.clear()
        current.is_short = True
        current.frame_count = frame
        current.row_count = min(len(current.rows), self._stop.row_count(frame))
        del current.rows[current.row_count :]
        current.taken = max(current.taken, frame)
        self._frames = []
        self._release(current)
        self._go_on()

    def retry(self) -> None:
        """Draw the current chunk anew, with a fresh seed; frames of it that were taken are void."""
        current = self._current
        if current is None:
            return
        self._generation += 1
        self._frames = []
        self._pending.clear()
        self._pending.append(current.chunk.items[-1])
        self._position = current.audio_start - 1
        self._current = replace(current, attempt=current.attempt + 1, rows=[], launched=0, taken=0)

    # ---- the inside --------------------------------------------------------------------------

    def _drawing_row(
        self,
        current: ChunkSpeech,
        token: int = NO_TOKEN,
        codes: tuple[int, ...] | None = None,
    ) -> Row:
        ramp = current.launched
        current.launched += 1
        return Row(
            self._slot,
            self._position,
            token=token,
            codes=codes,
            ramp=ramp,
            seed=(self._seed + (2 * self._chunk + current.attempt) * SEED_STEP) & 0x7FFFFFFF,
            draw=ramp,
            sampling=self._sampling,
        )

    def _release(self, current: ChunkSpeech) -> None:
        """Hand on the frames that are whole now."""
        whole = max(current.whole_frames, current.taken)
        if whole == current.taken and not current.is_whole:
            return
        codes = tuple(current.frame(number) for number in range(current.taken, whole))
        current.taken = whole
        self._frames.append(Frames(self._chunk, codes, current.is_whole, current.is_short))

    def _go_on(self) -> None:
        """Put what is whole behind, and the next text before the decoder."""
        current = self._current
        if current is not None:
            if not current.is_whole:
                return
            if current.launched > len(current.rows):
                self._generation += 1  # a row behind the end is on its way: it is nobody's
            self._settle(current)
            self._current = None
        if not self._texts:
            return
        chunk = self._texts.popleft()
        self._chunk += 1
        start = self._position + len(self._pending) + len(chunk.items)
        if self._spoken and start + self._wanted(chunk) > self._positions:
            self._rebuild(chunk)
        self._pending.extend(chunk.items)
        start = self._position + len(self._pending)
        row_limit = min(chunk.row_limit, self._positions - start - self._tail(chunk))
        self._current = ChunkSpeech(chunk, self._audio, self._stray_code, start, row_limit)

    def _wanted(self, chunk: TextChunk) -> int:
        """How many positions to have for a chunk's speech: limits are generous, and half of one is
        more than most speech takes."""
        return max(MIN_ROWS, chunk.row_limit // 2) + self._tail(chunk)

    def _tail(self, chunk: TextChunk) -> int:
        """How many positions a chunk's last rows and its closing may take behind its row limit."""
        return self._audio.codebooks - 2 + len(chunk.closing)

    def _settle(self, speech: ChunkSpeech) -> None:
        """Let the cache hold the chunk as history: its rows from the first wrong one on again."""
        rows = speech.history_rows()
        # The row that was drawn last was never fed.
        fed = max(0, min(len(speech.rows), speech.launched - 1, len(rows)))
        right = next((n for n in range(fed) if rows[n] != speech.rows[n]), fed)
        self._position = speech.audio_start + right
        self._pending = deque([*rows[right:], *speech.chunk.closing])
        self._spoken.append(speech)
        del self._spoken[:-HISTORY_CHUNKS]

    def _rebuild(self, chunk: TextChunk) -> None:
        """Begin again behind the preamble, with the last chunks as history.

        They take a third of the room, so that several more chunks fit behind them; the last one may
        take more, for without it the voice would begin anew.
        """
        room = self._positions - len(self._preamble)
        left = room - len(chunk.items) - MIN_ROWS - self._tail(chunk)
        kept: list[Item] = []
        first = len(self._spoken)
        while first > 0:
            speech = self._spoken[first - 1]
            items = speech.history()
            limit = left // 2 if not kept else min(left, room // 3)
            if len(kept) + len(items) > limit:
                break
            kept = items + kept
            first -= 1
        del self._spoken[:first]
        self._position = len(self._preamble)
        self._pending = deque(kept)
        self._rebuilds += 1
