"""People who come, talk, misbehave and leave without a word: the clients of `benchmarks.soak`.

`python -m benchmarks.visitors URL --clients N --seconds S` keeps N of them busy and ends. Every
choice comes from one seed, so a run can be had again. The last line tells what was done and heard.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

RATE_HZ = 24_000
CHUNK_MS = 40  # of the microphone
VOICE = 9000  # amplitude of a tone that counts as speech
STAY_S = 15.0  # on average
LONGEST_S = 90.0
PAUSE_S = 1.5  # on average, between two things that a visitor does
AWAY_S = 1.0  # on average, between two visits
MUTE_S = (1.0, 50.0)  # longer than a ping is waited for, at times
PATIENCE_S = 5.0
CLOSE_TIMEOUT_S = 0.5  # who reads no more never sees the answer to its close
COUNTED = ("error", "response.done", "input_audio_buffer.speech_started")
AUDIO_DELTA = '{"type":"response.output_audio.delta"'

GARBAGE = (
    '{"type":',
    "[]",
    '{"type":"nonsense"}',
    '{"type":"input_audio_buffer.append"}',
    '{"type":"input_audio_buffer.append","audio":"!"}',
    '{"type":"session.update","session":{"type":"realtime","voice":7}}',
    '{"type":"conversation.item.delete","item_id":"never"}',
    '{"type":"conversation.item.truncate","item_id":"never","content_index":0,"audio_end_ms":5}',
    '{"type":"response.cancel","response_id":"never"}',
    "[" * 200,
    '{"a":' * 90,
)
TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
}
UPDATES: tuple[dict[str, object], ...] = (
    {"instructions": "Be brief.", "tools": [TOOL]},
    {"audio": {"input": {"turn_detection": None}}},
    {"audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}}},
    {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}},
    {"audio": {"input": {"transcription": {"model": "whisper-1"}}}},
    {"output_modalities": ["text"]},
    {"output_modalities": ["audio"]},
)


class Visitor:
    """One visit on one connection. tally: what was done and heard, over all visits."""

    def __init__(self, link: ClientConnection, chance: random.Random, tally: Counter[str]) -> None:
        self._link = link
        self._tally = tally
        self._chance = chance
        self._items: list[str] = []
        self._is_reading = asyncio.Event()
        self._is_reading.set()
        self._heard = asyncio.Event()  # something audible has come

    async def stay(self, seconds: float) -> None:
        """Do one thing after another, until the time or the connection is over."""
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self._speak, self._speak, self._type, self._type, self._interrupt, self._call),
            *(self._update, self._spoil, self._read_slowly, self._drop_in_bulk, self._tamper),
        )
        self._tally["visits"] += 1
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                reading = group.create_task(self._read())
                while not reading.done():
                    act = self._chance.choice(acts)
                    await act()
                    self._tally[act.__name__.strip("_")] += 1
                    await asyncio.sleep(self._chance.expovariate(1 / PAUSE_S))
        except TimeoutError:
            pass  # time to go
        except ExceptionGroup as group:
            if group.split(ConnectionClosed)[1] is not None:
                raise
            self._tally["sent away"] += 1

    async def leave(self) -> None:
        """In one of the ways in which connections end."""
        way = self._chance.choice(("close", "reset", "abort", "mute"))
        self._tally[f"left: {way}"] += 1
        match way:
            case "close":
                await self._link.close()
            case "reset":
                self._reset()
            case "abort":
                self._link.transport.abort()
            case _:
                # As a telephone that lost its network: nothing is said, read or answered.
                self._link.transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.sleep(self._chance.uniform(*MUTE_S))
                self._reset()

    def _reset(self) -> None:
        """The peer gets an RST and no FIN."""
        sock = self._link.transport.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._link.transport.abort()

    async def _send(self, type_: str, **fields: object) -> None:
        await self._link.send(json.dumps({"type": type_, **fields}))

    async def _read(self) -> None:
        async for message in self._link:
            await self._is_reading.wait()
            if str(message[: len(AUDIO_DELTA)]) == AUDIO_DELTA:
                self._heard.set()
                self._tally["heard: audio"] += 1
                continue
            event = json.loads(message)
            if event["type"] in COUNTED:
                self._tally[f"heard: {event['type']}"] += 1
            item = event.get("item")
            if isinstance(item, dict) and item.get("id") and len(self._items) < 50:
                self._items.append(item["id"])

    # ---- what they do ------------------------------------------------------------------------

    async def _speak(self) -> None:
        """A tone at the pace of speech, and the silence that ends the turn."""
        for ms, level in ((self._chance.randint(100, 1500), VOICE), (900, 0)):
            chunk = _append(CHUNK_MS, level)
            for _ in range(ms // CHUNK_MS):
                await self._link.send(chunk)
                await asyncio.sleep(CHUNK_MS / 1000)

    async def _interrupt(self) -> None:
        self._heard.clear()
        await self._type()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._heard.wait()
        await self._speak()

    async def _type(self) -> None:
        text = "word " * self._chance.randint(1, 30)
        await self._create(
            type="message", role="user", content=[{"type": "input_text", "text": text}]
        )
        await self._send("response.create")

    async def _call(self) -> None:
        """A tool's call and its result, as a client keeps them."""
        call = {"call_id": f"call_{self._chance.randrange(10**6)}"}
        await self._create(type="function_call", name="look_up", arguments="{}", **call)
        await self._create(type="function_call_output", output='{"found":1}', **call)
        await self._send("response.create", response={"tools": [TOOL], "tool_choice": "auto"})

    async def _create(self, **item: object) -> None:
        await self._send("conversation.item.create", item=item)

    async def _update(self) -> None:
        change = self._chance.choice(UPDATES)
        await self._send("session.update", session={"type": "realtime", **change})

    async def _spoil(self) -> None:
        await self._link.send(self._chance.choice(GARBAGE))
        if self._chance.random() < 0.3:
            await self._link.send(bytes(8))  # no frame of the protocol

    async def _read_slowly(self) -> None:
        self._is_reading.clear()
        await self._type()
        await asyncio.sleep(self._chance.uniform(0.5, 4.0))
        self._is_reading.set()

    async def _drop_in_bulk(self) -> None:
        """A recording at once, and its end said by hand."""
        await self._link.send(_append(self._chance.randint(200, 5000), VOICE))
        await self._send(f"input_audio_buffer.{self._chance.choice(('commit', 'clear'))}")

    async def _tamper(self) -> None:
        """Look at, shorten, delete or cancel what there is."""
        if not self._items:
            return
        item_id = self._chance.choice(self._items)
        match self._chance.randrange(4):
            case 0:
                await self._send("conversation.item.retrieve", item_id=item_id)
            case 1:
                end = {"content_index": 0, "audio_end_ms": self._chance.randrange(2000)}
                await self._send("conversation.item.truncate", item_id=item_id, **end)
            case 2:
                await self._send("conversation.item.delete", item_id=item_id)
            case _:
                await self._send("response.cancel")


