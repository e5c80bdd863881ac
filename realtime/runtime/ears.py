"""One session's hearing front end: bytes of the wire to 32 ms frames, judged for speech."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import numpy as np

from pipelines.ports import Detector
from pipelines.types import DETECTOR_FRAME_SAMPLES, HEARING_RATE_HZ, Samples, StageError
from realtime.audio.level import level_dbfs
from realtime.audio.seam import Seam
from realtime.runtime.hearing import Hearing
from realtime.runtime.time_limit import TimeLimit
from realtime.runtime.wire_input import open_input
from realtime.session.events import AudioFrame
from realtime.session.settings import AudioFormat

log = logging.getLogger(__name__)

_SEAM_SAMPLES = HEARING_RATE_HZ * 5 // 1000  # of a change of format: long enough to hide a click
_DETECTOR_DEADLINE_S = 2.0  # a detector that takes longer is stuck; a frame takes well under 1 ms


class Ears:
    """Audio time is what `hearing` has been given.

    on_frame: gets an AudioFrame for every whole 32 ms, right after it was written.
    on_failure: told once when the detector fails, and again only after it has recovered.
    before_frame: awaited before each frame; waits while the machine is asking for a verdict.
    take_reset: whether the machine wants the detector to forget, asked once per frame.
    """

    def __init__(
        self,
        *,
        hearing: Hearing,
        detector: Detector,
        on_frame: Callable[[AudioFrame], None],
        on_failure: Callable[[StageError], None],
        before_frame: Callable[[], Awaitable[None]],
        take_reset: Callable[[], bool],
        audio_format: AudioFormat,
    ) -> None:
        self._hearing = hearing
        self._detector = detector
        self._on_frame = on_frame
        self._on_failure = on_failure
        self._before_frame = before_frame
        self._take_reset = take_reset
        self._input = open_input(audio_format)
        self._seam: Seam | None = None
        self._frame: Samples = np.zeros(DETECTOR_FRAME_SAMPLES, dtype=np.float32)
        self._filled = 0
        self._has_failed = False
        self._limit = TimeLimit(_DETECTOR_DEADLINE_S)

    def close(self) -> None:
        self._limit.close()

    async def hear(self, audio: bytes, audio_format: AudioFormat) -> None:
        """Bytes in the given format; a change of format first flushes what the old one holds.

        Raises BadPacket; nothing of such an append is heard, and the next one may follow.
        """
        if audio_format != self._input.format:
            await self._change(audio_format)
        for samples in self._input.convert(audio, DETECTOR_FRAME_SAMPLES - self._filled):
            await self._take(samples if self._seam is None else self._join(samples))

    def restart(self) -> None:
        """Forget what has come and is not heard yet: what comes next does not follow on it."""
        self._input = open_input(self._input.format)
        self._seam = None
        self._filled = 0

    async def flush(self) -> None:
        """Everything received so far becomes heard; half a sample at the end is none."""
        for samples in self._input.rest():
            await self._take(samples if self._seam is None else self._join(samples))

    async def _change(self, audio_format: AudioFormat) -> None:
        await self.flush()
        self._input = open_input(audio_format)
        # The latest sample heard: where the frame is filled to, or its end.
        self._seam = Seam(float(self._frame[self._filled - 1]), _SEAM_SAMPLES)

    def _join(self, samples: Samples) -> Samples:
        assert self._seam is not None  # the caller has seen it
        joined = self._seam.join(samples)
        if self._seam.is_over:
            self._seam = None
        return joined

    async def _take(self, samples: Samples) -> None:
        """float32 [n] at 16 kHz, written up to each frame's end before that frame is judged."""
        while len(samples):
            if not self._filled:
                await self._before_frame()
            count = min(len(samples), DETECTOR_FRAME_SAMPLES - self._filled)
            piece, samples = samples[:count], samples[count:]
            self._frame[self._filled : self._filled + count] = piece
            self._filled += count
            self._hearing.write(piece)
            if self._filled == DETECTOR_FRAME_SAMPLES:
                self._filled = 0
                await self._detect()
                if len(samples):
                    # A detector that answers at once must not keep everybody else from running.
                    await asyncio.sleep(0)

    async def _detect(self) -> None:
        if self._take_reset():
            self._detector.reset()
        frame = self._frame.copy()
        speech = 0.0
        try:
            with self._limit:
                speech = await self._detector.step(frame)
            self._has_failed = False
        except (StageError, TimeoutError) as error:
            self._report(error)
        self._on_frame(AudioFrame(self._hearing.position, float(speech), level_dbfs(frame)))

    def _report(self, error: Exception) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        if not isinstance(error, StageError):
            error = StageError("vad_timeout", "The voice activity detector did not answer in time.")
        log.warning("the detector failed: %s: %s", error.code, error.message)
        self._on_failure(error)
