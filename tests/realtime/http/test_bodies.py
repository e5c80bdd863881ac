"""Request bodies are bounded in size and in slowness; time is the loop's own, which jumps."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from starlette.requests import Request

from realtime.http.bodies import GRACE_S, LONGEST_PAUSE_S, SLOWEST_BYTES_PER_S, receive
from realtime.http.reception import Refused

LARGEST_BYTES = 1_000_000
LONGEST_S = 110.0


class JumpingLoop(asyncio.SelectorEventLoop):
    """Nobody waits: while nothing can run, its time jumps to when something can."""

    def __init__(self) -> None:
        loop = self
        self.now_s = 0.0

        class Jump(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                loop.now_s += timeout or 0.0
                return super().select(0)

        super().__init__(Jump())

    def time(self) -> float:
        return self.now_s


class Upload:
    """pieces: (seconds before it, bytes). Without more of them the client says nothing else."""

    def __init__(self, pieces: list[tuple[float, int]], *, ends: bool = True) -> None:
        self._pieces = iter(pieces)
        self._ends = ends
        self.headers: list[tuple[bytes, bytes]] = []
        self.taking_s = 0.0  # what the server does with each piece
        self.ended_s = 0.0
        self.taken_bytes = 0

    async def _message(self) -> dict[str, Any]:
        pause_s, size_bytes = next(self._pieces, (0.0, -1))
        if size_bytes < 0:
            if not self._ends:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.sleep(pause_s)
        return {"type": "http.request", "body": bytes(size_bytes), "more_body": True}

    async def _take(self) -> None:
        scope = {"type": "http", "method": "POST", "headers": self.headers}
        request = Request(scope, self._message)
        body = receive(request, LARGEST_BYTES, LONGEST_S, too_large="Too large.", param="file")
        try:
            async with aclosing(body):
                async for chunk in body:
                    self.taken_bytes += len(chunk)
                    await asyncio.sleep(self.taking_s)
        finally:
            self.ended_s = asyncio.get_running_loop().time()

    def take(self) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(self._take())

    def refusal(self) -> tuple[int, str]:
        with pytest.raises(Refused) as refused:
            self.take()
        answer = refused.value.response
        error = json.loads(bytes(answer.body))["error"]
        assert error["param"] == "file"
        return answer.status_code, error["message"]


def drip(every_s: float, size_bytes: int, count: int = 1000) -> list[tuple[float, int]]:
    return [(every_s, size_bytes)] * count


@pytest.mark.parametrize("every_s", [0.01, 1.0, 8.0])
def test_whoever_sends_a_byte_now_and_then_is_given_up_after_the_grace(every_s: float) -> None:
    upload = Upload(drip(every_s, 1, 2000))
    status, why = upload.refusal()
    assert status == 408
    assert GRACE_S <= upload.ended_s <= GRACE_S + 2
    assert "8000 bytes per second" in why


def test_half_the_slowest_pace_earns_a_second_grace() -> None:
    upload = Upload(drip(1.0, SLOWEST_BYTES_PER_S // 2))
    assert upload.refusal()[0] == 408
    assert upload.ended_s == pytest.approx(2 * GRACE_S, abs=1.0)


def test_the_slowest_pace_is_taken() -> None:
    upload = Upload(drip(5.0, 5 * SLOWEST_BYTES_PER_S, 20))
    upload.take()
    assert upload.taken_bytes == 100 * SLOWEST_BYTES_PER_S


def test_a_pause_is_bounded_however_much_has_come() -> None:
    upload = Upload([(0.0, 900_000)], ends=False)
    assert upload.refusal()[0] == 408
    assert upload.ended_s == LONGEST_PAUSE_S
    Upload([(0.0, 900_000), (LONGEST_PAUSE_S - 1, 1)]).take()


def test_the_whole_is_bounded() -> None:
    upload = Upload(drip(5.0, 41_000, 24))  # fast enough, and small enough
    assert upload.refusal()[0] == 408
    assert upload.ended_s == LONGEST_S


def test_the_servers_own_time_is_not_the_clients() -> None:
    upload = Upload(drip(1.0, 8_000, 100))
    upload.taking_s = 60.0
    upload.take()
    assert upload.ended_s > 6_000


@pytest.mark.parametrize("announced", [b"1000001", b"9" * 5000])
def test_an_announced_length_is_looked_at_first(announced: bytes) -> None:
    upload = Upload(drip(0.0, 1))
    upload.headers = [(b"content-length", announced)]
    assert upload.refusal() == (413, "Too large.")
    assert upload.taken_bytes == 0


@pytest.mark.parametrize("announced", [None, b"10", b"\xb2", b"-1"])
def test_whatever_is_announced_bytes_are_counted(announced: bytes | None) -> None:
    upload = Upload(drip(0.0, 100_000))
    upload.headers = [(b"content-length", announced)] if announced else []
    assert upload.refusal() == (413, "Too large.")
    assert upload.taken_bytes == LARGEST_BYTES


def test_a_client_that_goes_is_answered_nothing() -> None:
    async def messages() -> AsyncGenerator[dict[str, Any]]:
        yield {"type": "http.request", "body": b"x", "more_body": True}
        yield {"type": "http.disconnect"}

    async def main() -> None:
        queue = messages()
        request = Request({"type": "http", "headers": []}, lambda: anext(queue))
        async with aclosing(queue), aclosing(receive(request, 10, 10.0, too_large="")) as body:
            with pytest.raises(Refused) as refused:
                async for _ in body:
                    pass
        assert refused.value.response.status_code == 400

    asyncio.run(main())
