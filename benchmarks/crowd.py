"""Many sessions at once, as cheap as a client can be: one process, ready-made WebSocket frames.

`python -m benchmarks.crowd URL --sessions N` prints its figures as one line of JSON. A library's
client would cost as much as the server that it measures; this one writes each 20 ms of audio as
bytes that were masked beforehand (with the key 0: RFC 6455 asks for unpredictable keys to protect
proxies, and there is none here), and looks at no more of an answer than its first characters.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import numpy as np

from benchmarks.report import percentile
from realtime.runtime.egress import DEFAULT_LEAD_MS

RATE_HZ = 24_000
CHUNK_MS = 20  # of the microphone: what browsers and telephones send at a time
FRAME_MS = 40  # of the server's audio
CHUNKS = 50  # different ones: a second of noise
NOISE_LEVEL = 30  # of 32 768, -61 dB: a quiet room, which nobody takes for speech
WORDS = 24  # of a reply: each is a tone of 300 ms
PHASES = 20  # microphones are not in step: so many groups, a millisecond apart
OPENING_S = 0.01  # between two connections
OPENING_LIMIT_S = 30.0

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
AUDIO_DELTA = b'{"type":"response.output_audio.delta"'
DONE = b'"type":"response.done"'
ERROR = b'"type":"error"'


@dataclass(slots=True)
class Figures:
    """Times in ms. late: audio frames against a steady pace; sent_late: of our own chunks."""

    late_ms: list[float] = field(default_factory=list[float])
    starved: int = 0
    replies: int = 0
    errors: int = 0
    closed: int = 0  # by the server
    sent: int = 0
    sent_late_ms: list[float] = field(default_factory=list[float])
    is_measuring: bool = False
    is_over: bool = False


class Visitor(asyncio.Protocol):
    """One session, whose listener plays without a break and wants each frame in time.

    lead_ms: how far ahead the server may send: a frame is due when the listener is provided for
    no longer than that.
    """

    def __init__(self, path: str, figures: Figures, lead_ms: float) -> None:
        self._path = path
        self._figures = figures
        self._lead_ms = lead_ms
        self._rest = b""
        self._reply_s = 0.0  # when the first frame of the present reply came
        self._until_s = 0.0  # when the listener has played all that has come
        self._is_in_reply = False
        self._transport: asyncio.Transport | None = None
        self.is_open = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        key = base64.b64encode(bytes(16)).decode()
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def send(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._figures.closed += not self._figures.is_over

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        at = 0
        if not self.is_open.is_set():
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                self._rest = data
                return
            if b" 101 " not in data[:20]:
                raise ConnectionRefusedError(data[:at].decode(errors="replace"))
            self.is_open.set()
        while (span := _payload_span(data, at)) is not None:
            begin, at = span[0], span[1]
            self._take(span[2], data, begin, at)
        self._rest = data[at:]

    def _take(self, opcode: int, data: bytes, begin: int, end: int) -> None:
        if data.startswith(AUDIO_DELTA, begin):
            self._hear()
        elif opcode == PING:
            self.send(masked(PONG, data[begin:end]))
        elif opcode == CLOSE:
            self.close()
        elif data.find(DONE, begin, end) >= 0:
            self._figures.replies += self._figures.is_measuring
            self._is_in_reply = False
            self.send(ASK)
        elif data.find(ERROR, begin, end) >= 0:
            self._figures.errors += 1

    def _hear(self) -> None:
        now_s = time.monotonic()
        is_starved = self._is_in_reply and now_s > self._until_s
        if not self._is_in_reply:
            self._is_in_reply, self._reply_s = True, now_s
        due_s = max(self._reply_s, self._until_s - (self._lead_ms - FRAME_MS) / 1000)
        self._until_s = max(self._until_s, now_s) + FRAME_MS / 1000
        if self._figures.is_measuring:
            self._figures.late_ms.append((now_s - due_s) * 1000)
            self._figures.starved += is_starved


def _payload_span(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Begin and end of the payload of the frame at `at` and its opcode; None: not all is here."""
    if len(data) < at + 4:
        return None
    length, begin = data[at + 1] & 0x7F, at + 2
    if length == 126:
        length, begin = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
    elif length == 127:
        length, begin = int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
    end = begin + length
    return (begin, end, data[at] & 0x0F) if len(data) >= end else None


