"""Hears one sound file: it is decoded and cut in a thread, and its pieces are recognised in order.

However long it is, a few pieces are in memory; a request that is given up leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

from pipelines.ports import Cascade, RecogniseStream
from pipelines.types import ANY_LANGUAGE, HeardWord, RecogniseRequest, Transcript, Urgency
from realtime.audio.reading import SoundFile
from realtime.audio.segments import Piece, cut
from realtime.audio.subtitles import Segment, segment_words
from realtime.http.reception import refuse

PIECES_AT_ONCE = 2  # one is recognised while the next is on its way
# For one piece of half a minute: conversations come first, but nobody waits for ever.
PIECE_TIMEOUT_S = 180.0

Item = TypeVar("Item")
_END = object()


@dataclass(frozen=True, slots=True)
class HearingOrder:
    """What is wanted of a file. language: ISO 639-1; None: the first that is heard in it."""

    request_id: str
    language: str | None = None
    prompt: str = ""
    wants_words: bool = False
    translates: bool = False


@dataclass(frozen=True, slots=True)
class HeardPiece:
    """Times are those of the file. words: where they were wanted and the recogniser tells."""

    text: str
    language: str | None
    start_s: float
    end_s: float
    words: tuple[HeardWord, ...]

    def segments(self) -> Iterator[Segment]:
        if self.words:
            yield from segment_words(self.text, self.words)
        elif self.text:
            yield Segment(self.text, self.start_s, self.end_s)


class Steps(Generic[Item]):
    """An iterator whose steps are taken in threads, one after the other."""

    def __init__(self, items: Generator[Item, None, None]) -> None:
        self._items = items
        self._lock = threading.Lock()  # a step whose caller has gone may be under way

    def __aiter__(self) -> Steps[Item]:
        return self

    async def __anext__(self) -> Item:
        item = await asyncio.to_thread(self._step)
        if item is _END:
            raise StopAsyncIteration
        return item  # type: ignore[return-value]

    async def close(self) -> None:
        """Return once no step is under way, and none will be."""
        await asyncio.to_thread(self._close)

    def _step(self) -> Item | object:
        with self._lock:
            return next(self._items, _END)

    def _close(self) -> None:
        with self._lock:
            self._items.close()


@dataclass(frozen=True, slots=True)
class OpenSound:
    """sound.seconds is how much of it was heard so far."""

    sound: SoundFile
    pieces: Steps[Piece]


@asynccontextmanager
async def open_sound(file: BinaryIO) -> AsyncIterator[OpenSound]:
    """file: is not used any more afterwards. Raises UnreadableAudio, as its pieces do."""
    sound = await asyncio.to_thread(SoundFile, file)
    pieces = Steps(cut(sound))
    try:
        yield OpenSound(sound, pieces)
    finally:
        sound.stop()
        await pieces.close()


async def hear_pieces(
    cascade: Cascade, order: HearingOrder, pieces: AsyncIterator[Piece]
) -> AsyncGenerator[HeardPiece, None]:
    """In order; those in which nothing is said have no text.

    Close it (`contextlib.aclosing`): that aborts what is under way. Raises StageError, Refused
    (504, and 400 where words are heard in another language than was told) and what `pieces`
    raises.
    """
    open_pieces: deque[tuple[Piece, RecogniseStream]] = deque()
    language = order.language
    at_once = 1 if language is None else PIECES_AT_ONCE
    number = 0
    try:
        async for piece in pieces:
            if len(open_pieces) >= at_once:
                heard = await _hear_first(open_pieces)
                _check_language(order, heard)
                yield heard
                if heard.text:  # the others are in the language of the first
                    language, at_once = language or heard.language, PIECES_AT_ONCE
            number += 1
            request = RecogniseRequest(
                f"{order.request_id}_{number}",
                Urgency.STEADY,
                language=language or ANY_LANGUAGE,
                prompt=order.prompt,
                wants_words=order.wants_words,
                translates=order.translates,
            )
            stream = cascade.recognise(request)
            open_pieces.append((piece, stream))
            await stream.push(piece.samples)
            await stream.finish()
        while open_pieces:
            heard = await _hear_first(open_pieces)
            _check_language(order, heard)
            yield heard
    finally:
        for _, stream in open_pieces:
            stream.abort()


async def _hear_first(open_pieces: deque[tuple[Piece, RecogniseStream]]) -> HeardPiece:
    piece, stream = open_pieces[0]
    try:
        async with asyncio.timeout(PIECE_TIMEOUT_S):
            transcript = await _final(stream)
    except TimeoutError:
        raise refuse(
            504,
            "transcription_timeout",
            f"Half a minute of audio was not recognised within {PIECE_TIMEOUT_S:g} s: the server "
            "has more to do than it can. Try again later.",
        ) from None
    open_pieces.popleft()
    words = (
        HeardWord(word.text, word.start_s + piece.start_s, word.end_s + piece.start_s)
        for word in transcript.words
    )
    return HeardPiece(
        transcript.text, transcript.language, piece.start_s, piece.end_s, tuple(words)
    )


def _check_language(order: HearingOrder, heard: HeardPiece) -> None:
    """A recogniser that does not know a language hears in one that it knows."""
    asked = order.language
    if asked is None or not heard.text or heard.language in (None, asked):
        return
    raise refuse(
        400,
        "language_unsupported",
        f"Invalid 'language': the recogniser of this server does not know '{asked}'; it took the "
        f"recording for '{heard.language}'. Name a language that it knows or leave 'language' out; "
        "where it knows English alone, set stages.recogniser.model to a model of many languages, "
        "such as base.",
        "language",
    )


async def _final(stream: RecogniseStream) -> Transcript:
    last = Transcript("", is_final=True)
    async for transcript in stream:
        last = transcript
    return last
