"""One reply between its text and its sound: all that is not tensors.

push -> lines -> sequence -> rows     (the engine's decoder draws)
accept -> frames -> watched, held -> due -> job     (the engine's codec makes sound)
hear -> lead-in trimmed, watched -> SpeechDelta with the words that end in it
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

import numpy as np

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, AudioConfig
from pipelines.higgs.member import Member
from pipelines.higgs.ports import CodecJob
from pipelines.higgs.reply.emission import Emission
from pipelines.higgs.reply.lead_in import LeadIn
from pipelines.higgs.reply.reading import Line, Reading
from pipelines.higgs.reply.sequence import Frames, Sequence, SequenceState, SequenceTooLong
from pipelines.higgs.reply.watchdog import RepetitionWatch, Runaway, RunawayKind, SilenceWatch
from pipelines.higgs.reply.words import ChunkWords, VoicePace
from pipelines.higgs.rows import Sampling
from pipelines.higgs.text.prompt import Preamble
from pipelines.types import Samples, SpeechDelta, StageError, WordEnd

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 2  # at a chunk: a second seed mends what chance spoilt, a third would be late

# A silence is seen when it is heard, and what the codec was given meanwhile is heard as well: how
# much depends on the clock. For a seed to sound alike it ends at a fixed frame behind all that:
# a piece of the largest, and what the codec keeps back.
SETTLING_FRAMES = 24


@dataclass(slots=True)
class _Chunk:
    """A line that is spoken.

    submitted: how many of its frames the codec was given; first_frame: which of the reply's frames
    was the first of them. frame_count: how many it has in all, once that is known. silent: how it
    has run away, and after how many frames that is to end.
    """

    line: Line
    start_chars: int
    repetition: RepetitionWatch
    silence: SilenceWatch
    submitted: int = 0
    first_frame: int = 0
    frame_count: int | None = None
    is_short: bool = False  # it was cut: its length says nothing of the voice's pace
    breaks_off: bool = False  # the reply ends within it
    silent: tuple[RunawayKind, int] | None = None
    words: ChunkWords | None = None

    def begin_anew(self) -> None:
        """None of what was drawn for it counts."""
        self.repetition = RepetitionWatch()
        self.silence = SilenceWatch(self.line.text)
        self.submitted = 0
        self.silent = None
        self.words = None

    @property
    def end_frame(self) -> int | None:
        return None if self.frame_count is None else self.first_frame + self.frame_count


class SpeechStream:
    """Opened in a slot by the engine; hashable by identity.

    most_frames: of all its chunks, with which it ends whatever is left to say; None: no limit.
    first_frames: as Emission has it.
    """

    def __init__(
        self,
        slot: int,
        preamble: Preamble,
        reading: Reading,
        audio: AudioConfig,
        member: Member,
        *,
        positions: int,
        lag_samples: int,
        sampling: Sampling,
        seed: int,
        most_frames: int | None = None,
        first_frames: int = 0,
    ) -> None:
        """Raises StageError if the voice's reference leaves no room for speech."""
        try:
            self.sequence = Sequence(
                slot,
                audio,
                member,
                preamble.items,
                positions=positions,
                sampling=sampling,
                seed=seed,
            )
        except SequenceTooLong as error:
            raise StageError("tts_reference_too_long", str(error)) from error
        self.slot = slot
        self.preamble_key = preamble.key
        self.preamble_rows = len(preamble.items)
        self.is_preamble_kept = False
        self.is_closed = False
        self.error: StageError | None = None
        self._reading = reading
        self._most_frames = most_frames
        self._is_broken_off = False
        self._emission = Emission(lag_samples, first_frames)
        self._lead_in = LeadIn()
        self._codebooks = audio.codebooks
        self._pace = VoicePace()
        self._chunks: list[_Chunk] = []
        self._telling = 0  # the chunk whose words are told next
        self._pushed_chars = 0
        self._told_chars = 0
        # Of which chunk, and codes; None: of an attempt at one that was in vain.
        self._held: deque[tuple[int | None, tuple[int, ...]]] = deque()
        self._jobs = 0  # on their way
        self._submitted_frames = 0
        self._heard_samples = 0  # of all frames, what was trimmed included

    # ---- text --------------------------------------------------------------------------------

    def push(self, text: str) -> None:
        """Raises StageError where a piece of it cannot fit."""
        if self._is_broken_off:
            return
        for line in self._reading.lines(text, self.sequence.has_room_for):
            start, self._pushed_chars = self._pushed_chars, self._pushed_chars + len(line.text)
            if line.chunk is None:
                continue
            watches = RepetitionWatch(), SilenceWatch(line.text)
            self._chunks.append(_Chunk(line, start, *watches))
            try:
                self.sequence.append(line.chunk)
            except SequenceTooLong as error:
                raise StageError("tts_text_too_long", str(error)) from error

    def finish(self) -> None:
        self.sequence.finish()

    def close(self) -> None:
        """What still comes for it is nobody's."""
        self.is_closed = True

    def fail(self, error: StageError) -> None:
        if self.error is None:
            self.error = error

    # ---- states ------------------------------------------------------------------------------

    @property
    def draws(self) -> bool:
        return self.error is None and self.sequence.state is SequenceState.DRAWING

    @property
    def feeds(self) -> bool:
        return self.error is None and self.sequence.state is SequenceState.FEEDING

    @property
    def is_starved(self) -> bool:
        """Nothing to do before more text comes, or before `again_s` seconds have passed."""
        return self.sequence.state is SequenceState.STARVED and not self._jobs

    @property
    def is_ended(self) -> bool:
        return self._is_silent and not self._awaits_rest

    def again_s(self, now_s: float) -> float | None:
        """While starved: in how many seconds something is due; None: nothing by itself."""
        return self._emission.again_s(len(self._held), now_s)

    # ---- codes in, jobs out ------------------------------------------------------------------

    def accept(self, row: tuple[int, ...], generation: int) -> None:
        """A row that was drawn for a row of `sequence.take`."""
        if self.is_closed or generation != self.sequence.generation:
            return
        self.sequence.accept(row, generation)
        for frames in self.sequence.take_frames():
            self._hold(frames)

    def due(self, now_s: float) -> CodecJob | None:
        """What the codec is to be given now."""
        if self.error is not None:
            return None
        piece = self._emission.due(
            len(self._held),
            now_s,
            ends=self.sequence.state is SequenceState.ENDED,
            waiting_for_text=self.sequence.awaits_text,
        )
        if piece is None:
            return None
        taken = [self._held.popleft() for _ in range(piece.frames)]
        for number, _ in taken:
            self._count(number)
        self._jobs += 1
        codes = np.array([codes for _, codes in taken], np.int32)
        return CodecJob(self.slot, codes.reshape(len(taken), self._codebooks), piece.closes)

    # ---- samples -----------------------------------------------------------------------------

    def hear(self, samples: Samples, now_s: float) -> list[SpeechDelta]:
        """The sound of the oldest job, as it is told."""
        self._jobs -= 1
        self._watch_sound(samples)
        self._heard_samples += len(samples)
        heard = self._lead_in.trim(samples)
        self._emission.emitted(len(heard), now_s)
        words = self._words_over(self._heard_samples - len(heard), len(heard))
        if not len(heard) and not words:
            return []
        return [SpeechDelta(heard, CODEC_RATE_HZ, self._told_chars, words)]

    def rest(self) -> list[SpeechDelta]:
        """What is left to tell when all sound was heard: text at the end that makes none."""
        if not self._is_silent or not self._awaits_rest:
            return []
        self._told_chars = self._pushed_chars
        return [SpeechDelta(np.zeros(0, np.float32), CODEC_RATE_HZ, self._told_chars)]

    # ---- the inside --------------------------------------------------------------------------

    def _hold(self, frames: Frames) -> None:
        """Keep frames for the codec, unless they show that the speech has run away."""
        if self._is_broken_off:
            return
        chunk = self._chunks[frames.chunk]
        room = self._room
        runaway = chunk.repetition.feed(frames.codes)
        self._held.extend((frames.chunk, codes) for codes in frames.codes[:room])
        if frames.is_last and (room is None or len(frames.codes) <= room):
            chunk.frame_count = self._frames_of(frames.chunk)
            chunk.is_short = frames.is_short
            if chunk.frame_count == 0:
                self._time(chunk, self._submitted_frames + len(self._held))
            elif chunk.words is not None:
                self._end_words(chunk)
        elif self._room != 0:
            if runaway is not None:
                self._tell(frames.chunk, runaway)
                self._cut(frames.chunk, self._frames_of(frames.chunk))
            else:
                self._end_silence(frames.chunk)
        if self._room == 0:
            self._break_off(chunk, frames.chunk)

    def _break_off(self, chunk: _Chunk, number: int) -> None:
        """The reply has all the frames that it may have."""
        self._is_broken_off = True
        self.sequence.break_off()
        if chunk.frame_count is None:
            chunk.frame_count = self._frames_of(number)
            chunk.breaks_off = True
            if chunk.words is not None:
                self._end_words(chunk)

    def _tell(self, number: int, runaway: Runaway) -> None:
        logger.info(
            "slot %d: speech ran away: %s from frame %d of chunk %d on",
            *(self.slot, runaway.kind.value, runaway.since_frame, number),
        )

    def _frames_of(self, number: int) -> int:
        """How many frames of a chunk there are, since it was last begun."""
        held = sum(owner == number for owner, _ in self._held)
        return self._chunks[number].submitted + held

    def _end_silence(self, number: int) -> None:
        """Begin a chunk anew in which nothing was heard, or end it, once its silence is over."""
        chunk = self._chunks[number]
        if chunk.silent is None or chunk.frame_count is not None:
            return
        kind, end_frame = chunk.silent
        if self._frames_of(number) < end_frame:
            return
        keep = max(end_frame, chunk.submitted)
        is_vain = kind is RunawayKind.LEADING_SILENCE
        if not is_vain or self.sequence.attempt + 1 >= MOST_ATTEMPTS:
            self._cut(number, keep)
            return
        self.sequence.retry()
        self._drop_beyond(number, keep)
        self._held = deque((None, codes) for _, codes in self._held)
        chunk.begin_anew()

    def _cut(self, number: int, keep: int) -> None:
        """End a chunk after so many of its frames."""
        self.sequence.cut(keep)
        self._drop_beyond(number, keep)
        for frames in self.sequence.take_frames():
            self._hold(frames)

    def _drop_beyond(self, number: int, keep: int) -> None:
        # A chunk that runs away is the last one of which there are frames.
        for _ in range(self._frames_of(number) - keep):
            self._held.pop()

    def _count(self, number: int | None) -> None:
        """One more frame goes to the codec, of this chunk."""
        if number is not None:
            chunk = self._chunks[number]
            if chunk.submitted == 0:
                self._time(chunk, self._submitted_frames)
            chunk.submitted += 1
        self._submitted_frames += 1

    def _time(self, chunk: _Chunk, first_frame: int) -> None:
        """Its words can be told: where its sound begins is known."""
        chunk.first_frame = first_frame
        chunk.words = ChunkWords(chunk.line.text, chunk.start_chars, first_frame, self._pace)
        if chunk.frame_count is not None:
            self._end_words(chunk)

    def _end_words(self, chunk: _Chunk) -> None:
        assert chunk.words is not None and chunk.frame_count is not None
        if chunk.breaks_off:
            chunk.words.breaks_off(chunk.frame_count)
        else:
            chunk.words.ends(chunk.frame_count, learns=not chunk.is_short)

    def _watch_sound(self, samples: Samples) -> None:
        """Let the silence of each chunk be watched, by its own samples."""
        begin = self._heard_samples
        for number in range(self._telling, len(self._chunks)):
            chunk = self._chunks[number]
            if chunk.words is None:
                break
            first = max(0, chunk.first_frame * FRAME_SAMPLES - begin)
            end_frame = chunk.end_frame
            end = len(samples) if end_frame is None else end_frame * FRAME_SAMPLES - begin
            was_heard = chunk.silence.has_heard
            runaway = chunk.silence.feed(samples[first : max(first, end)])
            onset = chunk.silence.onset_samples
            if onset is not None and not was_heard:
                chunk.words.begins(chunk.first_frame * FRAME_SAMPLES + onset)
            if runaway is not None and chunk.silent is None:
                self._tell(number, runaway)
                end_frame = chunk.silence.judged_frames + SETTLING_FRAMES
                chunk.silent = runaway.kind, end_frame
                self._end_silence(number)
                break

    def _words_over(self, begin: int, count: int) -> tuple[WordEnd, ...]:
        """The words that are over by now, for a delta of `count` samples from sample `begin` on."""
        found: list[WordEnd] = []
        while self._telling < len(self._chunks):
            chunk = self._chunks[self._telling]
            if chunk.words is None:
                break
            end_frame = chunk.end_frame
            is_over = end_frame is not None and self._heard_samples >= end_frame * FRAME_SAMPLES
            if not (chunk.silence.has_heard or is_over):
                break  # estimates know nothing of a silence before the first word
            for sample, text_end in chunk.words.told(self._heard_samples):
                found.append(WordEnd(min(max(0, sample - begin), count), text_end))
            self._told_chars = max(self._told_chars, chunk.words.text_end)
            if not is_over:
                break
            self._telling += 1
        return tuple(found)

    @property
    def _room(self) -> int | None:
        """How many more frames it may have; None: any number."""
        if self._most_frames is None:
            return None
        return self._most_frames - self._submitted_frames - len(self._held)

    @property
    def _awaits_rest(self) -> bool:
        """Whether text is left that makes no sound. What a reply breaks off with is not said."""
        return self._told_chars < self._pushed_chars and not self._is_broken_off

    @property
    def _is_silent(self) -> bool:
        is_over = self.sequence.state is SequenceState.ENDED
        return is_over and not self._held and not self._jobs