def masked(opcode: int, payload: bytes) -> bytes:
    """A client's frame with the masking key 0."""
    if len(payload) < 126:
        length = bytes([0x80 | len(payload)])
    else:
        length = bytes([0x80 | 126]) + len(payload).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


def event(**body: object) -> bytes:
    return masked(TEXT, json.dumps(body).encode())


def microphone() -> Iterator[bytes]:
    """Frames of a quiet room, over and over."""
    chance = np.random.default_rng(1)
    for _ in range(CHUNKS):
        noise = chance.normal(0, NOISE_LEVEL, RATE_HZ * CHUNK_MS // 1000).astype("<i2")
        audio = base64.b64encode(noise.tobytes()).decode()
        yield event(type="input_audio_buffer.append", audio=audio)


ASK = event(type="response.create")
SAY = event(
    type="conversation.item.create",
    item={
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "word " * WORDS}],
    },
)


async def crowd(
    url: str, sessions: int, settle_s: float, seconds: float, lead_ms: float
) -> Figures:
    """Open them, wait until they are in full swing, measure, leave."""
    where, figures = urlsplit(url), Figures()
    loop = asyncio.get_running_loop()
    visitors: list[Visitor] = []
    async with asyncio.TaskGroup() as group:
        feeding = group.create_task(_feed(visitors, figures))
        for _ in range(sessions):
            visitor = Visitor(where.path, figures, lead_ms)
            await loop.create_connection(
                lambda it=visitor: it, where.hostname or "127.0.0.1", where.port or 80
            )
            async with asyncio.timeout(OPENING_LIMIT_S):
                await visitor.is_open.wait()
            visitor.send(SAY + ASK)
            visitors.append(visitor)
            await asyncio.sleep(OPENING_S)
        await asyncio.sleep(settle_s)
        print("measuring", flush=True)
        figures.is_measuring = True
        await asyncio.sleep(seconds)
        figures.is_measuring = False
        print("measured", flush=True)
        await asyncio.sleep(1.0)  # for whoever looks at the server in full swing
        feeding.cancel()
    figures.is_over = True
    for visitor in visitors:
        visitor.close()
    return figures


async def _feed(visitors: list[Visitor], figures: Figures) -> None:
    """Each visitor speaks every 20 ms, a twentieth of them in each millisecond."""
    chunks = list(microphone())
    start_s = time.monotonic()
    step = 0
    while True:
        due_s = start_s + step * CHUNK_MS / PHASES / 1000
        late_s = time.monotonic() - due_s
        if late_s < 0:
            await asyncio.sleep(-late_s)
        elif step % PHASES == 0:
            await asyncio.sleep(0)  # behind: hear the server all the same
        if figures.is_measuring:
            figures.sent_late_ms.append((time.monotonic() - due_s) * 1000)
        frame = chunks[step // PHASES % CHUNKS]
        group = visitors[step % PHASES :: PHASES]
        for visitor in group:
            visitor.send(frame)
        if figures.is_measuring:
            figures.sent += len(group)
        step += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--settle", type=float, default=3.0, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--lead-ms", type=float, default=DEFAULT_LEAD_MS, help="server.lead_ms")
    chosen = parser.parse_args()
    figures = asyncio.run(
        crowd(chosen.url, chosen.sessions, chosen.settle, chosen.seconds, chosen.lead_ms)
    )
    print(json.dumps(_summary(figures)))


def _summary(figures: Figures) -> dict[str, float]:
    late, sent_late = figures.late_ms or [0.0], figures.sent_late_ms or [0.0]
    return {
        "frames": len(figures.late_ms),
        "late_p50_ms": percentile(late, 50),
        "late_p99_ms": percentile(late, 99),
        "late_max_ms": max(late),
        "starved": figures.starved,
        "replies": figures.replies,
        "errors": figures.errors,
        "closed": figures.closed,
        "sent": figures.sent,
        "sent_late_p99_ms": percentile(sent_late, 99),
    }


if __name__ == "__main__":
    main()
