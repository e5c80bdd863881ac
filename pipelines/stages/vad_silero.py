"""Voice activity: Silero VAD v6. One model, one state per session, one thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime

from pipelines.ports import Progress
from pipelines.stages.onnx import first_use, open_session, run
from pipelines.types import DETECTOR_FRAME_SAMPLES, HEARING_RATE_HZ, Samples
from pipelines.weights import resolve
from pipelines.weights.catalogue import SILERO_VAD

CONTEXT_SAMPLES = 64  # of the last frame, which the model wants before each new one
STATE_SHAPE = (2, 1, 128)  # of the model's recurrent layers

_RATE = np.array(HEARING_RATE_HZ, np.int64)


class SileroDetector:
    """`pipelines.ports.DetectorStage`. A frame takes about 0.15 ms, so all sessions share a thread.

    That thread serves nothing else: no detector ever waits for a recogniser or a language model.
    """

    name = "silero"

    def __init__(self, model: Path | None = None) -> None:
        self._model = model
        self._session: onnxruntime.InferenceSession | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._open: set[SileroStream] = set()

    @property
    def active(self) -> int:
        return len(self._open)

    async def start(self, progress: Progress) -> None:
        """Load and run once. Raises WeightsError or StageError."""
        progress("voice activity: loading Silero")
        self._thread = ThreadPoolExecutor(1, "silero")
        self._session = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    async def close(self) -> None:
        for detector in list(self._open):
            detector.close()
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown)
        self._session = None

    def open(self) -> SileroStream:
        """Raises RuntimeError before `start` and after `close`."""
        if self._session is None or self._thread is None:
            raise RuntimeError("the detector is used before it was started, or after its end")
        detector = SileroStream(self._session, self._thread, self._open.discard)
        self._open.add(detector)
        return detector

    def _load(self) -> onnxruntime.InferenceSession:
        model = resolve(SILERO_VAD, self._model)
        with first_use(model):
            session = open_session(model, threads=1)
            _Memory(session).step(np.zeros(DETECTOR_FRAME_SAMPLES, np.float32))
        return session


class SileroStream:
    """`pipelines.ports.Detector`: one session's detector."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        thread: ThreadPoolExecutor,
        on_close: Callable[[SileroStream], None],
    ) -> None:
        self._session = session
        self._thread = thread
        self._on_close = on_close
        self._memory = _Memory(session)
        self._closed = False

    async def step(self, frame: Samples) -> float:
        """Raises ValueError for another frame length, RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("the detector is used after its end")
        if frame.shape != (DETECTOR_FRAME_SAMPLES,):
            raise ValueError(f"a frame has {DETECTOR_FRAME_SAMPLES} samples, not {frame.shape}")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._memory.step, frame)

    def reset(self) -> None:
        self._memory = _Memory(self._session)

    def close(self) -> None:
        self._closed = True
        self._on_close(self)


class _Memory:
    """What the model remembers of one signal."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._state = np.zeros(STATE_SHAPE, np.float32)
        self._context = np.zeros(CONTEXT_SAMPLES, np.float32)

    def step(self, frame: Samples) -> float:
        heard = np.concatenate([self._context, frame])
        self._context = heard[-CONTEXT_SAMPLES:]
        inputs = {"input": heard[None], "state": self._state, "sr": _RATE}
        probability, self._state = run(self._session, inputs)
        return float(probability[0, 0])
