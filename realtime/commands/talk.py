"""`parley talk`: say a recording, a text or the microphone's sound to a server; hear the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from realtime.commands.errors import FAILED, OK, USAGE, CommandError
from realtime.commands.microphone import open_headset
from realtime.commands.output_file import require_writable
from realtime.commands.playback import Playback
from realtime.commands.turns import Step, Turn, TurnLog, last_voiced_sample
from realtime.commands.wire_client import (
    WIRE_RATE_HZ,
    ConversationEnded,
    Pcm,
    WireClient,
    open_client,
)

QUIET_MS = 1500  # nothing happens for so long: the conversation is over
ENDED = "the server ended the conversation"
ANSWER_LIMIT_MS = 120_000  # no answer takes longer than this, spoken to its end


@dataclass(frozen=True, slots=True)
class TalkOptions:
    """What to say and where the answer goes."""

    url: str
    key: str | None
    recording: Path | None
    text: str | None
    microphone: bool
    out: Path | None


def talk(options: TalkOptions) -> int:
    """Runs one conversation; prints transcripts and each turn's timeline. 1 if a reply failed."""
    if options.out is not None:
        require_writable(options.out, "--out", (".wav",))
    spoken = None if options.recording is None else read_recording(options.recording)
    return FAILED if asyncio.run(_talk(options, spoken)) else OK


def read_recording(path: Path) -> Pcm:
    """A sound file as int16 [n] at WIRE_RATE_HZ; channels are averaged."""
    try:
        with path.open("rb") as file:
            samples, rate_hz = soundfile.read(file, dtype="float32", always_2d=True)
    except FileNotFoundError as error:
        raise CommandError(f"{path}: there is no such file", USAGE) from error
    except (OSError, soundfile.LibsndfileError) as error:
        raise CommandError(f"{path} is no sound file that can be read: {error}") from error
    mono = soxr.resample(samples.mean(axis=1), rate_hz, WIRE_RATE_HZ)
    return (np.clip(mono, -1, 1) * 32_767).astype(np.int16)


async def _talk(options: TalkOptions, spoken: Pcm | None) -> bool:
    """Whether the conversation failed."""
    async with open_client(options.url, options.key) as client:
        conversation = _Conversation(client, spoken)
        begin_ms = client.now_ms()
        try:
            await conversation.run(options)
        finally:
            conversation.report()
            if options.out is not None and conversation.playback.segments:
                soundfile.write(options.out, conversation.playback.render(begin_ms), WIRE_RATE_HZ)
                print(f"reply written to {options.out}")
        return conversation.has_failed


