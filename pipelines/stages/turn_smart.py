"""End of turn: Smart Turn v3.2 hears whether a speaker has finished, from sound alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

from pipelines.ports import Progress
from pipelines.runtime.ticket import Ticket
from pipelines.stages.mel import log_mel
from pipelines.stages.onnx import first_use, open_session, run
from pipelines.types import HEARING_RATE_HZ, Samples, Urgency
from pipelines.weights import resolve
from pipelines.weights.catalogue import SMART_TURN

WINDOW_SAMPLES = 8 * HEARING_RATE_HZ  # what the model was trained on, silence on the left
VARIANCE_FLOOR = 1e-7  # silence is scaled to silence


class SmartTurnJudge:
    """`pipelines.ports.Judge`. About 60 ms a question, in a thread of its own."""

    name = "smart_turn"

    def __init__(self, model: Path | None = None) -> None:
        self._model = model
        self._session: onnxruntime.InferenceSession | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def start(self, progress: Progress) -> None:
        """Load and run once. Raises WeightsError or StageError."""
        progress("end of turn: loading Smart Turn")
        self._thread = ThreadPoolExecutor(1, "smart-turn")
        self._session = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(thread.shutdown)
        self._session = None

    async def ask(self, audio: Samples) -> float:
        """Raises RuntimeError before `start` and after `close`."""
        if self._session is None or self._thread is None:
            raise RuntimeError("the judge is used before it was started, or after its end")
        # The caller may go on filling its buffer while the question waits for the thread.
        window = audio[-WINDOW_SAMPLES:].copy()
        loop = asyncio.get_running_loop()
        ticket = Ticket(self.name, Urgency.FIRST_AUDIO)
        ask = partial(_probability, self._session, window, ticket)
        try:
            return await loop.run_in_executor(self._thread, ask)
        finally:
            ticket.abort()  # a question that is dropped keeps the next one waiting no longer

    def _load(self) -> onnxruntime.InferenceSession:
        model = resolve(SMART_TURN, self._model)
        with first_use(model):
            session = open_session(model, threads=1)
            _probability(session, np.zeros(HEARING_RATE_HZ, np.float32))
        return session


def _probability(
    session: onnxruntime.InferenceSession, audio: Samples, ticket: Ticket | None = None
) -> float:
    padded = np.pad(audio, (WINDOW_SAMPLES - len(audio), 0))
    scaled = (padded - padded.mean()) / np.sqrt(padded.var() + VARIANCE_FLOOR)
    outputs = run(session, {"input_features": log_mel(scaled.astype(np.float32))[None]}, ticket)
    # The output is called logits, but is the probability itself.
    return float(outputs[0].ravel()[0])
