"""Hundreds of replies that come, starve, go on and are aborted as chance has it.

Every one ends, every slot is free again, and those that nobody touched sound as they do alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from pipelines.higgs.codec.plain import ReadySound
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.higgs.ports import CodecJob
from pipelines.types import Samples
from tests.pipelines.higgs.voices import Voice, make_voice, sound

STREAMS = 6
SEEDS = 12  # distinct replies; each comes many times
LAG_SAMPLES = 10_000
MOST_STEPS = 200_000

TEXTS = ("So.", "It rains.", "Well, yes?", "Not yet.", "Good day to you.")


class PlainCodec:
    """Each sample is its frame's first code: what came in can be read off what comes out."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.lag_samples = LAG_SAMPLES
        self._sounds: dict[int, tuple[Samples, int]] = {}

    def reset(self, slot: int) -> None:
        self._sounds.pop(slot, None)

    def submit(self, jobs: Sequence[CodecJob]) -> ReadySound:
        return ReadySound([self._advance(job) for job in jobs])

    def close(self) -> None:
        pass

    def _advance(self, job: CodecJob) -> Samples:
        whole, out = self._sounds.get(job.slot, (np.zeros(0, np.float32), 0))
        frames = (job.codes.sum(axis=1) + 1).astype(np.float32)
        whole = np.concatenate([whole, np.repeat(frames, FRAME_SAMPLES)])
        end = len(whole) if job.ends else max(out, len(whole) - LAG_SAMPLES)
        self._sounds[job.slot] = (whole, end)
        return whole[out:end]


@dataclass
class Guest:
    """A reply on its way: text still to be pushed, and what becomes of it."""

    seed: int
    texts: list[str]
    aborts_after: int | None
    steps: int = 0
    said: list[str] = field(default_factory=list)


def texts_of(seed: int) -> list[str]:
    chance = random.Random(seed)
    return [chance.choice(TEXTS) for _ in range(chance.randint(1, 3))]


def voice_of(is_plain: bool, streams: int) -> Voice:
    voice = make_voice(streams=streams, prefixes=1, positions=300, typical_rows=10)
    if is_plain:
        codec = PlainCodec(streams)
        voice.codec = codec  # type: ignore[assignment]
        voice.engine._codec = codec  # pyright: ignore[reportPrivateUsage]
    return voice


@cache
def alone(seed: int, is_plain: bool) -> np.ndarray:
    voice = voice_of(is_plain, 1)
    return sound(voice.say(0, *texts_of(seed), seed=seed))


def serve(replies: int, is_plain: bool) -> tuple[int, int]:
    """How many replies were heard to their end and were as they are alone; how many aborted."""
    chance = random.Random(7)
    voice = voice_of(is_plain, STREAMS)
    free = list(range(STREAMS))
    guests: dict[int, Guest] = {}
    starved: set[int] = set()
    waiting, ended, aborted = replies, 0, 0
    for _ in range(MOST_STEPS):
        if not waiting and not guests:
            break
        while free and waiting and chance.random() < 0.8:
            seed = chance.randrange(SEEDS)
            aborts_after = chance.randint(1, 40) if chance.random() < 0.4 else None
            slot = free.pop(chance.randrange(len(free)))
            guests[slot] = Guest(seed, texts_of(seed), aborts_after)
            voice.open(slot, seed=seed)
            waiting -= 1
        for slot, guest in guests.items():
            # Text that comes late ends a stretch of sound, of which only the true codec knows.
            while guest.texts and (not is_plain or chance.random() < 0.4):
                voice.engine.feed(slot, guest.texts.pop(0))
                if not guest.texts:
                    voice.engine.feed(slot, None)
                starved.discard(slot)
        active = [slot for slot in guests if slot not in starved and chance.random() < 0.9]
        outcomes = voice.engine.step(active) if active else {}
        for slot, outcome in outcomes.items():
            voice.heard[slot] += outcome.outputs
            assert outcome.error is None
            if outcome.is_starved and outcome.again_s is None and guests[slot].texts:
                starved.add(slot)
            if outcome.is_ended:
                guest = guests.pop(slot)
                heard = sound(voice.heard[slot])
                np.testing.assert_array_equal(heard, alone(guest.seed, is_plain))
                ended += 1
                voice.engine.close(slot)
                free.append(slot)
        for slot in [slot for slot, guest in guests.items() if due(guest)]:
            del guests[slot]
            starved.discard(slot)
            voice.engine.close(slot)
            free.append(slot)
            aborted += 1
    assert sorted(free) == list(range(STREAMS))
    return ended, aborted


def due(guest: Guest) -> bool:
    guest.steps += 1
    return guest.aborts_after is not None and guest.steps > guest.aborts_after


@pytest.mark.parametrize(
    "replies",
    # Even of the few, slots are taken again at once, and in the middle of sound, many times.
    [120, pytest.param(500, marks=pytest.mark.soak)],
)
def test_replies_at_random(replies: int) -> None:
    ended, aborted = serve(replies, is_plain=True)

    assert ended + aborted == replies
    assert ended > replies * 0.5 and aborted > replies * 0.2


@pytest.mark.soak
def test_two_hundred_replies_at_random_with_the_true_codec() -> None:
    ended, aborted = serve(200, is_plain=False)

    assert ended + aborted == 200
