"""How well word times are estimated, against a voice that tells them: the embedded one.

    python -m benchmarks.higgs.word_times

Its sentences are not those that the estimate was fitted to. Errors are estimate minus truth: what
is below zero counts a word as heard that was not yet.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import soxr

from benchmarks.report import percentile
from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, FRAMES_PER_S
from pipelines.higgs.reply.emission import MOST_FRAMES
from pipelines.higgs.reply.watchdog import SilenceWatch, row_limit
from pipelines.higgs.reply.words import ChunkWords, VoicePace
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import Samples, SpeakRequest
from pipelines.weights import WeightsError

SENTENCES = (
    "There are two flights tomorrow, one in the morning and one late in the evening.",
    "I would suggest the second one, because it is cheaper and gets you home before midnight.",
    "Sure.",
    "Let me check that for you.",
    "The recipe needs four eggs, a cup of milk, some butter and a pinch of nutmeg.",
    "Mount Kilimanjaro is the highest mountain in Africa, and it is in fact a dormant volcano.",
    "Sorry, could you say that once more?",
    "Your parcel was left with a neighbour, at number seventeen.",
    "If it rains on Saturday, the picnic will be moved to the following weekend.",
    "The committee unanimously approved the preliminary architectural proposal.",
    "Once upon a time, in a small village by the sea, there lived a girl who could talk to birds.",
    "You have three new messages, and the first is from your sister.",
    "Take the second exit at the roundabout, then keep left until you see the bridge.",
    "Not at all, it was a pleasure.",
    "The museum opens at ten; on Fridays, however, it stays open until nine.",
    "Scientists have observed unusually strong magnetic fields around that particular star.",
    "He laughed, shook his head, and went back to his newspaper.",
    "A healthy adult sleeps between seven and nine hours a night.",
    "The password was changed last week, so the old one does not work any longer.",
    "I can set a timer, play some music, or tell you what is on your calendar today.",
    "Lisbon is lovely in spring: warm days, cool nights, and hardly any tourists.",
    "My grandmother used to bake bread every morning, long before anyone else was awake.",
    "In other words, the faster you go, the less time you have to react.",
    "That number is not in service; please check it and dial again.",
    "We could meet at the cafe across the street, or, if you prefer, in my office.",
    "Goodbye, and have a wonderful day.",
)
AHEAD_MS = 100  # of an estimate that a listener could notice: about half a word


@dataclass(frozen=True, slots=True)
class Spoken:
    """words: when each is over, in seconds, by its end in the text."""

    text: str
    samples: Samples
    rate_hz: int
    words: dict[int, float]

    @property
    def frames(self) -> int:
        return round(len(self.samples) / self.rate_hz * FRAMES_PER_S)


async def speak_all() -> list[Spoken]:
    speaker = PiperSpeaker()
    await speaker.start(lambda _: None)
    found: list[Spoken] = []
    try:
        for place, text in enumerate(SENTENCES):
            stream = speaker.open(SpeakRequest(f"text-{place}", "joe"))
            await stream.push(text)
            await stream.finish()
            pieces: list[Samples] = []
            words: dict[int, float] = {}
            before, rate_hz = 0, 1
            async for delta in stream:
                rate_hz = delta.rate_hz
                for word in delta.words:
                    words.setdefault(word.text_end, (before + word.samples) / rate_hz)
                before += len(delta.samples)
                pieces.append(delta.samples)
            found.append(Spoken(text, np.concatenate(pieces), rate_hz, words))
    finally:
        await speaker.close()
    return found


def piece_ends(frames: int) -> Iterator[int]:
    """How many frames are out after each piece of a fast decoder, but the last."""
    end = size = 1
    while end < frames:
        yield end
        size = min(2 * size, MOST_FRAMES)
        end += size


def errors_ms(spoken: Spoken, words: ChunkWords, *, length_known: bool) -> list[float]:
    told: list[tuple[int, int]] = []
    if not length_known:
        for frames in piece_ends(spoken.frames):
            told += words.told(frames * FRAME_SAMPLES)
    words.ends(spoken.frames)
    told += words.told(spoken.frames * FRAME_SAMPLES)
    estimated = {text_end: samples / CODEC_RATE_HZ for samples, text_end in told}
    return [
        (estimated[text_end] - at_s) * 1000
        for text_end, at_s in spoken.words.items()
        if text_end in estimated
    ]


def report(name: str, errors: list[float]) -> None:
    ahead = sum(error < 0 for error in errors) / len(errors)
    noticed = sum(error < -AHEAD_MS for error in errors) / len(errors)
    print(
        f"{name:32} {len(errors):4} words  median {percentile(errors, 50):+5.0f} ms  "
        f"p95 of the size {percentile([abs(e) for e in errors], 95):5.0f} ms  "
        f"ahead {ahead:4.0%}, by more than {AHEAD_MS} ms {noticed:4.1%}"
    )


def main() -> None:
    try:
        spoken = asyncio.run(speak_all())
    except WeightsError as error:
        sys.exit(str(error))
    paces: dict[str, Callable[[], VoicePace]] = {
        "an unknown voice": VoicePace,
        "a voice that goes on": (lambda pace: lambda: pace)(VoicePace()),
    }
    for name, pace in paces.items():
        errors = [
            error
            for each in spoken
            for error in errors_ms(each, ChunkWords(each.text, 0, 0, pace()), length_known=False)
        ]
        report(name, errors)
    known = [
        error
        for each in spoken
        for error in errors_ms(each, ChunkWords(each.text, 0, 0), length_known=True)
    ]
    report("length known beforehand", known)
    shares = [each.frames / row_limit(each.text) for each in spoken]
    print(f"speech takes {min(shares):.0%} to {max(shares):.0%} of the rows that it may")
    for each in spoken:
        samples = soxr.resample(each.samples, each.rate_hz, CODEC_RATE_HZ).astype(np.float32)
        found = SilenceWatch(each.text).feed(samples)
        if found is not None:
            print(f"{found.kind.value} told from frame {found.since_frame} on: {each.text}")


if __name__ == "__main__":
    main()
