"""Replies' audio on its way out: lanes, epochs, holding, pacing. Pure: no clock, no socket.

A lane plays the replies attached to it one after another. Every frame carries the lane's epoch;
a cut raises the epoch, and nothing that bears an older one may leave any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from realtime.audio.fade import fade_in, fade_out
from realtime.audio.quantise import FloatSamples
from realtime.session.effects import VOICE_LANE, PlayReply
from realtime.session.settings import AudioFormat
from realtime.session.side import MOST_AT_ONCE

FRAME_MS = 40  # short enough to stop quickly, long enough to keep the overhead of frames small
# Hides the jitter of an ordinary network. A listener hears as much more after an interruption.
DEFAULT_LEAD_MS = 120.0
_FADE_IN_MS = 5  # long enough to hide a click, too short to hear
# The replies that may run beside the voice, and the voice: above that old lanes are looked for.
_MOST_LANES = MOST_AT_ONCE + 1
# Unsent audio of a reply, held drafts included. What an interruption throws away was made for
# nothing; what is here bridges a stage that is late, on few cores by seconds.
_ENOUGH_S = 3.0  # no more is made
_SPARSE_S = 2.0  # more is made again, well before anybody runs dry


@dataclass(frozen=True, slots=True)
class Frame:
    """Samples of one reply, float32 [n] at the format's rate. `total`: the reply's up to here.

    is_end: silence follows, for now or for good.
    """

    play: PlayReply
    epoch: int
    format: AudioFormat
    samples: FloatSamples
    total: int
    is_end: bool = False

    @property
    def duration_ms(self) -> float:
        return len(self.samples) * 1000.0 / self.format.rate_hz


@dataclass(slots=True)
class _Reply:
    """One reply's audio that has not left yet."""

    format: AudioFormat
    pieces: deque[FloatSamples] = field(default_factory=deque[FloatSamples])
    unsent: int = 0
    sent: int = 0
    is_finished: bool = False
    play: PlayReply | None = None
    has_room: bool = True
    on_room: Callable[[], None] = lambda: None

    def peek(self, count: int) -> FloatSamples:
        """The next samples, at most `count`."""
        wanted = list[FloatSamples]()
        for piece in self.pieces:
            if count <= 0:
                break
            wanted.append(piece[:count])
            count -= len(wanted[-1])
        return np.concatenate(wanted) if wanted else np.zeros(0, dtype=np.float32)

    def advance(self, count: int) -> None:
        self.unsent -= count
        self.sent += count
        while count:
            piece = self.pieces.popleft()
            if len(piece) > count:
                self.pieces.appendleft(piece[count:])
                count = 0
            else:
                count -= len(piece)
        self.update_room()

    def update_room(self) -> None:
        if self.has_room:
            self.has_room = self.unsent < _ENOUGH_S * self.format.rate_hz
        elif self.unsent <= _SPARSE_S * self.format.rate_hz:
            self.has_room = True
            self.on_room()


@dataclass(slots=True)
class _Lane:
    """epoch: older ones are dead. heard_until_ms: when a listener who plays runs dry."""

    epoch: int = 0
    is_held: bool = False
    fades_in: bool = False  # it goes on after a silence in mid-word
    queue: deque[str] = field(default_factory=deque[str])
    heard_until_ms: float = 0.0


