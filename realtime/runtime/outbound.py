"""The queue to the socket, and the task that empties it. Bounded: a client must read."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from realtime.observe.metrics import Count, Metrics
from realtime.runtime.egress import Frame
from realtime.runtime.time_limit import TimeLimit
from realtime.runtime.transport import Transport, TransportClosed

log = logging.getLogger(__name__)

# Four frames are 160 ms: the socket never idles, and a cut has little to take back.
_AUDIO_FRAMES = 4
# A long response makes a few hundred events; a client that is thousands behind does not read.
_MOST_ENTRIES = 2000
_MOST_BYTES = 24 * 2**20  # room for three of the largest retrieved items
# From here on nothing more is read from the client: whoever asks for much waits for it, and only
# what nobody asked for can overflow the queue.
_CROWDED_ENTRIES = 500
_CROWDED_BYTES = 8 * 2**20
_STALL_S = 10.0  # a network that stands still for longer has mostly gone

_LAST_WORDS_S = 0.5  # what was received before a write failed has been read by then

CLOSE_STALLED = 1008  # policy violation (RFC 6455, 7.4.1)
STALLED = "client does not read: no progress for 10 s"
OVERFLOWED = "client does not read: too many events are waiting"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One frame of the socket. `text` may be made at the last moment, if need be in a thread."""

    text: str | Callable[[], str]
    size_bytes: int
    in_thread: bool = False
    frame: Frame | None = None  # of audio: what decides whether it may still leave


@dataclass(frozen=True, slots=True)
class _Series:
    """Many frames of the socket, each made when the one before has been sent."""

    texts: Iterable[str]


@dataclass(frozen=True, slots=True)
class _Close:
    code: int
    reason: str


