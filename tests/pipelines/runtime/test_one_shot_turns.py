"""Requests of one class take turns; a listener who is about to hear a gap goes first."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.lead import Cushion, Lead
from pipelines.runtime.one_shot import OneShotStage
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, Urgency
from tests.pipelines.waiting import check, until

PIECE_S = 0.6  # two of them are more than a listener needs ahead
LEAD: Lead[float] = Lead(float, limit_s=1.0, resume_s=0.5)


class Voice:
    """Says every text in pieces of `PIECE_S`, and tells whose they were."""

    def __init__(self, lead: Lead[float] | None) -> None:
        self.order: list[str] = []
        self.cpu = CpuToken()
        self.now_s = 0.0
        self.stage: OneShotStage[SpeakRequest, int, float] = OneShotStage(
            "tts",
            lambda progress: None,
            self._speak,
            self.cpu,
            lead=lead,
            clock_s=lambda: self.now_s,
        )

    def _speak(
        self, _: None, request: SpeakRequest, pieces: int, ticket: Ticket
    ) -> Iterator[float]:
        for _number in range(pieces):
            self.order.append(request.request_id)
            yield PIECE_S

    async def order_of(self, *requests: tuple[str, Urgency], pieces: int) -> str:
        """Who made which piece, of requests that all wait, steady, when the first may begin."""
        await self.stage.start(lambda line: None)
        try:
            with self.cpu.hold(Ticket("other", Urgency.FIRST_AUDIO)):
                streams = [
                    self.stage.open(SpeakRequest(name, "voice", urgency))
                    for name, urgency in requests
                ]
                for stream in streams:
                    await stream.push(pieces)
                    stream.hurry(Urgency.STEADY)
            await until(lambda: len(self.order) == pieces * len(requests))
            return "".join(self.order)
        finally:
            await self.stage.close()


def test_equals_take_turns() -> None:
    async def main() -> None:
        requests = [(name, Urgency.STEADY) for name in "abc"]
        assert await Voice(None).order_of(*requests, pieces=3) == "abcabcabc"

    check(main)


def test_a_listener_goes_before_a_file_that_came_first() -> None:
    async def main() -> None:
        requests = ("f", Urgency.STEADY), ("a", Urgency.FIRST_AUDIO), ("b", Urgency.FIRST_AUDIO)
        assert await Voice(LEAD).order_of(*requests, pieces=2) == "ababff"

    check(main)


def test_a_fast_reader_is_a_listener_with_much_ahead() -> None:
    """What was read and not heard yet counts, though nothing waits here."""

    async def main() -> None:
        voice = Voice(LEAD)
        await voice.stage.start(lambda line: None)
        try:
            stream = voice.stage.open(SpeakRequest("live", "voice"))
            await stream.push(2)
            await stream.finish()
            assert stream.runs_dry
            assert [seconds async for seconds in stream] == [PIECE_S] * 2
            assert not stream.runs_dry
            voice.now_s = 0.5
            assert stream.runs_dry
        finally:
            await voice.stage.close()

    check(main)


def test_a_gap_is_not_made_up_for() -> None:
    cushion = Cushion()
    cushion.add(1.0, now_s=10.0)
    assert cushion.left_s(10.25) == 0.75
    assert cushion.left_s(12.0) == -1.0
    cushion.add(1.0, now_s=12.0)
    assert cushion.left_s(12.5) == 0.5
