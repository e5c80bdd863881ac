from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.slots import SlotResult, SlotState
from pipelines.runtime.stepped import SteppedStage
from pipelines.types import SpeakRequest, StageError, Urgency
from tests.pipelines.waiting import check, until

WAIT_S = 5.0


class Speller:
    """Spells what it is fed, one character per step and slot; checks its caller on the way."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.gate = threading.Semaphore(0)  # one permit per step
        self.open_slots: dict[int, str] = {}
        self.waiting: dict[int, list[str]] = {}
        self.batches: list[list[str]] = []
        self.inside = threading.Event()
        self.fail_on = ""

    def open(self, slot: int, request: SpeakRequest) -> None:
        assert slot not in self.open_slots and 0 <= slot < self.slots
        if request.request_id == "refused":
            raise ValueError("cannot open")
        self.open_slots[slot] = request.request_id
        self.waiting[slot] = []

    def feed(self, slot: int, chunk: str | None) -> None:
        self.waiting[slot] += list(chunk or "")

    def step(self, active: Sequence[int]) -> dict[int, SlotResult[str]]:
        self.inside.set()
        assert self.gate.acquire(timeout=WAIT_S)
        self.inside.clear()
        names = [self.open_slots[slot] for slot in active]
        self.batches.append(names)
        if self.fail_on in names:
            raise ValueError("step failed")
        return {slot: self._spell(slot) for slot in active}

    def _spell(self, slot: int) -> SlotResult[str]:
        if not self.waiting[slot]:
            return SlotResult(SlotState.STARVED)
        out = self.waiting[slot].pop(0)
        if out == ".":
            return SlotResult(SlotState.ENDED)
        state = SlotState.RUNNING if self.waiting[slot] else SlotState.STARVED
        return SlotResult(state, (out,))

    def close(self, slot: int) -> None:
        self.open_slots.pop(slot, None)
        self.waiting.pop(slot, None)

    def free_run(self) -> None:
        self.gate.release(100_000)


def request(name: str, urgency: Urgency = Urgency.FIRST_AUDIO) -> SpeakRequest:
    return SpeakRequest(name, "voice", urgency)


@asynccontextmanager
async def started(model: Speller, **options):
    stage = SteppedStage[SpeakRequest, str, str](
        "tts", lambda progress: model, options.pop("cpu", None), **options
    )
    await stage.start(lambda line: None)
    try:
        yield stage
    finally:
        model.free_run()
        await stage.close()
        assert model.open_slots == {}
        assert stage.active == 0


def test_a_model_prepares_before_anything_is_fed() -> None:
    """A voice reads its reference while the first words are still being written."""

    async def main() -> None:
        model = Speller(slots=1)
        async with started(model) as stage:
            stage.open(request("early"))
            model.gate.release()
            await until(lambda: model.batches == [["early"]])
            stage.open(request("without a slot"))

    check(main)


@pytest.mark.parametrize("cpu", [None, CpuToken()])
def test_many_requests_share_few_slots(cpu: CpuToken | None) -> None:
    async def main() -> None:
        model = Speller(slots=2)
        async with started(model, cpu=cpu) as stage:
            streams = [stage.open(request(str(number))) for number in range(5)]
            for number, stream in enumerate(streams):
                await stream.push(f"ab{number}")
                await stream.push("yz")
                await stream.finish()
            model.free_run()

            async def read(number: int) -> str:
                return "".join([char async for char in streams[number]])

            async with asyncio.TaskGroup() as tasks:
                results = [tasks.create_task(read(number)) for number in range(5)]
            assert [task.result() for task in results] == [f"ab{n}yz" for n in range(5)]
            assert stage.active == 0
        assert max(len(batch) for batch in model.batches) == 2

    check(main)


def test_a_starved_slot_leaves_the_batch_and_comes_back() -> None:
    async def main() -> None:
        model = Speller(slots=2)
        model.free_run()
        async with started(model) as stage:
            stream = stage.open(request("a"))
            await stream.push("x")
            assert await anext(stream) == "x"
            await until(lambda: len(model.batches) == 1)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(model.batches) == 1
            await stream.push("y.")
            assert [char async for char in stream] == ["y"]

    check(main)


def test_a_slot_goes_to_the_most_urgent() -> None:
    async def main() -> None:
        model = Speller(slots=1)
        async with started(model) as stage:
            names = ["holder", "draft", "steady", "hurried"]
            urgencies = [Urgency.FIRST_AUDIO, Urgency.DRAFT, Urgency.STEADY, Urgency.DRAFT]
            streams = []
            for name, urgency in zip(names, urgencies, strict=True):
                streams.append(stage.open(request(name, urgency)))
                await streams[-1].push("x.")
                if name == "holder":
                    await until(model.inside.is_set)
            streams[3].hurry(Urgency.FIRST_AUDIO)
            model.free_run()
            for stream in streams:
                assert [char async for char in stream] == ["x"]
        served = list(dict.fromkeys(name for batch in model.batches for name in batch))
        assert served == ["holder", "hurried", "steady", "draft"]

    check(main)


def test_a_batch_limit_takes_the_most_urgent() -> None:
    async def main() -> None:
        model = Speller(slots=3)
        async with started(model, batch_limit=1) as stage:
            draft = stage.open(request("draft", Urgency.DRAFT))
            await draft.push("abc.")
            await until(model.inside.is_set)
            live = stage.open(request("live"))
            await live.push("abc.")
            model.free_run()
            for stream in (draft, live):
                assert "".join([char async for char in stream]) == "abc"
        assert model.batches == [["draft"]] + [["live"]] * 4 + [["draft"]] * 3

    check(main)


def test_an_abort_wastes_at_most_the_step_that_runs() -> None:
    async def main() -> None:
        model = Speller(slots=1)
        async with started(model) as stage:
            stream = stage.open(request("dead"))
            await stream.push("abc")
            await until(model.inside.is_set)
            stream.abort()
            waiting = stage.open(request("next"))
            await waiting.push("n.")
            model.free_run()
            assert [char async for char in stream] == []
            assert [char async for char in waiting] == ["n"]
            assert stage.abort_latency.count == 1
        assert model.batches.count(["dead"]) == 1

    check(main)


def test_an_abort_without_a_slot_frees_at_once() -> None:
    async def main() -> None:
        model = Speller(slots=1)
        async with started(model) as stage:
            holder = stage.open(request("holder"))
            await holder.push("x")
            await until(model.inside.is_set)
            waiting = stage.open(request("waiting"))
            assert stage.active == 2
            waiting.abort()
            assert stage.active == 1

    check(main)


def test_a_failing_step_fails_its_batch_and_frees_the_slots() -> None:
    async def main() -> None:
        model = Speller(slots=2)
        model.fail_on = "bad"
        model.free_run()
        async with started(model) as stage:
            bad = stage.open(request("bad"))
            await bad.push("x")
            with pytest.raises(StageError, match="step failed"):
                await anext(bad)
            refused = stage.open(request("refused"))
            with pytest.raises(StageError, match="cannot open"):
                await refused.push("x")
                await anext(refused)
            await until(lambda: stage.active == 0)
            good = stage.open(request("good"))
            await good.push("x.")
            assert [char async for char in good] == ["x"]

    check(main)


class Waiter(Speller):
    """Says "?" when a slot that was starved comes up again by itself; fails a slot at "!"."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.fed: set[int] = set()

    def feed(self, slot: int, chunk: str | None) -> None:
        super().feed(slot, chunk)
        self.fed.add(slot)

    def _spell(self, slot: int) -> SlotResult[str]:
        if slot not in self.fed:
            return SlotResult(SlotState.STARVED)  # its first step, before its first text
        if self.waiting[slot][:1] == ["!"]:
            return SlotResult(SlotState.RUNNING, ("last",), error=StageError("told", "as told"))
        result = super()._spell(slot)
        if result.state is SlotState.STARVED and not result.outputs:
            self.waiting[slot] = list("?")
            return SlotResult(SlotState.RUNNING)
        if result.state is SlotState.STARVED and result.outputs != ("?",):
            return replace(result, again_s=5.0)
        return result


