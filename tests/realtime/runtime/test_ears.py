"""From the bytes of the wire to what the detector and the recogniser hear."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.types import Samples, StageError
from realtime.protocol.formats import bytes_per_sample, encode_audio
from realtime.runtime.ears import Ears
from realtime.runtime.hearing import Hearing
from realtime.session.events import AudioFrame
from realtime.session.settings import AudioFormat
from tests.realtime.runtime.stand_ins import EnergyDetector, ScriptedCascade, tone

PCM = AudioFormat()
MU_LAW = AudioFormat("audio/pcmu", 8000)
A_LAW = AudioFormat("audio/pcma", 8000)


class Head:
    """Ears with everything around them."""

    def __init__(self, audio_format: AudioFormat = PCM) -> None:
        self.cascade = ScriptedCascade()
        self.cascade.keep_frames = True
        self.detector = EnergyDetector(self.cascade)
        self.hearing = Hearing()
        self.frames: list[AudioFrame] = []
        self.failures: list[StageError] = []
        self.wants_reset = False
        self.ears = Ears(
            hearing=self.hearing,
            detector=self.detector,
            on_frame=self.frames.append,
            on_failure=self.failures.append,
            before_frame=self._at_once,
            take_reset=self._take_reset,
            audio_format=audio_format,
        )

    async def _at_once(self) -> None:
        return

    def _take_reset(self) -> bool:
        wished, self.wants_reset = self.wants_reset, False
        return wished

    def heard(self) -> Samples:
        return self.hearing.read(0, 0, self.hearing.position)


def hear(head: Head, pieces: Sequence[bytes], audio_format: AudioFormat = PCM) -> Head:
    async def main() -> None:
        for piece in pieces:
            await head.ears.hear(piece, audio_format)
        await head.ears.flush()

    asyncio.run(main())
    return head


def split(audio: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at, turn = list[bytes](), 0, 0
    while at < len(audio):
        size = sizes[turn % len(sizes)]
        pieces.append(audio[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@pytest.mark.parametrize("audio_format", [PCM, MU_LAW, A_LAW], ids=lambda f: f.type)
@pytest.mark.parametrize("size", [1, 37, 960, 100_000])
def test_a_tone_is_heard_as_the_same_tone(audio_format: AudioFormat, size: int) -> None:
    audio = encode_audio(tone(1000, audio_format.rate_hz), audio_format)
    head = hear(Head(audio_format), split(audio, [size]), audio_format)
    heard = head.heard()
    assert len(heard) == 16_000
    spectrum = np.abs(np.fft.rfft(heard * np.hanning(len(heard))))
    assert int(np.argmax(spectrum)) == 440  # bins of 1 Hz
    assert len(head.frames) == 16_000 // 512
    assert head.frames[-1].position == 31 * 512
    assert head.frames[5].level_dbfs == pytest.approx(-13.5, abs=0.3)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=4000), st.lists(st.integers(1, 900), min_size=1, max_size=5))
def test_the_cut_of_the_bytes_changes_nothing(audio: bytes, sizes: list[int]) -> None:
    whole = hear(Head(), [audio])
    pieces = hear(Head(), split(audio, sizes))
    assert whole.hearing.position == pieces.hearing.position
    assert whole.hearing.position == -(-(len(audio) // 2) * 16_000 // 24_000)
    assert np.allclose(whole.heard(), pieces.heard(), atol=2 / 32768)
    assert [frame.position for frame in whole.frames] == [f.position for f in pieces.frames]


def test_half_a_sample_at_the_end_of_a_clip_shifts_nothing() -> None:
    clip = encode_audio(tone(200), PCM)
    head = hear(Head(), [clip + b"\x7f"])
    hear(head, [clip])
    heard = head.heard()
    assert len(heard) == 2 * 3200
    assert np.allclose(heard[:3200], heard[3200:], atol=2 / 32768)


def test_a_change_of_format_loses_nothing() -> None:
    async def main() -> Head:
        head = Head()
        await head.ears.hear(encode_audio(tone(100), PCM), PCM)
        await head.ears.hear(encode_audio(tone(100, 8000), MU_LAW), MU_LAW)
        await head.ears.flush()
        return head

    assert asyncio.run(main()).hearing.position == 3200


def test_sessions_side_by_side_hear_as_alone() -> None:
    clips = [encode_audio(tone(300, hz=200.0 + 50 * n), PCM) for n in range(5)]
    alone = [hear(Head(), split(clip, [333])) for clip in clips]

    async def together() -> list[Head]:
        heads = [Head() for _ in clips]

        async def feed(head: Head, clip: bytes) -> None:
            for piece in split(clip, [333]):
                await head.ears.hear(piece, PCM)
            await head.ears.flush()

        async with asyncio.TaskGroup() as group:
            for head, clip in zip(heads, clips, strict=True):
                group.create_task(feed(head, clip))
        return heads

    for one, other in zip(alone, asyncio.run(together()), strict=True):
        assert np.array_equal(one.heard(), other.heard())
        assert one.frames == other.frames


def test_a_broken_detector_is_reported_once_and_audio_goes_on() -> None:
    head = Head()
    head.cascade.detector_fails = True
    hear(head, [encode_audio(tone(200), PCM)])
    assert [error.code for error in head.failures] == ["vad_failed"]
    assert len(head.frames) == 6
    assert {frame.speech for frame in head.frames} == {0.0}
    head.cascade.detector_fails = False
    hear(head, [encode_audio(tone(200), PCM)])
    assert head.frames[-1].speech == 1.0


def test_a_wish_to_forget_is_granted_between_frames() -> None:
    head = Head()
    head.wants_reset = True
    hear(head, [encode_audio(tone(200), PCM)])
    assert head.detector.resets == 1


def test_a_long_append_lets_the_others_run() -> None:
    """15 MiB at once: the loop turns every other frame or oftener; the ring keeps its size."""

    async def main() -> tuple[int, Head]:
        head, turns, done = Head(), 0, False

        async def count() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        head.cascade.keep_frames = False
        counting = asyncio.create_task(count())
        await head.ears.hear(bytes(15 * 2**20), PCM)
        await head.ears.flush()
        done = True
        await counting
        return turns, head

    turns, head = asyncio.run(main())
    assert len(head.frames) == 15 * 2**20 // bytes_per_sample(PCM) * 2 // 3 // 512
    assert turns >= len(head.frames) // 2
    assert len(head.hearing.read(0, 0, head.hearing.position)) == 30 * 16_000
