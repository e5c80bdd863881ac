"""Word ends on their way from the voice's rate to the session's marks."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import (
    Finished,
    FinishReason,
    ReplyRequest,
    SpeechDelta,
    TextDelta,
    Urgency,
    WordEnd,
)
from realtime.audio.quantise import FloatSamples
from realtime.observe.metrics import Metrics
from realtime.runtime.codec import decode, encode
from realtime.runtime.egress import Egress
from realtime.runtime.work import Works
from realtime.session.events import Event, ReplyAudio
from realtime.session.settings import AudioFormat
from tests.realtime.runtime.stand_ins import ScriptedCascade

VOICE_HZ = 22_050
CLICKS = (5000, 21_000, 25_123, 39_000)  # samples of the voice at which a word ends, with a click


def clicking(start: int, end: int) -> SpeechDelta:
    samples = np.zeros(end - start, np.float32)
    ends = [click - start for click in CLICKS if start <= click < end]
    samples[ends] = 0.8
    words = tuple(WordEnd(at, CLICKS.index(at + start) + 1) for at in ends)
    return SpeechDelta(samples, VOICE_HZ, words[-1].text_end if words else 0, words)


class KeepingEgress(Egress):
    def __init__(self) -> None:
        super().__init__()
        self.kept = np.zeros(0, np.float32)

    def add(self, request: str, samples: FloatSamples) -> None:
        self.kept = np.concatenate([self.kept, samples])
        super().add(request, samples)


def played(audio_format: AudioFormat) -> tuple[list[ReplyAudio], FloatSamples]:
    borders = (0, 4000, 22_000, 22_777, 40_000)
    pieces = [clicking(a, b) for a, b in zip(borders, borders[1:], strict=False)]
    cascade = ScriptedCascade(reply=[TextDelta("abcd"), *pieces, Finished(FinishReason.STOP)])
    events: list[Event] = []
    egress = KeepingEgress()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            works = Works(cascade, egress, Metrics(), group, events.append)
            asked = ReplyRequest("r", (), Urgency.DRAFT, speak=True, voice="default")
            works.reply(asked, audio_format)
            while works.is_busy:
                works.changed.clear()
                await works.changed.wait()
            works.close()

    run_virtual(main(), limit_s=60)
    return [event for event in events if isinstance(event, ReplyAudio)], egress.kept


@pytest.mark.parametrize("audio_format", [AudioFormat(), AudioFormat("audio/pcmu", 8000)])
def test_words_keep_their_places_at_another_rate(audio_format: AudioFormat) -> None:
    audio, kept = played(audio_format)
    rate_hz = audio_format.rate_hz
    words = [word for event in audio for word in event.words]
    assert words == [(round(at * rate_hz / VOICE_HZ), i + 1) for i, at in enumerate(CLICKS)]
    # The clicks that the voice made there are there still.
    for at, _ in words:
        assert abs(int(np.argmax(np.abs(kept[at - 200 : at + 200]))) - 200) <= 1
    total = sum(event.samples for event in audio)
    assert total == pytest.approx(40_000 * rate_hz / VOICE_HZ, abs=1)


def test_a_record_keeps_the_words() -> None:
    event = ReplyAudio("r", 100, 7, ((40, 3), (90, 7)))
    assert decode(json.loads(json.dumps(encode(event)))) == event
