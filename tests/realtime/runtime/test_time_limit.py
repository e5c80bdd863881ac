"""The limit of many short waits: one timer, and the same ends as `asyncio.timeout`."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.fakes.virtual_time import run_virtual
from realtime.runtime.time_limit import TimeLimit


def test_a_wait_that_is_too_long_is_a_timeout_at_its_time() -> None:
    async def main() -> float:
        limit, loop = TimeLimit(2.0), asyncio.get_running_loop()
        with limit:
            await asyncio.sleep(1.5)
        with limit:  # the timer of the first wait goes off in the middle of this one
            await asyncio.sleep(1.5)
        begin_s = loop.time()
        with pytest.raises(TimeoutError), limit:
            await asyncio.sleep(100)
        task = asyncio.current_task()
        assert task is not None and not task.cancelling()
        return loop.time() - begin_s

    assert run_virtual(main(), limit_s=200) == pytest.approx(2.0)


def test_a_wait_after_a_timeout_has_its_whole_time() -> None:
    async def main() -> None:
        limit = TimeLimit(2.0)
        with pytest.raises(TimeoutError), limit:
            await asyncio.sleep(100)
        with limit:
            await asyncio.sleep(1.9)

    run_virtual(main(), limit_s=200)


def test_a_cancellation_from_elsewhere_passes() -> None:
    async def main() -> None:
        limit = TimeLimit(2.0)

        async def wait() -> None:
            with limit:
                await asyncio.sleep(100)

        task = asyncio.create_task(wait())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main(), limit_s=200)


def test_a_cancellation_in_the_moment_of_the_timeout_is_not_swallowed() -> None:
    async def main() -> None:
        limit, loop = TimeLimit(2.0), asyncio.get_running_loop()

        async def wait() -> None:
            with limit:
                await asyncio.sleep(100)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        loop.call_at(loop.time() + 2.0, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main(), limit_s=200)


def test_an_error_in_the_moment_of_the_timeout_is_raised_as_it_is() -> None:
    async def main() -> None:
        limit = TimeLimit(2.0)
        with pytest.raises(ValueError, match="its own"), limit:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                raise ValueError("its own") from None
        task = asyncio.current_task()
        assert task is not None and not task.cancelling()

    run_virtual(main(), limit_s=200)


def test_a_closed_limit_leaves_no_timer() -> None:
    async def main() -> None:
        limit = TimeLimit(2.0)
        with limit:
            await asyncio.sleep(0)
        limit.close()
        assert limit._timer is None  # pyright: ignore[reportPrivateUsage]

    run_virtual(main(), limit_s=10)
