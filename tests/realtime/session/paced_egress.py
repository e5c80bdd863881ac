"""The shell's egress as the machine may assume it: lanes, epochs, holding, 40 ms frames, pacing."""

from __future__ import annotations

from dataclasses import dataclass, field

from realtime.session.effects import CutLane, HoldLane, PlayReply

FRAME_MS = 40
LEAD_MS = 1000.0


@dataclass(slots=True)
class Outgoing:
    """One reply's audio. `played`: (when its listener hears it, samples), frame by frame."""

    rate_hz: int
    produced: int = 0
    sent: int = 0
    is_finished: bool = False
    play: PlayReply | None = None
    played: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    silenced_at_ms: float | None = None

    def heard_samples(self, now_ms: float) -> float:
        """What a listener who plays frame after frame has heard."""
        until_ms = now_ms if self.silenced_at_ms is None else min(now_ms, self.silenced_at_ms)
        heard = 0.0
        for start_ms, samples in self.played:
            heard += min(max(0.0, (until_ms - start_ms) * self.rate_hz / 1000), samples)
        return heard


@dataclass(slots=True)
class _Lane:
    epoch: int = 0
    is_held: bool = False
    queue: list[str] = field(default_factory=list[str])
    heard_until_ms: float = 0.0


class PacedEgress:
    def __init__(self) -> None:
        self.replies: dict[str, Outgoing] = {}
        self.lanes: dict[str, _Lane] = {}
        self.heard: dict[str, Outgoing] = {}  # by item, also of replies that are over

    def _lane(self, name: str) -> _Lane:
        return self.lanes.setdefault(name, _Lane())

    def open(self, request: str, rate_hz: int) -> None:
        self.replies[request] = Outgoing(rate_hz)

    def add(self, request: str, samples: int) -> None:
        if request in self.replies:
            self.replies[request].produced += samples

    def finish(self, request: str) -> None:
        reply = self.replies.get(request)
        if reply is not None:
            reply.is_finished = True
            if not reply.produced:
                self.drop(request)

    def attach(self, play: PlayReply) -> None:
        lane, reply = self._lane(play.lane), self.replies.get(play.request)
        assert play.epoch == lane.epoch, f"{play} does not bear its lane's epoch {lane.epoch}"
        if reply is not None:
            assert reply.play is None, f"{play.request} is played twice"
            reply.play = play
            lane.queue.append(play.request)
            self.heard[play.item_id] = reply

    def hold(self, hold: HoldLane, now_ms: float) -> PlayReply | None:
        """Send nothing more; the reply returned sends its fade at once."""
        lane = self._lane(hold.lane)
        assert not lane.is_held
        lane.is_held = True
        reply = self.replies.get(hold.request or "")
        if not hold.fade_samples or reply is None:
            return None
        assert hold.fade_samples <= reply.produced - reply.sent, f"{hold} fades what is not there"
        start_ms = max(lane.heard_until_ms, now_ms)
        reply.played.append((start_ms, hold.fade_samples))
        reply.sent += hold.fade_samples
        lane.heard_until_ms = start_ms + hold.fade_samples * 1000 / reply.rate_hz
        return reply.play

    def release(self, lane: str) -> None:
        assert self._lane(lane).is_held
        self._lane(lane).is_held = False

    def drop(self, request: str) -> None:
        reply = self.replies.pop(request, None)
        if reply is not None and reply.play is not None:
            self._lane(reply.play.lane).queue.remove(request)

    def cut(self, cut: CutLane, now_ms: float) -> PlayReply | None:
        """Drop what is older than the cut; the reply returned sends its fade at once."""
        lane = self._lane(cut.lane)
        reply = self.replies.get(cut.request or "")
        if cut.fade_samples:
            assert reply is not None and reply.play is not None, f"{cut} fades nothing"
            assert cut.fade_samples <= reply.produced - reply.sent, f"{cut} fades what is not there"
            reply.sent += cut.fade_samples
        assert cut.epoch > lane.epoch, f"{cut} does not raise the epoch {lane.epoch}"
        lane.epoch, lane.is_held, lane.heard_until_ms = cut.epoch, False, 0.0
        for heard in self.heard.values():
            if heard.play is not None and heard.play.lane == cut.lane:
                heard.silenced_at_ms = heard.silenced_at_ms or now_ms
        for request in list(lane.queue):
            self.drop(request)
        return reply.play if reply is not None and cut.fade_samples else None

    def next_frame(self) -> tuple[float, str, int] | None:
        """(when it may leave, request, the reply's samples up to its end) of the next frame."""
        due: list[tuple[float, str, int]] = []
        for lane in self.lanes.values():
            if lane.is_held or not lane.queue:
                continue
            reply = self.replies[lane.queue[0]]
            whole = reply.rate_hz * FRAME_MS // 1000
            unsent = reply.produced - reply.sent
            if unsent >= whole or (reply.is_finished and unsent):
                samples = min(whole, unsent)
                at_ms = lane.heard_until_ms - (LEAD_MS - samples * 1000 / reply.rate_hz)
                due.append((at_ms, lane.queue[0], reply.sent + samples))
        return min(due, default=None)

    def commit(self, request: str, total: int, now_ms: float) -> bool:
        """The frame leaves. False: the machine's answer to `AudioLeaving` took it back."""
        reply = self.replies.get(request)
        if reply is None or reply.play is None or self._lane(reply.play.lane).is_held:
            return False
        lane = self._lane(reply.play.lane)
        assert reply.play.epoch == lane.epoch, f"{request} leaves after its epoch"
        samples = total - reply.sent
        start_ms = max(lane.heard_until_ms, now_ms)
        reply.played.append((start_ms, samples))
        reply.sent = total
        lane.heard_until_ms = start_ms + samples * 1000 / reply.rate_hz
        return True

    def take_drained(self) -> list[str]:
        fronts = [lane.queue[0] for lane in self.lanes.values() if lane.queue]
        drained = [
            request
            for request in fronts
            if self.replies[request].is_finished
            and self.replies[request].sent == self.replies[request].produced
        ]
        for request in drained:
            self.drop(request)
        return drained