class Egress:
    """`lead_ms`: how far the sending may run ahead of the playing; None: no pacing."""

    def __init__(self, lead_ms: float | None = DEFAULT_LEAD_MS) -> None:
        self._lead_ms = lead_ms
        self._replies: dict[str, _Reply] = {}
        self._lanes: dict[str, _Lane] = {}

    # ---- from the stage ----------------------------------------------------------------------

    def open(
        self, request: str, audio_format: AudioFormat, on_room: Callable[[], None] = lambda: None
    ) -> None:
        """on_room: called when a reply that had no room has some again; it must not call back."""
        self._replies[request] = _Reply(audio_format, on_room=on_room)

    def add(self, request: str, samples: FloatSamples) -> None:
        """float32 [n] at the wire rate. A dropped reply ignores it."""
        reply = self._replies.get(request)
        if reply is not None and len(samples):
            reply.pieces.append(samples)
            reply.unsent += len(samples)
            reply.update_room()

    def finish(self, request: str) -> None:
        """No more audio comes. A reply that made none is forgotten: there is nothing to play."""
        reply = self._replies.get(request)
        if reply is not None:
            reply.is_finished = True
            if not reply.unsent and not reply.sent:
                self.drop(request)

    def has_room(self, request: str) -> bool:
        """Whether the listener wants more; a reply that nobody hears makes none wait."""
        reply = self._replies.get(request)
        return reply is None or reply.has_room

    # ---- from the machine --------------------------------------------------------------------

    def attach(self, play: PlayReply) -> None:
        """Queue a reply on a lane. An epoch older than the lane's own is dead already."""
        lane = self._lane(play.lane)
        reply = self._replies.get(play.request)
        if reply is None or reply.play is not None or play.epoch < lane.epoch:
            return
        reply.play = play
        lane.queue.append(play.request)

    def hold(self, lane_name: str, request: str | None = None, samples: int = 0) -> Frame | None:
        """Let nothing leave; the frame returned fades what sounded out."""
        lane = self._lane(lane_name)
        lane.is_held = True
        fade = self._fade(request, lane.epoch, samples)
        if fade is not None:
            self._replies[fade.play.request].advance(len(fade.samples))
            lane.heard_until_ms += fade.duration_ms
            lane.fades_in = True
        return fade

    def release(self, lane: str) -> None:
        self._lane(lane).is_held = False

    def drop(self, request: str) -> None:
        """The reply was aborted: its unsent audio is gone."""
        reply = self._replies.pop(request, None)
        if reply is not None:
            reply.on_room()
            if reply.play is not None:
                self._lane(reply.play.lane).queue.remove(request)

    def cut(
        self, lane_name: str, epoch: int, request: str | None, fade_samples: int
    ) -> Frame | None:
        """Raise the epoch, drop what is older; the frame returned fades the cut reply out."""
        lane = self._lanes[lane_name] = self._lanes.pop(lane_name, None) or _Lane()  # the latest
        fade = self._fade(request, epoch, fade_samples)
        lane.epoch = max(lane.epoch, epoch)
        lane.is_held = lane.fades_in = False
        lane.heard_until_ms = 0.0  # the listener throws away what was sent
        for name in list(lane.queue):
            old = self._replies[name]
            if old.play is not None and old.play.epoch < lane.epoch:
                self.drop(name)
        if len(self._lanes) > _MOST_LANES:
            self._forget_cut_lanes()
        return fade

    def is_current(self, lane: str, epoch: int) -> bool:
        """Whether a frame that bears this epoch may still leave."""
        return epoch >= self._lane(lane).epoch

    # ---- to the listener ---------------------------------------------------------------------

    def next_due_ms(self) -> float | None:
        """When the next frame may leave; in the past if it may now, None if there is none."""
        due = [at_ms for _, at_ms in self._candidates()]
        return min(due, default=None)

    def peek(self, now_ms: float) -> Frame | None:
        """The frame that is due, or None. It leaves with `commit`."""
        due = min(self._candidates(), key=lambda pair: pair[1], default=None)
        if due is None or due[1] > now_ms:
            return None
        reply = self._replies[due[0]]
        assert reply.play is not None  # only attached replies are candidates
        samples = reply.peek(_frame_samples(reply.format))
        if self._lane(reply.play.lane).fades_in:
            samples = fade_in(samples, reply.format.rate_hz * _FADE_IN_MS // 1000)
        total = reply.sent + len(samples)
        is_end = reply.is_finished and len(samples) == reply.unsent
        return Frame(reply.play, reply.play.epoch, reply.format, samples, total, is_end)

    def commit(self, frame: Frame, now_ms: float) -> bool:
        """The frame leaves now. False: meanwhile it was cut, held or dropped, and stays."""
        lane = self._lane(frame.play.lane)
        reply = self._replies.get(frame.play.request)
        if reply is None or lane.is_held or not self.is_current(frame.play.lane, frame.epoch):
            return False
        reply.advance(len(frame.samples))
        lane.fades_in = False
        lane.heard_until_ms = max(lane.heard_until_ms, now_ms) + frame.duration_ms
        if len(self._lanes) > _MOST_LANES:
            self._forget_lanes(now_ms)
        return True

    def take_drained(self) -> list[str]:
        """Replies that are finished and whose last sample has left, each one once."""
        drained = [
            lane.queue[0]
            for lane in self._lanes.values()
            if lane.queue and self._is_drained(lane.queue[0])
        ]
        for request in drained:
            self.drop(request)
        return drained

    def cushion_ms(self, request: str, now_ms: float) -> float | None:
        """How long the listener is provided for; None: nothing of this reply has left yet."""
        reply = self._replies.get(request)
        if reply is None or reply.play is None or not reply.sent:
            return None
        ahead_ms = max(0.0, self._lane(reply.play.lane).heard_until_ms - now_ms)
        return ahead_ms + reply.unsent * 1000.0 / reply.format.rate_hz

    @property
    def open_replies(self) -> int:
        return len(self._replies)

    @property
    def open_lanes(self) -> int:
        return len(self._lanes)

    def _fade(self, request: str | None, epoch: int, count: int) -> Frame | None:
        reply = self._replies.get(request) if request is not None else None
        if reply is None or reply.play is None or count <= 0 or not reply.unsent:
            return None
        samples = fade_out(reply.peek(count))
        total = reply.sent + len(samples)
        return Frame(reply.play, epoch, reply.format, samples, total, is_end=True)

    def _lane(self, name: str) -> _Lane:
        return self._lanes.setdefault(name, _Lane())

    def _forget_lanes(self, now_ms: float) -> None:
        """Drop lanes that have played out and were never cut: they are as new ones."""
        for name, lane in list(self._lanes.items()):
            is_new = not lane.queue and not lane.is_held and not lane.epoch
            if is_new and lane.heard_until_ms <= now_ms:
                del self._lanes[name]

    def _forget_cut_lanes(self) -> None:
        """Of lanes that were cut, only the latest may have frames under way that are stale."""
        cut = [name for name, lane in self._lanes.items() if lane.epoch and not lane.queue]
        for name in cut[:-_MOST_LANES]:
            if name != VOICE_LANE:
                del self._lanes[name]

    def _is_drained(self, request: str) -> bool:
        reply = self._replies[request]
        return reply.is_finished and not reply.unsent

    def _candidates(self) -> list[tuple[str, float]]:
        """(request, when its next frame may leave) of every lane that has one."""
        due = list[tuple[str, float]]()
        for lane in self._lanes.values():
            if lane.is_held or not lane.queue:
                continue
            reply = self._replies[lane.queue[0]]
            whole = _frame_samples(reply.format)
            if reply.unsent >= whole or (reply.is_finished and reply.unsent):
                count = min(whole, reply.unsent)
                at_ms = -1.0
                if self._lead_ms is not None:
                    duration_ms = count * 1000.0 / reply.format.rate_hz
                    # A frame must be there before the one in front of it has been played.
                    at_ms = lane.heard_until_ms - max(0.0, self._lead_ms - duration_ms)
                due.append((lane.queue[0], at_ms))
        return due


def _frame_samples(audio_format: AudioFormat) -> int:
    return audio_format.rate_hz * FRAME_MS // 1000
