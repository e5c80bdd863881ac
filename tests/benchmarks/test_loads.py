"""What the load programs compute from what they see."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from benchmarks import crowd, processes
from benchmarks.crowd import Figures, Visitor, masked
from benchmarks.soak import Result, Sample, faults, left_over, slope_per_h
from benchmarks.visitors import visit
from pipelines.fakes.cascade import FakeCascade
from realtime.settings import Server, Settings
from tests.live_server import live_server

QUIET = Sample(0.0, 80.0, 0, 0, 0, 4, 7, 3, 1.0)


def frame(payload: bytes, opcode: int = crowd.TEXT) -> bytes:
    """A server's frame: not masked."""
    if len(payload) < 126:
        return bytes([0x80 | opcode, len(payload)]) + payload
    return bytes([0x80 | opcode, 126]) + len(payload).to_bytes(2, "big") + payload


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.sent.append(b"closed")


def hear(pieces: list[bytes]) -> tuple[Figures, list[bytes]]:
    """What a visitor counts and answers when these bytes come."""
    figures, wire = Figures(is_measuring=True), Wire()
    visitor = Visitor("/v1/realtime", figures, lead_ms=1000.0)
    visitor.connection_made(wire)
    for piece in pieces:
        visitor.data_received(piece)
    return figures, wire.sent[1:]


def in_pieces_of(size: int) -> Callable[[bytes], list[bytes]]:
    return lambda data: [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("cut", [in_pieces_of(n) for n in (1, 3, 100, 10**6)])
def test_a_cheap_client_counts_frames_however_they_are_cut(
    cut: Callable[[bytes], list[bytes]],
) -> None:
    delta = frame(crowd.AUDIO_DELTA + b',"delta":"' + b"A" * 300 + b'"}')
    data = (
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
        + 3 * delta
        + frame(b"ping", crowd.PING)
        + frame(b'{"event_id":"e","type":"error"}')
        + frame(b'{"event_id":"e","type":"response.done"}')
    )
    figures, sent = hear(cut(data))
    assert len(figures.late_ms) == 3 and figures.starved == 0
    assert (figures.errors, figures.replies) == (1, 1)
    assert sent == [masked(crowd.PONG, b"ping"), crowd.ASK]


def test_a_refused_client_says_so() -> None:
    with pytest.raises(ConnectionRefusedError, match="403"):
        hear([b"HTTP/1.1 403 Forbidden\r\n\r\n"])


def test_a_microphone_says_valid_events() -> None:
    chunk = next(iter(crowd.microphone()))
    event = json.loads(chunk[8:])  # 2 bytes of head, 2 of length, 4 of a key that is zero
    assert event["type"] == "input_audio_buffer.append"


def test_what_stays_is_named() -> None:
    assert left_over(QUIET, QUIET) == {}
    assert left_over(QUIET, replace(QUIET, sessions=1, tasks=8)) == {"sessions": 1, "tasks": 4}
    assert left_over(QUIET, replace(QUIET, threads=4)) == {}  # asyncio's pool may fill


def test_a_fault_in_the_log_fails_the_run() -> None:
    log = "INFO all well\nTraceback (most recent call last):\nTask exception was never retrieved"
    assert len(faults(log)) == 2
    result = Result(60.0, 20, faults=faults(log), slope_mib_per_h=30.0, left={"tasks": 1})
    assert len(result.failures) == 4
    assert json.loads(json.dumps(asdict(result)))["left"] == {"tasks": 1}
    assert Result(2.0, 20, slope_mib_per_h=500.0).failures == []  # too short to tell


def test_memory_is_a_slope_per_hour() -> None:
    samples = [replace(QUIET, minute=float(m), rss_mib=80.0 + m / 6) for m in range(30)]
    assert slope_per_h(samples) == pytest.approx(10.0)
    assert slope_per_h(samples[:2]) is None


def test_a_process_is_measured() -> None:
    pid = os.getpid()
    assert processes.resident_mib(pid) > 10 and processes.threads(pid) >= 1
    assert processes.busy_s() >= processes.cpu_s(pid) > 0
    before = processes.open_files(pid)
    with open(os.devnull, "rb"):
        assert processes.open_files(pid) == before + 1
    assert processes.resident_mib(2**22 + 1) == 0  # beyond the largest pid


def test_visitors_do_what_they_are_for() -> None:
    """Every one comes in, is answered, and ends when its time is over."""

    async def run() -> None:
        cascade = FakeCascade()
        async with live_server(cascade, Settings(server=Server(max_sessions=30))) as server:
            tally = await visit(server.socket_url, clients=20, seconds=4.0, seed=2)
        assert tally["visits"] >= 20 and tally["not let in"] == 0
        assert tally["heard: response.done"] > 0 and tally["heard: audio"] > 0

    asyncio.run(run())