def test_a_starved_slot_may_have_work_again_by_itself() -> None:
    now_s = [0.0]

    async def main() -> None:
        model = Waiter(slots=2)
        model.free_run()
        async with started(model, clock_s=lambda: now_s[0]) as stage:
            stream = stage.open(request("a"))
            await stream.push("x")
            await stream.finish()
            assert await anext(stream) == "x"
            begun = len(model.batches)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(model.batches) == begun and stage.active == 1, "its time has not come"

            async def pass_time() -> None:
                while True:  # the stage's thread may read the clock a little after its output
                    now_s[0] += 5.0
                    stage.open(request("other")).abort()  # anything that wakes the thread
                    await asyncio.sleep(0)

            passing = asyncio.create_task(pass_time())
            assert [char async for char in stream] == ["?"]
            passing.cancel()
            assert len(model.batches) == begun + 2

    check(main)


def test_one_slot_may_fail_alone() -> None:
    async def main() -> None:
        model = Waiter(slots=2)
        async with started(model) as stage:
            bad, good = stage.open(request("bad")), stage.open(request("good"))
            await good.push("y.")
            await bad.push("!")
            model.free_run()
            assert await anext(bad) == "last"
            with pytest.raises(StageError, match="as told"):
                await anext(bad)
            assert [char async for char in good] == ["y"]
            await until(lambda: stage.active == 0)

    check(main)


def test_a_reader_that_stalls_leaves_the_batch() -> None:
    async def main() -> None:
        model = Speller(slots=2)
        model.free_run()
        async with started(model, output_limit=3) as stage:
            stalled, read = stage.open(request("stalled")), stage.open(request("read"))
            await stalled.push("x" * 20 + ".")
            await read.push("y" * 20 + ".")
            assert len([char async for char in read]) == 20
            assert sum("stalled" in batch for batch in model.batches) == 3
            assert len([char async for char in stalled]) == 20

    check(main)


def test_500_requests_with_aborts_leave_every_slot_free() -> None:
    async def main() -> None:
        model = Speller(slots=3)
        model.free_run()
        async with started(model) as stage:

            async def use(number: int) -> None:
                stream = stage.open(request(str(number)))
                await stream.push("abc.")
                if number % 4 == 0:
                    stream.abort()
                elif number % 4 == 1:
                    await anext(stream)
                    stream.abort()
                else:
                    assert "".join([char async for char in stream]) == "abc"

            async with asyncio.TaskGroup() as tasks:
                for number in range(500):
                    tasks.create_task(use(number))
            await until(lambda: stage.active == 0)

    check(main)