class Outbound:
    """`is_current(lane, epoch)` is asked for every audio frame in the instant before it leaves."""

    def __init__(
        self,
        is_current: Callable[[str, int], bool],
        metrics: Metrics,
        on_room: Callable[[], None],
        on_lost: Callable[[int, str], None],
    ) -> None:
        self._is_current = is_current
        self._metrics = metrics
        self._on_room = on_room
        self._on_lost = on_lost
        self._queue: deque[_Entry | _Series | _Close] = deque()
        self._size_bytes = 0
        self._audio_frames = 0
        self._sending: Frame | None = None
        self._unsent: tuple[tuple[str, int], ...] = ()
        self._is_lost = False
        self._filled = asyncio.Event()
        self._uncrowded = asyncio.Event()
        self._uncrowded.set()

    # ---- filling -----------------------------------------------------------------------------

    def put(self, text: str | Callable[[], str], size_bytes: int, in_thread: bool = False) -> None:
        self._append(_Entry(text, size_bytes, in_thread))

    def put_series(self, texts: Iterable[str]) -> None:
        """Of what is in memory anyway: it counts as one event, however much it is."""
        if not self._is_lost:
            self._queue.append(_Series(texts))
            self._filled.set()

    def put_frame(self, frame: Frame, render: Callable[[], str]) -> None:
        self._audio_frames += 1
        self._append(_Entry(render, 4 * len(frame.samples), frame=frame))

    def put_close(self, code: int, reason: str) -> None:
        """Close the connection once everything before has been sent."""
        if not self._is_lost:
            self._queue.append(_Close(code, reason))
            self._filled.set()

    def first_stale(self, lane: str) -> Frame | None:
        """The oldest audio of the lane that waits here and may not leave any more."""
        for entry in self._queue:
            frame = entry.frame if isinstance(entry, _Entry) else None
            if frame is not None and frame.play.lane == lane and not self._may_leave(frame):
                return frame
        return None

    @property
    def has_audio_room(self) -> bool:
        return self._audio_frames < _AUDIO_FRAMES and not self._is_lost

    @property
    def unsent(self) -> tuple[tuple[str, int], ...]:
        """(item, samples) of the audio that came here and was not handed to the network."""
        return self._unsent if self._is_lost else self._count_unsent()

    @property
    def depth(self) -> int:
        return len(self._queue)

    async def uncrowded(self) -> None:
        """Wait while the client is far behind with reading; ends at the latest when it is lost."""
        await self._uncrowded.wait()

    # ---- emptying ----------------------------------------------------------------------------

    async def run(self, transport: Transport) -> None:
        """Send until the close entry, or until the client is lost."""
        limit = TimeLimit(_STALL_S)
        try:
            await self._run(transport, limit)
        finally:
            limit.close()

    async def _run(self, transport: Transport, limit: TimeLimit) -> None:
        while not self._is_lost:
            if not self._queue:
                self._filled.clear()
                await self._filled.wait()
                continue
            match self._queue.popleft():
                case _Close(code, reason):
                    self._give_up()
                    await transport.close(code, reason)
                    return
                case _Series(texts):
                    for text in texts:
                        await self._send(transport, text, limit)
                        if self._is_lost:
                            return
                case entry:
                    await self._send_entry(transport, entry, limit)

    async def _send_entry(self, transport: Transport, entry: _Entry, limit: TimeLimit) -> None:
        self._take_out(entry)
        if entry.frame is not None and not self._may_leave(entry.frame):
            self._metrics.add(Count.STALE_FRAMES_DROPPED)
            return
        self._sending = entry.frame
        await self._send(transport, await self._render(entry), limit)
        self._sending = None

    async def _send(self, transport: Transport, text: str, limit: TimeLimit) -> None:
        try:
            with limit:
                await transport.send(text)
        except TimeoutError:
            self._metrics.add(Count.CLIENTS_STALLED)
            self._lose(CLOSE_STALLED, STALLED)
        except (TransportClosed, OSError):
            self._give_up()
            # Whoever reads the socket knows how the client has ended it, in a moment.
            await asyncio.sleep(_LAST_WORDS_S)
            self._on_lost(1006, "connection lost")

    async def _render(self, entry: _Entry) -> str:
        if isinstance(entry.text, str):
            return entry.text
        if entry.in_thread:
            return await asyncio.to_thread(entry.text)
        return entry.text()

    def _append(self, entry: _Entry) -> None:
        if self._is_lost:
            return
        if len(self._queue) >= _MOST_ENTRIES or self._size_bytes + entry.size_bytes > _MOST_BYTES:
            self._metrics.add(Count.CLIENTS_STALLED)
            self._lose(CLOSE_STALLED, OVERFLOWED)
            return
        self._queue.append(entry)
        self._size_bytes += entry.size_bytes
        if self._is_crowded:
            self._uncrowded.clear()
        self._filled.set()

    def _take_out(self, entry: _Entry) -> None:
        self._size_bytes -= entry.size_bytes
        if not self._is_crowded:
            self._uncrowded.set()
        if entry.frame is not None:
            self._audio_frames -= 1
            if self._audio_frames == _AUDIO_FRAMES - 1:
                self._on_room()

    @property
    def _is_crowded(self) -> bool:
        return len(self._queue) >= _CROWDED_ENTRIES or self._size_bytes >= _CROWDED_BYTES

    def _may_leave(self, frame: Frame) -> bool:
        return self._is_current(frame.play.lane, frame.epoch)

    def _count_unsent(self) -> tuple[tuple[str, int], ...]:
        frames = [self._sending, *(getattr(entry, "frame", None) for entry in self._queue)]
        samples = Counter[str]()
        for frame in frames:
            if frame is not None:
                samples[frame.play.item_id] += len(frame.samples)
        return tuple(samples.items())

    def _give_up(self) -> None:
        self._unsent = self._count_unsent()
        self._is_lost = True
        self._queue.clear()
        self._size_bytes = 0
        self._audio_frames = 0
        self._filled.set()
        self._uncrowded.set()

    def _lose(self, code: int, reason: str) -> None:
        self._give_up()
        log.info("a client is lost: %s", reason)
        self._on_lost(code, reason)
