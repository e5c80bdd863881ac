"""One request on the socket of speech: its text to the voice, the voice's sound to the client."""

from __future__ import annotations

import asyncio
from typing import Any

from pipelines.ports import Cascade, SpeechStream
from pipelines.types import SpeechDelta, StageError, WordEnd
from realtime.http.reception import Refused
from realtime.http.speech.making import Made, unspeakable
from realtime.http.speech.sound import SentSound
from realtime.http.speech_socket.script import Mark, Script
from realtime.http.speech_socket.setup import Setup, problem_of
from realtime.http.speech_socket.wire import SpeechWire

MS_PER_S = 1000

# How a request ends, as `audio.done` has it.
COMPLETED = "completed"
CANCELLED = "cancelled"
FAILED = "failed"
INCOMPLETE = "incomplete"  # the voice ended first, at `max_new_tokens` or its own limit


class SpokenRequest:
    """Its end is told exactly once, by `audio.done`; before it an error, where it has failed: of a
    stage, or of a text in which nothing can be spoken."""

    def __init__(self, setup: Setup, wire: SpeechWire, script: Script) -> None:
        self._setup = setup
        self._wire = wire
        self._script = script
        self._stream: SpeechStream | None = None
        self._sound: SentSound | None = None
        self._characters = 0
        self._told_end = 0  # of the last word that was told
        self._has_all_text = False
        self._is_told = False

    async def run(self, cascade: Cascade, request_id: str, text: str) -> None:
        """text: its beginning; the script has the rest. A stage's error is told, not raised."""
        failure: Refused | None = None
        self._stream = stream = cascade.speak(self._setup.request(request_id))
        try:
            async with asyncio.TaskGroup() as tasks:
                feeding = tasks.create_task(self._feed(stream, text), name="speech text")
                async for delta in stream:
                    await self._hear(delta)
                feeding.cancel()
            await self._end_sound()
        except* StageError as errors:
            failure = self._setup.order.blame(_first(errors))
        finally:
            stream.abort()
        _pass_on_cancellation()
        if not self._has_all_text:
            self._script.skip()
        elif failure is None and self._sound is None:
            failure = unspeakable("text")
        if failure is not None:
            await self._wire.tell_problem(problem_of(failure))
            await self.tell_done(FAILED)
        else:
            await self.tell_done(COMPLETED if self._has_all_text else INCOMPLETE)

    def abort(self) -> None:
        """No sound is made any more. Never blocks."""
        if self._stream is not None:
            self._stream.abort()

    async def tell_done(self, status: str) -> None:
        """Unless it was told. Cancelled while it waits, it has told nothing."""
        if self._is_told:
            return
        sound = self._sound
        samples, rate_hz = (0, 1) if sound is None else (sound.samples, sound.rate_hz)
        made = Made(self._characters, samples, rate_hz)
        duration_ms = round(made.duration_s * MS_PER_S)
        await self._wire.tell(
            "audio.done", status=status, duration_ms=duration_ms, usage=made.usage
        )
        self._is_told = True

    async def _feed(self, stream: SpeechStream, text: str) -> None:
        """Until the text is whole."""
        entry = text
        while entry is not Mark.DONE:
            if entry is Mark.FLUSH:
                await stream.flush()
            elif isinstance(entry, str):
                self._characters += len(entry)
                await stream.push(entry)
            entry = await self._script.take()
        self._has_all_text = True
        await stream.finish()

    async def _hear(self, delta: SpeechDelta) -> None:
        if len(delta.samples) == 0:
            return
        config = self._setup.config
        if self._sound is None:
            self._sound = await asyncio.to_thread(SentSound, self._setup.order, delta.rate_hz, True)
            rate_hz = self._sound.sent_hz
            await self._wire.tell("audio.start", format=config.response_format, sample_rate=rate_hz)
        if config.word_timestamps and (ends := self._word_ends(delta.words)):
            words = _placed(ends, self._sound, self._setup.order.speed)
            await self._wire.tell("audio.words", words=words)
        await self._send(await asyncio.to_thread(self._sound.process, delta.samples))

    def _word_ends(self, told: tuple[WordEnd, ...]) -> list[WordEnd]:
        """Without the pauses, which a voice tells with the place of the word before them."""
        words: list[WordEnd] = []
        for word in told:
            if word.text_end > self._told_end:
                self._told_end = word.text_end
                words.append(word)
        return words

    async def _end_sound(self) -> None:
        if self._sound is not None:
            await self._send(await asyncio.to_thread(self._sound.finish))

    async def _send(self, data: bytes) -> None:
        if data:
            await self._wire.send_audio(data)


def _placed(words: list[WordEnd], sound: SentSound, speed: float) -> list[dict[str, Any]]:
    """Words that end in the samples that come next, as the wire has them: in ms from the first
    sample that was sent."""
    samples_per_ms = sound.rate_hz * speed / MS_PER_S
    return [
        {
            "text_end": word.text_end,
            "end_ms": round((sound.spoken_samples + word.samples) / samples_per_ms),
        }
        for word in words
    ]


def _pass_on_cancellation() -> None:
    """A task group that fails in the moment in which it is cancelled tells of its failure alone."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _first(errors: ExceptionGroup[StageError]) -> StageError:
    error = errors.exceptions[0]
    return error if isinstance(error, StageError) else _first(error)
