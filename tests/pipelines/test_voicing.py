"""A reply that lost its slot while it was a draft, and is wanted all the same, goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.runtime.async_stage import AsyncDuplexStage
from pipelines.runtime.failures import draft_evicted
from pipelines.runtime.ticket import Ticket
from pipelines.types import SpeakRequest, SpeechDelta, StageError, Urgency, WordEnd
from pipelines.voicing import Voicing


class Evicting(AsyncDuplexStage[SpeakRequest, str, SpeechDelta]):
    """A delta for each pushed text; the first request is ended before its delta number `after`."""

    def __init__(self, after: int) -> None:
        self.texts: list[list[str]] = []
        self._after = after
        super().__init__("voice", self._speak)

    async def _speak(
        self, request: SpeakRequest, inputs: AsyncIterator[str], ticket: Ticket
    ) -> AsyncIterator[SpeechDelta]:
        texts: list[str] = []
        self.texts.append(texts)
        end = 0
        async for text in inputs:
            texts.append(text)
            if len(self.texts) == 1 and len(texts) > self._after:
                raise draft_evicted(self.name)
            end += len(text)
            yield SpeechDelta(np.zeros(10, np.float32), 24_000, end, (WordEnd(9, end),))


async def spoken(
    after: int, urgency: Urgency, finished: bool = True
) -> tuple[list[int], list[list[str]]]:
    stage = Evicting(after)
    await stage.start(lambda line: None)
    ticket = Ticket("r", Urgency.DRAFT)
    voicing = Voicing(stage, ticket, lambda: SpeakRequest("r", "v", ticket.urgency))
    try:
        for text in ("Hello. ", "I am ", "well."):
            await voicing.push(text)
        if finished:
            await voicing.finish()
        ticket.hurry(urgency)
        ends = list[int]()
        async for delta in voicing:
            assert [word.text_end for word in delta.words] == [delta.text_end]
            ends.append(delta.text_end)
            if not finished and delta.text_end == 17:
                await voicing.push(" So.")
                await voicing.finish()
        assert not voicing._unsaid  # what was said is not kept
        return ends, stage.texts
    finally:
        voicing.abort()
        await stage.close()


def test_what_was_not_said_is_said_by_another_request() -> None:
    async def main() -> None:
        ends, texts = await spoken(1, Urgency.FIRST_AUDIO)
        assert ends == [7, 17]
        assert texts == [["Hello. ", "I am "], ["I am well."]]
        assert (await spoken(0, Urgency.FIRST_AUDIO))[0] == [17]
        ends, texts = await spoken(2, Urgency.STEADY, finished=False)
        assert ends == [7, 12, 17, 21] and texts[1] == ["well.", " So."]

    run_virtual(main())


def test_a_draft_that_nobody_wanted_yet_fails() -> None:
    async def main() -> None:
        with pytest.raises(StageError) as raised:
            await spoken(1, Urgency.DRAFT)
        assert raised.value.code == "draft_evicted"

    run_virtual(main())
