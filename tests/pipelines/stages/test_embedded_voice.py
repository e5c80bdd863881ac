"""The voice with its real model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.runtime.ticket import Aborted, Ticket
from pipelines.stages import tts_piper
from pipelines.stages.onnx import run
from pipelines.stages.tts_piper import LEAD_MS, PiperSpeaker
from pipelines.types import SpeakRequest
from tests.pipelines.stages.embedded import check, freed, say, started

pytestmark = pytest.mark.models

CHUNKS = ("Of course! ", "Paris, the capital of France, is famous for its museums ", "and towers.")


def test_chunks_become_sound_that_covers_their_text() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            deltas = await say(speaker, *CHUNKS)
            ends = [delta.text_end for delta in deltas]
            assert ends == sorted(ends)
            assert ends[-1] == len("".join(CHUNKS))
            assert {delta.rate_hz for delta in deltas} == {22_050}
            assert all(delta.samples.dtype == np.float32 for delta in deltas)
            assert all(np.sqrt(np.mean(delta.samples**2)) > 0.01 for delta in deltas)
            assert all(np.abs(delta.samples).max() <= 1.0 for delta in deltas)
            seconds = sum(len(delta.samples) for delta in deltas) / 22_050
            assert 3.0 < seconds < 9.0

    check(main)


def test_the_first_sound_comes_at_once_and_requests_are_apart() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            for _ in range(2):
                first = (await say(speaker, "Hello there."))[0]
                audible = np.flatnonzero(np.abs(first.samples) > 0.01)[0]
                assert audible <= LEAD_MS * 22_050 // 1000 + 1
                assert first.text_end == len("Hello there.")

    check(main)


def test_speed_shortens() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            slow, fast = [
                sum(len(d.samples) for d in await say(speaker, "The sky is blue.", speed=speed))
                for speed in (0.75, 1.5)
            ]
            assert slow > 1.5 * fast

    check(main)


@pytest.mark.parametrize("text", ["!!!", "😀 🎉", "你好", "...", " "])
def test_the_unspeakable_is_silent_but_counted(text: str) -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            deltas = await say(speaker, text)
            assert sum(len(delta.samples) for delta in deltas) == 0
            assert deltas[-1].text_end == len(text)

    check(main)


def test_times_and_numbers_are_said() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            for long, short in (("At 3:30.", "At."), ("It costs $42.50.", "It costs.")):
                lengths = [
                    sum(len(delta.samples) for delta in await say(speaker, text))
                    for text in (long, short)
                ]
                assert lengths[0] > 1.3 * lengths[1]

    check(main)


def test_an_abort_ends_it() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            stream = speaker.open(SpeakRequest("gone", "joe"))
            for _ in range(20):
                await stream.push("The quick brown fox jumps over the lazy dog. ")
            async for _ in stream:
                break
            stream.abort()
            assert [delta async for delta in stream] == []
            await freed(speaker)

    check(main)


def test_an_abort_ends_the_piece_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def run_to_abort(session: Any, inputs: Any, ticket: Ticket) -> Any:
        ticket.abort()
        try:
            return run(session, inputs, ticket)
        except Aborted as aborted:
            ended.append(str(aborted))
            raise

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            with monkeypatch.context() as patch:
                patch.setattr(tts_piper, "run", run_to_abort)
                stream = speaker.open(SpeakRequest("gone", "joe"))
                await stream.push("The quick brown fox jumps over the lazy dog.")
                assert [delta async for delta in stream] == []
                await freed(speaker)
            assert ended == ["gone"]
            assert len(await say(speaker, "Hello there.")) == 1

    check(main)
