"""Makes one ordered speech: the text goes to the voice, its sound through tempo and encoder."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import IO

from pipelines.ports import Cascade, SpeechStream
from pipelines.types import SpeechDelta
from realtime.audio.wav import wav_header
from realtime.http.reception import Refused, refuse
from realtime.http.speech.order import SpeechOrder
from realtime.http.speech.sound import SentSound

# For the next piece of sound: on a full server others come first, but nobody waits for ever.
SOUND_TIMEOUT_S = 120.0
FRAMES_PER_S = 25  # what a voice of speech tokens makes, one for 40 ms
MEMORY_BYTES = 8 * 1024 * 1024  # of a file; what is longer than a few minutes waits on the disk
WAV_SAMPLE_BYTES = 2

Emit = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Made:
    """samples: of the voice, at its rate, in its new tempo; without any codec's padding."""

    characters: int
    samples: int
    rate_hz: int

    @property
    def duration_s(self) -> float:
        return self.samples / self.rate_hz

    @property
    def usage(self) -> dict[str, int]:
        """OpenAI's fields: characters that were read, and frames of 40 ms that were made."""
        frames = -(-self.samples * FRAMES_PER_S // self.rate_hz)
        return {
            "input_tokens": self.characters,
            "output_tokens": frames,
            "total_tokens": self.characters + frames,
        }


async def make_speech(
    cascade: Cascade, order: SpeechOrder, emit: Emit, *, is_streamed: bool = True
) -> Made:
    """Hand over the file's bytes as they are made, and make no more while `emit` waits.

    is_streamed: as of `SpeechEncoder`. Raises what `emit` raises, StageError, and Refused: 400
    for a text with nothing in it that could be spoken, 504 for a voice that is silent. However it
    ends, nothing of the request is left on any stage.
    """
    stream = cascade.speak(order.request)
    line = _Line(order, emit, is_streamed)
    failure: Exception | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(_feed(stream, order.text))
            try:
                deltas = aiter(stream)
                while (delta := await _next(deltas)) is not None:
                    await line.take(delta)
                await line.finish()
            except Exception as error:
                failure = error
            feeding.cancel()
    finally:
        stream.abort()
    if failure is not None:
        raise failure
    return line.made


async def make_file(cascade: Cascade, order: SpeechOrder, file: IO[bytes]) -> Made:
    """Write the whole speech into an empty file, whose lengths are exact. Raises as above."""

    async def write(data: bytes) -> None:
        await asyncio.to_thread(file.write, data)

    # A WAV file may be of any length: it is written on, and its header is put right at the end.
    is_wav = order.format == "wav"
    made = await make_speech(cascade, order, write, is_streamed=is_wav)
    if is_wav:
        await asyncio.to_thread(_mend_header, file, made.rate_hz)
    return made


def open_file() -> IO[bytes]:
    """For `make_file`; it vanishes when it is closed."""
    return tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)


async def _feed(stream: SpeechStream, text: str) -> None:
    await stream.push(text)
    await stream.finish()


async def _next(deltas: AsyncIterator[SpeechDelta]) -> SpeechDelta | None:
    """None at the end."""
    try:
        async with asyncio.timeout(SOUND_TIMEOUT_S):
            return await anext(deltas, None)
    except TimeoutError:
        raise refuse(
            504,
            "speech_timeout",
            f"The voice made no sound for {SOUND_TIMEOUT_S:g} s: the server may have more to do "
            "than it can. Try again later.",
        ) from None


class _Line:
    """One voice's sound on its way to bytes."""

    def __init__(self, order: SpeechOrder, emit: Emit, is_streamed: bool) -> None:
        self._order = order
        self._emit = emit
        self._is_streamed = is_streamed
        self._works: SentSound | None = None

    @property
    def made(self) -> Made:
        assert self._works is not None  # `finish` has raised otherwise
        return Made(len(self._order.text), self._works.samples, self._works.rate_hz)

    async def take(self, delta: SpeechDelta) -> None:
        if len(delta.samples) == 0:
            return
        if self._works is None:
            order, rate_hz = self._order, delta.rate_hz
            self._works = await asyncio.to_thread(SentSound, order, rate_hz, self._is_streamed)
        await self._pass_on(await asyncio.to_thread(self._works.process, delta.samples))

    async def finish(self) -> None:
        if self._works is None:
            raise unspeakable(f"{self._order.root}input")
        await self._pass_on(await asyncio.to_thread(self._works.finish))

    async def _pass_on(self, data: bytes) -> None:
        if data:
            await self._emit(data)


def unspeakable(field: str) -> Refused:
    """Of a text that has come whole, and of which the voice made no sound."""
    return refuse(
        400,
        "input_not_speakable",
        f"Invalid '{field}': nothing in it can be spoken; it holds only signs that have no sound.",
        field,
    )


def _mend_header(file: IO[bytes], rate_hz: int) -> None:
    header_bytes = len(wav_header(rate_hz, 0))
    samples = (file.tell() - header_bytes) // WAV_SAMPLE_BYTES
    file.seek(0)
    file.write(wav_header(rate_hz, samples))
    file.seek(0, 2)