def _append(ms: int, level: int) -> str:
    phase = np.arange(RATE_HZ * ms // 1000) * 2 * np.pi * 200.0 / RATE_HZ
    audio = base64.b64encode((np.sin(phase) * level).astype("<i2").tobytes()).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


async def _come_and_go(url: str, chance: random.Random, end_s: float, tally: Counter[str]) -> None:
    """Visits one after another until `end_s` of the loop's time; the last one is cut."""
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError):
        async with asyncio.timeout_at(end_s):
            while loop.time() < end_s:
                try:
                    link = await connect(
                        url, compression=None, proxy=None, close_timeout=CLOSE_TIMEOUT_S
                    )
                    visitor = Visitor(link, chance, tally)
                    try:
                        await visitor.stay(min(LONGEST_S, chance.expovariate(1 / STAY_S)))
                        await visitor.leave()
                    finally:
                        link.transport.abort()
                except (InvalidHandshake, ConnectionError):
                    tally["not let in"] += 1
                await asyncio.sleep(chance.expovariate(1 / AWAY_S))


async def visit(url: str, clients: int, seconds: float, seed: int) -> Counter[str]:
    """Keep `clients` of them coming for so long. Gives what they did and heard, by its name."""
    tally = Counter[str]()
    end_s = asyncio.get_running_loop().time() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            chance = random.Random(seed * 1000 + number)
            group.create_task(_come_and_go(url, chance, end_s, tally))
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(json.dumps(asyncio.run(visit(chosen.url, chosen.clients, chosen.seconds, chosen.seed))))


if __name__ == "__main__":
    main()
