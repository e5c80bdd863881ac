"""The only caller of the machine: events in, effects out, and the audio that is due.

`handle` is synchronous. From the call until its return one event is stepped, its effects are
carried out and the frames that are due leave, with nothing in between. So events have one order,
there is no queue to bound, and whoever calls sees the settings that its event has made.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol

from pipelines.types import Urgency
from realtime.runtime.clock import Clock
from realtime.runtime.conversation import Conversation
from realtime.runtime.egress import Egress
from realtime.runtime.outlet import Outlet
from realtime.runtime.performer import Performer
from realtime.runtime.work import Works
from realtime.session.effects import Effect
from realtime.session.events import AudioLeaving, Disconnected, EgressDrained, Event, Tick
from realtime.session.states import Lifecycle

# A deadline this close counts as reached: sums of floats must not make a timer run twice.
_ROUNDING_MS = 0.01
# With less than this ahead of the listener a reply goes before those that have more.
_DRY_MS = 1000.0

GONE = Disconnected(resumable=False)


class Recorder(Protocol):
    def write(self, now_ms: float, event: Event, effects: list[Effect]) -> None: ...


class Driver:
    """One session's actor. `run` ends when the conversation is closed or the client is gone."""

    def __init__(
        self,
        *,
        conversation: Conversation,
        clock: Clock,
        performer: Performer,
        egress: Egress,
        works: Works,
        outlet: Outlet,
        recorder: Recorder | None = None,
    ) -> None:
        self._conversation = conversation
        self._clock = clock
        self._performer = performer
        self._egress = egress
        self._works = works
        self._outlet = outlet
        self._recorder = recorder
        self._wake = asyncio.Event()
        self._sleeps_until_ms = -math.inf  # awake
        self._now_ms = -math.inf
        self._is_acting = False
        self._loss: Disconnected | None = None  # not told of yet
        self._speaking: dict[str, None] = {}  # replies whose frames leave, in order
        self._crash: Exception | None = None
        self.is_over = False

    def handle(self, event: Event) -> None:
        """Step one event. After the end of the session nothing happens any more."""
        self._act(lambda: self._step(event, self._time()))

    def lose_client(self, loss: Disconnected = GONE) -> None:
        """The socket is gone. May be called from anywhere, effects included."""
        self._loss = loss
        self.wake()

    def settle_loss(self) -> None:
        """Step the loss that was told of, if it has not been stepped yet."""
        loss, self._loss = self._loss, None
        if loss is not None:
            self.handle(loss)
            self.is_over = self.is_over or not loss.resumable

    def wake(self) -> None:
        """Something has changed that may let frames leave."""
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is due before the clock moves on."""
        due_ms = self._next_due_ms()
        return not self._wake.is_set() and (due_ms is None or due_ms > self._clock.now_ms())

    async def run(self) -> None:
        """Keep the deadlines until the end. Raises what the machine or an effect raised."""
        while not self.is_over:
            self._wake.clear()
            due_ms = self._next_due_ms()
            self._sleeps_until_ms = math.inf if due_ms is None else due_ms
            if self._loss is None:
                await self._clock.wait(self._wake, due_ms)
            self._sleeps_until_ms = -math.inf
            if self._loss is not None:
                self.settle_loss()
            elif not self.is_over:
                self._keep_time()
        if self._crash is not None:
            raise self._crash

    def _act(self, act: Callable[[], None] | None) -> None:
        """Do one thing whole, with the frames that it lets leave."""
        if self.is_over:
            return
        if self._is_acting:
            raise RuntimeError("an effect of one event may not deliver another")
        self._is_acting = True
        try:
            if act is not None:
                act()
            self._pump()
        except Exception as error:
            # The caller is a reader or a stage's task: this is not its failure.
            self._crash = error
            self.is_over = True
        finally:
            self._is_acting = False
        self._reschedule()

    def _keep_time(self) -> None:
        deadline_ms = self._conversation.next_deadline_ms()
        if deadline_ms is None or deadline_ms > self._clock.now_ms() + _ROUNDING_MS:
            self._act(None)
        else:
            self._now_ms = max(self._now_ms, deadline_ms)
            self.handle(Tick())

    def _time(self) -> float:
        """Now, never earlier than it was before."""
        self._now_ms = max(self._now_ms, self._clock.now_ms())
        return self._now_ms

    def _step(self, event: Event, now_ms: float) -> None:
        effects = self._conversation.step(event, now_ms)
        if self._recorder is not None:
            self._recorder.write(now_ms, event, effects)
        for effect in effects:
            self._performer.perform(effect)
        if self._conversation.lifecycle is Lifecycle.CLOSED:
            self.is_over = True

    def _pump(self) -> None:
        """Let everything leave that is due, and tell the machine of it before and after."""
        now_ms = self._time()
        while not self.is_over:
            frame = None
            if self._outlet.has_audio_room:
                frame = self._egress.peek(now_ms + _ROUNDING_MS)
            if frame is not None:
                self._speaking[frame.play.request] = None
                self._step(AudioLeaving(frame.play.request, frame.total), now_ms)
                if not self._egress.commit(frame, now_ms):
                    break
                self._performer.send(frame)
            drained = self._egress.take_drained()
            for request in drained:
                self._speaking.pop(request, None)
                self._step(EgressDrained(request), now_ms)
            if frame is None and not drained:
                break
        self._rank(now_ms)

    def _rank(self, now_ms: float) -> None:
        """A reply that has been heard is urgent only while its listener is about to run dry."""
        for request in list(self._speaking):
            cushion_ms = self._egress.cushion_ms(request, now_ms)
            if cushion_ms is None:
                del self._speaking[request]
            elif cushion_ms < _DRY_MS:
                self._works.hurry(request, Urgency.RUNNING_DRY)
            else:
                self._works.hurry(request, Urgency.STEADY)

    def _next_due_ms(self) -> float | None:
        deadline_ms = self._conversation.next_deadline_ms()
        frame_ms = self._egress.next_due_ms() if self._outlet.has_audio_room else None
        due = [at_ms for at_ms in (deadline_ms, frame_ms) if at_ms is not None]
        return min(due, default=None)

    def _reschedule(self) -> None:
        """Wake the timer if something is due before it would wake by itself."""
        due_ms = self._next_due_ms()
        if self.is_over or (due_ms is not None and due_ms < self._sleeps_until_ms):
            self._wake.set()
