"""A client of the realtime protocol that speaks at the pace of speech.

It is a program on the wire: it knows the protocol's JSON and nothing of the server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import numpy as np
import numpy.typing as npt
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from realtime.commands.addresses import realtime_url
from realtime.commands.errors import USAGE, CommandError

WIRE_RATE_HZ = 24_000  # audio/pcm of the protocol: 16-bit little-endian mono
CHUNK_MS = 20  # what browsers and telephones send at a time
OPEN_TIMEOUT_S = 10.0
WRONG_NAME_CODES = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH

Pcm = npt.NDArray[np.int16]


class ConversationEnded(CommandError):
    """The connection is closed; the message says why."""


class WireClient:
    """One conversation. `received` and `spoken_at_ms` share the clock of `now_ms`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._fed_samples = 0
        self._feed_origin_ms: float | None = None

    @staticmethod
    def now_ms() -> float:
        return time.monotonic() * 1000

    async def send(self, type_: str, **fields: Any) -> None:
        try:
            await self._socket.send(json.dumps({"type": type_, **fields}))
        except ConnectionClosed as closed:
            raise _ended(closed) from closed

    async def received(self) -> AsyncIterator[tuple[float, dict[str, Any]]]:
        """Server events with their arrival in ms, until the connection closes."""
        try:
            async for message in self._socket:
                yield self.now_ms(), json.loads(message)
        except ConnectionClosed as closed:
            raise _ended(closed) from closed

    async def append(self, pcm: Pcm) -> None:
        """Send audio at once."""
        audio = base64.b64encode(pcm.astype("<i2").tobytes()).decode()
        await self.send("input_audio_buffer.append", audio=audio)

    async def feed(self, pcm: Pcm) -> None:
        """Send audio (int16 [n] at WIRE_RATE_HZ) as a microphone would: a chunk when it is over.

        Calls follow each other without a gap; deadlines are absolute, so that delays do not add up.
        """
        if self._feed_origin_ms is None:
            self._feed_origin_ms = self.now_ms()
        chunk_samples = WIRE_RATE_HZ * CHUNK_MS // 1000
        for start in range(0, len(pcm), chunk_samples):
            chunk = pcm[start : start + chunk_samples]
            self._fed_samples += len(chunk)
            due_ms = self.spoken_at_ms(self._fed_samples)
            await asyncio.sleep(max(0.0, due_ms - self.now_ms()) / 1000)
            await self.append(chunk)

    async def feed_silence(self, is_over: Callable[[], bool], limit_ms: int) -> None:
        """Feed silence until `is_over()` or the limit, as an open microphone does."""
        chunk = np.zeros(WIRE_RATE_HZ * CHUNK_MS // 1000, np.int16)
        for _ in range(limit_ms // CHUNK_MS):
            if is_over():
                return
            await self.feed(chunk)

    @property
    def fed_samples(self) -> int:
        return self._fed_samples

    def spoken_at_ms(self, position_samples: int) -> float:
        """When the sample at this position of all fed audio was spoken."""
        origin_ms = self.now_ms() if self._feed_origin_ms is None else self._feed_origin_ms
        return origin_ms + position_samples * 1000 / WIRE_RATE_HZ

    async def close(self) -> None:
        await self._socket.close()


@asynccontextmanager
async def open_client(url: str, key: str | None = None) -> AsyncIterator[WireClient]:
    """Connect to the server at `url`, which is as `realtime_url` takes it.

    Raises CommandError, whose message says what to do, when no conversation comes about.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url, host = realtime_url(url)
    is_local = host in ("127.0.0.1", "localhost", "::1")
    try:
        socket = await connect(
            url,
            additional_headers=headers,
            open_timeout=OPEN_TIMEOUT_S,
            compression=None,
            max_size=None,
            proxy=None if is_local else True,
        )
    except InvalidURI as error:
        raise CommandError(f"{url} is no address of a server: {error}", USAGE) from error
    except InvalidStatus as error:
        raise CommandError(_refusal(url, error, key)) from error
    except InvalidHandshake as error:
        raise CommandError(f"{url} does not speak the realtime protocol: {error}") from error
    except ssl.SSLError as error:
        raise CommandError(_distrust(url, error)) from error
    except (OSError, TimeoutError, EOFError) as error:
        raise CommandError(
            f"no server answers at {url} ({error or 'timed out'}); start one with: make serve"
        ) from error
    async with socket:
        yield WireClient(socket)


def _distrust(url: str, error: ssl.SSLError) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f"{url} does not speak TLS as wss:// needs it ({error.reason}); is it ws://?"
    why = f"the certificate of {url} is not trusted ({error.verify_message})"
    if error.verify_code in WRONG_NAME_CODES:
        return f"{why}: use a name that it holds"
    return f"{why}: name the file of the authority that signed it, or its own, in $SSL_CERT_FILE"


def _ended(closed: ConnectionClosed) -> ConversationEnded:
    frame = closed.rcvd
    reason = f"{frame.code} {frame.reason}".strip() if frame else "the connection was lost"
    return ConversationEnded(f"the server ended the conversation: {reason}")


def _refusal(url: str, error: InvalidStatus, key: str | None) -> str:
    status = error.response.status_code
    if status == HTTPStatus.UNAUTHORIZED:
        if key is None:
            return f"{url} wants a key; give it with --key or in $PARLEY_KEY"
        return f"{url} does not accept this key; give another with --key or in $PARLEY_KEY"
    try:
        message = json.loads(error.response.body or b"")["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = error.response.reason_phrase
    return f"{url} refused the connection ({status}): {message}"