class _Conversation:
    def __init__(self, client: WireClient, spoken: Pcm | None) -> None:
        self.playback = Playback(WIRE_RATE_HZ)
        self._client = client
        self._spoken = spoken
        self._log = TurnLog(self.playback, self._speech_end_ms)
        self._is_answered = asyncio.Event()
        self._is_admitted = False
        self._flush_speaker = lambda: None
        self._play = lambda _pcm: None

    async def run(self, options: TalkOptions) -> None:
        failed: CommandError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen())
                try:
                    await self._speak(options)
                except ConversationEnded:
                    await listening  # what came before the end says more than the end
                listening.cancel()
        except* CommandError as failures:
            failed = next(error for error in failures.exceptions if isinstance(error, CommandError))
        if failed is not None:
            raise failed

    async def _speak(self, options: TalkOptions) -> None:
        session = {
            "type": "realtime",
            "audio": {"input": {"transcription": {"model": "whisper-1"}}},
        }
        await self._client.send("session.update", session=session)
        if options.text is not None:
            print(f"you:   {options.text.strip()}", flush=True)
            content = [{"type": "input_text", "text": options.text}]
            item = {"type": "message", "role": "user", "content": content}
            await self._client.send("conversation.item.create", item=item)
            await self._client.send("response.create")
        if options.microphone:
            with open_headset(WIRE_RATE_HZ) as headset:
                print("speak; Ctrl-C ends the conversation (wear headphones: there is an echo)")
                self._flush_speaker, self._play = headset.flush, headset.play
                async for pcm in headset.recorded():
                    await self._client.append(pcm)
        if self._spoken is not None:
            if options.text is not None:
                await self._hear_first_reply()
            await self._client.feed(self._spoken)
        self._log.last_event_ms = self._client.now_ms()
        await self._client.feed_silence(self._is_over, ANSWER_LIMIT_MS)

    async def _hear_first_reply(self) -> None:
        """Until the answer to the text has been played, or refused. Raises CommandError."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT_MS / 1000):
                await self._is_answered.wait()
        except TimeoutError:
            limit_s = ANSWER_LIMIT_MS // 1000
            raise CommandError(f"the text was not answered within {limit_s} s") from None
        await asyncio.sleep(max(0.0, self.playback.end_ms - self._client.now_ms()) / 1000)

    @property
    def has_failed(self) -> bool:
        """Whether a reply failed, or the server's errors were all that came."""
        endings = {turn.status for turn in self._log.turns} - {None}
        return "failed" in endings or (bool(self._log.errors) and not endings)

    def _is_over(self) -> bool:
        now_ms = self._client.now_ms()
        is_waiting = self._log.is_open or self._log.is_undecided(now_ms)
        is_playing = now_ms < self.playback.end_ms
        return not is_waiting and not is_playing and now_ms - self._log.last_event_ms > QUIET_MS

    async def _listen(self) -> None:
        async for at_ms, event in self._events():
            self._log.observe(at_ms, event)
            match event["type"]:
                case "session.created":
                    self._is_admitted = True
                case "input_audio_buffer.speech_started":
                    await self._stop_playing(at_ms)
                case "response.output_audio.delta":
                    self._play(self.playback.segments[-1].pcm)
                case "conversation.item.input_audio_transcription.completed":
                    print(f"you:   {event['transcript'].strip()}", flush=True)
                case "response.done":
                    self._print_reply(event["response"])
                    self._is_answered.set()
                case "error" if not self._is_admitted:
                    raise CommandError(self._log.errors[-1])  # the closing says the same again
                case "error":
                    print(f"error: {self._log.errors[-1]}", flush=True)
                    self._is_answered.set()
                case _:
                    pass
        raise CommandError(ENDED)

    async def _events(self) -> AsyncIterator[tuple[float, dict[str, Any]]]:
        """As they are received; an ending that the last of them explained is not explained again.

        Raises CommandError.
        """
        explained = False
        try:
            async for at_ms, event in self._client.received():
                explained = event["type"] == "error"
                yield at_ms, event
        except ConversationEnded as ending:
            raise (CommandError(ENDED) if explained else ending) from ending

    async def _stop_playing(self, at_ms: float) -> None:
        self._flush_speaker()
        cut = self.playback.flush(at_ms)
        if cut is not None:
            item_id, heard_ms = cut
            await self._client.send(
                "conversation.item.truncate",
                item_id=item_id,
                content_index=0,
                audio_end_ms=heard_ms,
            )

    def _print_reply(self, response: dict[str, Any]) -> None:
        turn = next(turn for turn in self._log.turns if turn.response_id == response["id"])
        ending = "" if turn.status == "completed" else f" [{turn.status}: {turn.problem}]"
        print(f"reply: {turn.said.strip()}{ending}", flush=True)

    def _speech_end_ms(self, audio_end_ms: int) -> float | None:
        if self._spoken is None:
            return None
        end = last_voiced_sample(self._spoken, audio_end_ms * WIRE_RATE_HZ // 1000)
        return None if end is None else self._client.spoken_at_ms(end)

    def report(self) -> None:
        """Print each turn's timeline, in ms from the end of its speech."""
        self._log.complete_sounds()
        for number, turn in enumerate(self._log.turns, start=1):
            print(describe(number, turn))
        if not self._log.turns and self._spoken is not None and self._is_admitted:
            print("the server heard no speech")


def describe(number: int, turn: Turn) -> str:
    """One line: each step of a turn in ms after its first."""
    ordered = [(step, turn.steps_ms[step]) for step in Step if step in turn.steps_ms]
    if not ordered:
        return f"turn {number}: nothing came of it"
    origin_ms = ordered[0][1]
    steps = ", ".join(f"{step} {at_ms - origin_ms:+.0f}" for step, at_ms in ordered)
    return f"turn {number} (ms): {steps}"
