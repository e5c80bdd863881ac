"""A stepped model that makes sound of a known length, and its stage with a lead, for tests."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from pipelines.runtime.lead import Lead
from pipelines.runtime.slots import SlotResult, SlotState
from pipelines.runtime.stepped import SteppedStage
from pipelines.types import SpeakRequest, Urgency
from tests.pipelines.waiting import WAIT_S, check

LEAD: Lead[float] = Lead(float, limit_s=1.0, resume_s=0.5, most_s=20.0)
PIECE_S = 0.125


class Singer:
    """Makes a piece per step and slot, `late` steps after the one that began it.

    Outputs are their own length in seconds. Each step waits for a permit, and takes `step_s` on
    the clock that it turns.
    """

    def __init__(self, slots: int, late: int = 0, step_s: float = 0.05) -> None:
        self.slots = slots
        self.permits = threading.Semaphore(0)
        self.names: dict[int, str] = {}
        self.left: dict[int, int] = {}  # pieces to begin
        self.under_way: list[tuple[int, int, str]] = []  # the step at which it comes; whose
        self.batches: list[list[str]] = []
        self.now_s = 0.0
        self._late, self._step_s = late, step_s

    def open(self, slot: int, request: SpeakRequest) -> None:
        self.names[slot] = request.request_id
        self.left[slot] = 0

    def feed(self, slot: int, chunk: int | None) -> None:
        self.left[slot] += chunk or 0

    def step(self, active: Sequence[int]) -> dict[int, SlotResult[float]]:
        assert self.permits.acquire(timeout=WAIT_S)
        self.now_s += self._step_s
        self.batches.append([self.names[slot] for slot in active])
        for slot in active:
            if self.left[slot]:
                self.left[slot] -= 1
                due = len(self.batches) + self._late
                self.under_way.append((due, slot, self.names[slot]))
        made: dict[int, tuple[float, ...]] = dict.fromkeys(active, ())
        while self.under_way and self.under_way[0][0] <= len(self.batches):
            _, slot, name = self.under_way.pop(0)
            if self.names.get(slot) == name:
                made[slot] = (*made.get(slot, ()), PIECE_S)
        return {slot: SlotResult(self._state(slot), pieces) for slot, pieces in made.items()}

    def _state(self, slot: int) -> SlotState:
        is_busy = self.left[slot] or any(slot == other for _, other, _ in self.under_way)
        return SlotState.RUNNING if is_busy else SlotState.STARVED

    def close(self, slot: int) -> None:
        self.names.pop(slot, None)
        self.left.pop(slot, None)

    def allow(self, steps: int) -> None:
        for _ in range(steps):
            self.permits.release()

    def turns(self, name: str) -> int:
        return sum(name in batch for batch in self.batches)


def request(name: str, urgency: Urgency = Urgency.FIRST_AUDIO) -> SpeakRequest:
    return SpeakRequest(name, "voice", urgency)


@asynccontextmanager
async def started(model: Singer, **options):
    stage = SteppedStage[SpeakRequest, int, float](
        "tts", lambda progress: model, None, lead=LEAD, clock_s=lambda: model.now_s, **options
    )
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        model.allow(10_000)
        await stage.close()
        assert model.names == {} and stage.active == 0


def on_stage(
    script: Callable[[Singer, SteppedStage], Awaitable[None]], slots: int, **options: int
) -> None:
    """Run a script with a stage whose steps need not be allowed."""

    async def main() -> None:
        model = Singer(slots)
        model.allow(1000)
        async with started(model, **options) as stage:
            await script(model, stage)

    check(main)
