"""From the socket to the machine: client messages strictly in order, audio at its own time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np

from pipelines.types import HEARING_RATE_HZ
from realtime.audio.quantise import IntSamples, to_int16
from realtime.audio.resample import HearingResampler
from realtime.protocol.decode import decode
from realtime.protocol.formats import bytes_per_sample, decode_audio, recording_format
from realtime.protocol.messages import AppendAudio, ClientMessage, CreateItemWithAudio, Ping
from realtime.protocol.opus import BadPacket
from realtime.runtime.conversation import SessionView
from realtime.runtime.ears import Ears
from realtime.runtime.hearing import Hearing
from realtime.runtime.item_audio import ItemAudio
from realtime.runtime.pacing import Pacing
from realtime.runtime.transport import Transport, TransportClosed
from realtime.session.events import ClientClear, ClientCommit, ClientRefused, Event
from realtime.session.settings import AudioFormat

_QUEUED_MESSAGES = 64  # a second and a half of 25 ms appends
_QUEUED_BYTES = 8 * 2**20  # one larger message is taken when nothing else waits
_DECODE_INLINE_BYTES = 128 * 2**10  # below that a thread costs more than the decoding


class Intake:
    """Decoded messages between reader and ingress. A full queue stops reading the socket."""

    def __init__(self) -> None:
        self._queue: deque[tuple[ClientMessage, int]] = deque()
        self._size_bytes = 0
        self._changed = asyncio.Event()

    async def put(self, message: ClientMessage, size_bytes: int) -> None:
        while self._queue and (
            len(self._queue) >= _QUEUED_MESSAGES or self._size_bytes + size_bytes > _QUEUED_BYTES
        ):
            self._changed.clear()
            await self._changed.wait()
        self._queue.append((message, size_bytes))
        self._size_bytes += size_bytes
        self._changed.set()

    @property
    def is_empty(self) -> bool:
        return not self._queue

    async def get(self) -> ClientMessage:
        while not self._queue:
            self._changed.clear()
            await self._changed.wait()
        message, size_bytes = self._queue.popleft()
        self._size_bytes -= size_bytes
        self._changed.set()
        return message


async def read_messages(
    transport: Transport, intake: Intake, on_first: Callable[[], None] = lambda: None
) -> None:
    """Decode frames until the client has gone. Large ones are decoded in a thread."""
    is_first = True
    while True:
        try:
            frame = await transport.receive()
        except (TransportClosed, OSError):
            return
        if frame is None:
            return
        if is_first:
            is_first = False
            on_first()
        if len(frame) > _DECODE_INLINE_BYTES:
            message = await asyncio.to_thread(decode, frame)
        else:
            message = decode(frame)
        await intake.put(message, len(frame))


class Ingress:
    """Handles one message after another.

    deliver: steps the machine; the settings it has changed are in `view()` when it returns.
    pacing: how fast the client may go. answer: answers a ping of this name.
    """

    def __init__(
        self,
        *,
        ears: Ears,
        hearing: Hearing,
        items: ItemAudio,
        deliver: Callable[[Event], None],
        view: Callable[[], SessionView],
        pacing: Pacing,
        answer: Callable[[str | None], None],
    ) -> None:
        self._ears = ears
        self._hearing = hearing
        self._items = items
        self._deliver = deliver
        self._view = view
        self._pacing = pacing
        self._answer = answer

    async def run(self, intake: Intake, ready: Callable[[], Awaitable[None]]) -> None:
        """`ready` is awaited before each message: while the client does not read its answers."""
        while True:
            message = await intake.get()
            await ready()
            await self._pacing.wait_for(message)
            await self.handle(message)
            if not intake.is_empty:
                # A flood of messages must not keep everybody else from running.
                await asyncio.sleep(0)

    async def handle(self, message: ClientMessage) -> None:
        match message:
            case AppendAudio():
                await self._hear(message)
            case ClientCommit() | ClientClear():
                # The last samples are heard before the buffer is closed.
                await self._ears.flush()
                self._deliver(replace(message, position=self._hearing.position))
            case CreateItemWithAudio():
                self._deliver(await self._file_audio(message))
            case Ping(name):
                self._answer(name)
            case _:
                self._deliver(message)

    async def _hear(self, message: AppendAudio) -> None:
        try:
            await self._ears.hear(message.audio, self._view().input_format)
        except BadPacket as error:
            kind, code = "invalid_request_error", "invalid_value"
            self._deliver(ClientRefused(message.event_id, kind, code, str(error), "audio"))

    async def _file_audio(self, message: CreateItemWithAudio) -> Event:
        """Keep an item's own audio under its handles; the event learns how long it is."""
        item = message.event.item
        parts = list(item.parts)
        for audio in message.audio:
            samples = await asyncio.to_thread(_hear_whole, audio.audio, self._view().input_format)
            self._items.append(audio.handle, samples, HEARING_RATE_HZ)
            audio_ms = len(samples) * 1000 // HEARING_RATE_HZ
            parts[audio.part_index] = replace(parts[audio.part_index], audio_ms=audio_ms)
        return replace(message.event, item=replace(item, parts=tuple(parts)))


def _hear_whole(audio: bytes, audio_format: AudioFormat) -> IntSamples:
    """A recording in wire bytes to int16 at 16 kHz; half a sample at the end is none.

    In a session of packets it is PCM, as `recording_format` has it.
    """
    audio_format = recording_format(audio_format)
    whole = bytes_per_sample(audio_format)
    samples = decode_audio(audio[: len(audio) - len(audio) % whole], audio_format)
    resampler = HearingResampler(audio_format.rate_hz, HEARING_RATE_HZ)
    return to_int16(np.concatenate([resampler.process(samples), resampler.flush()]))
