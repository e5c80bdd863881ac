"""One conversation with a server in real time, and everything that a listener heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from realtime.commands.playback import Playback
from realtime.commands.turns import Turn, TurnLog
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm, WireClient, open_client

QUIET_MS = 1200  # nothing happens for so long after an answer: it is over
LIMIT_MS = 60_000  # no exchange takes longer
LEAD_IN_MS = 400  # rooms are silent before somebody speaks


@dataclass(frozen=True, slots=True)
class Flush:
    """Playing was silenced, as `speech_started` asks. unheard_ms: audio that was thrown away."""

    at_ms: float
    item_id: str
    unheard_ms: float


@dataclass(slots=True)
class Exchange:
    """What came of it. Times are on the client's clock."""

    turns: list[Turn]
    playback: Playback
    speech_start_ms: float
    speech_end_ms: float
    errors: list[str]
    stray: list[str]  # events of a response after its done
    flushes: list[Flush] = field(default_factory=list[Flush])

    def reply_audio(self, item_id: str) -> Pcm:
        """int16 [n] at WIRE_RATE_HZ: what was heard of one reply."""
        pieces = [s.pcm for s in self.playback.segments if s.item_id == item_id]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


class Talker:
    """A person with a microphone that is always open and a loudspeaker that obeys.

    truncates: whether the server is told what was heard of a reply that was silenced.
    witness: gets every event, and when it came.
    """

    def __init__(
        self,
        client: WireClient,
        *,
        truncates: bool = True,
        witness: Callable[[float, dict[str, Any]], None] = lambda _at_ms, _event: None,
    ) -> None:
        self.client = client
        self.playback = Playback(WIRE_RATE_HZ)
        self.stray: list[str] = []
        self.flushes: list[Flush] = []
        self.retrieved: dict[str, dict[str, Any]] = {}  # items that were asked for, by id
        self._truncates = truncates
        self._witness = witness
        self._said: Pcm = np.zeros(0, np.int16)
        self._done: set[str] = set()
        self.log = TurnLog(self.playback, self._speech_end_ms)

    async def listen(self) -> None:
        async for at_ms, event in self.client.received():
            self._witness(at_ms, event)
            self.log.observe(at_ms, event)
            self._check(event)
            match event["type"]:
                case "input_audio_buffer.speech_started":
                    await self._flush(at_ms)
                case "conversation.item.retrieved":
                    self.retrieved[event["item"]["id"]] = event["item"]
                case _:
                    pass

    async def _flush(self, at_ms: float) -> None:
        unheard_ms = self.playback.end_ms - at_ms
        cut = self.playback.flush(at_ms)
        if cut is None:
            return
        item_id, heard_ms = cut
        self.flushes.append(Flush(at_ms, item_id, unheard_ms))
        if self._truncates:
            await self.client.send(
                "conversation.item.truncate",
                item_id=item_id,
                content_index=0,
                audio_end_ms=heard_ms,
            )

    def _check(self, event: dict[str, Any]) -> None:
        """A response is silent after its done."""
        response_id = event.get("response_id")
        if response_id in self._done:
            self.stray.append(event["type"])
        if event["type"] == "response.done":
            self._done.add(event["response"]["id"])

    async def say(self, pcm: Pcm) -> int:
        """Speak in real time. Gives the position where it began, in samples of all that was fed."""
        begin = self.client.fed_samples
        self._said = np.concatenate([self._padded(begin), pcm])
        await self.client.feed(pcm)
        return begin

    def _padded(self, length: int) -> Pcm:
        return np.concatenate([self._said, np.zeros(length - len(self._said), np.int16)])

    async def be_silent(self, ms: int) -> None:
        await self.client.feed(np.zeros(WIRE_RATE_HZ * ms // 1000, np.int16))

    async def hear_out(self) -> None:
        """Be silent until every answer has been played."""
        self.log.last_event_ms = self.client.now_ms()
        await self.client.feed_silence(self._is_over, LIMIT_MS)

    def _is_over(self) -> bool:
        now_ms = self.client.now_ms()
        busy = self.log.is_open or self.log.is_undecided(now_ms)
        busy = busy or now_ms < self.playback.end_ms
        return not busy and now_ms - self.log.last_event_ms > QUIET_MS

    def _speech_end_ms(self, audio_end_ms: int) -> float | None:
        """When the last loud sample before a position of the audio was spoken."""
        end = audio_end_ms * WIRE_RATE_HZ // 1000
        loud = np.flatnonzero(np.abs(self._said[:end].astype(np.int32)) > 0)
        return self.client.spoken_at_ms(int(loud[-1]) + 1) if loud.size else None


async def converse(url: str, pcm: Pcm, first: int = 0, last: int | None = None) -> Exchange:
    """Say `pcm`, whose voice lasts from sample `first` to `last`, and hear the answer out."""
    async with open_client(url) as client:
        talker = Talker(client)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(talker.listen())
            await introduce(client)
            await talker.be_silent(LEAD_IN_MS)
            begin = await talker.say(pcm)
            await talker.hear_out()
            listening.cancel()
        talker.log.complete_sounds()
        return Exchange(
            talker.log.turns,
            talker.playback,
            client.spoken_at_ms(begin + first),
            client.spoken_at_ms(begin + (len(pcm) if last is None else last)),
            talker.log.errors,
            talker.stray,
            talker.flushes,
        )


async def introduce(client: WireClient, **session: Any) -> None:
    """Ask for transcripts of what is said; other fields of the session as they are."""
    await client.send(
        "session.update",
        session={
            "type": "realtime",
            "audio": {"input": {"transcription": {"model": "whisper-1", "language": "en"}}},
            **session,
        },
    )
