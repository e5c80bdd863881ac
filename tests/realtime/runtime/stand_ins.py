"""A cascade, a transport and a machine that do exactly what a test says."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import numpy as np

from pipelines.ports import Capacity, Progress
from pipelines.types import (
    Finished,
    FinishReason,
    RecogniseRequest,
    ReplyOutput,
    ReplyRequest,
    Samples,
    SpeakRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    Transcript,
    Urgency,
    WordEnd,
)
from realtime.runtime.transport import TransportClosed
from realtime.session.effects import Effect
from realtime.session.events import Event, Tick
from realtime.session.states import Lifecycle

RATE_HZ = 24_000
WORD_MS = 100.0  # of a scripted speech


def tone(duration_ms: float, rate_hz: int = RATE_HZ, hz: float = 440.0) -> Samples:
    count = int(rate_hz * duration_ms / 1000)
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(count) / rate_hz)).astype(np.float32)


def silence(duration_ms: float, rate_hz: int = RATE_HZ) -> Samples:
    return np.zeros(int(rate_hz * duration_ms / 1000), dtype=np.float32)


def pcm(samples: Samples) -> bytes:
    return np.rint(np.clip(samples * 32768, -32768, 32767)).astype("<i2").tobytes()


def append(audio: bytes) -> str:
    return json.dumps(
        {"type": "input_audio_buffer.append", "audio": base64.b64encode(audio).decode()}
    )


class EnergyDetector:
    """Speech is what is louder than -40 dBFS."""

    def __init__(self, cascade: ScriptedCascade) -> None:
        self._cascade = cascade
        self.frames: list[Samples] = []
        self.resets = 0
        self.is_closed = False

    async def step(self, frame: Samples) -> float:
        if self._cascade.keep_frames:
            self.frames.append(frame)
        if self._cascade.detector_fails:
            raise StageError("vad_failed", "the detector is broken")
        return 1.0 if float(np.sqrt(np.mean(frame**2))) > 0.01 else 0.0

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.is_closed = True


class ScriptedStream:
    """One request; `script` yields its outputs."""

    def __init__(self, cascade: ScriptedCascade, script: Callable[[], AsyncIterator[Any]]) -> None:
        self._cascade = cascade
        self._script = script
        self.pushed: list[Samples] = []
        self.urgencies: list[Urgency] = []
        self.is_aborted = False
        self.has_finished = asyncio.Event()  # nothing more is pushed
        self.holds: list[bool] = []
        self.may_speak = asyncio.Event()
        self.may_speak.set()
        self._is_open = True
        cascade.active += 1

    async def push(self, item: Any) -> None:
        self.pushed.append(item)

    async def finish(self) -> None:
        self.has_finished.set()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for output in self._script():
            yield output
        self._close()

    def abort(self) -> None:
        self.is_aborted = True
        self._close()

    def hurry(self, urgency: Urgency) -> None:
        self.urgencies.append(urgency)

    def hold_speech(self, is_held: bool) -> None:
        self.holds.append(is_held)
        if is_held:
            self.may_speak.clear()
        else:
            self.may_speak.set()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._cascade.active -= 1


class ScriptedSpeech(ScriptedStream):
    """Every push is said as one word of `WORD_MS`, at once; flushes: the pushes before each."""

    def __init__(self, cascade: ScriptedCascade) -> None:
        super().__init__(cascade, self._speak)
        self.flushes: list[int] = []
        self._texts: asyncio.Queue[str | None] = asyncio.Queue()
        self._is_over = asyncio.Event()

    async def push(self, item: str) -> None:
        await super().push(item)
        self._texts.put_nowait(item)

    async def flush(self) -> None:
        self.flushes.append(len(self.pushed))

    async def finish(self) -> None:
        await super().finish()
        self._texts.put_nowait(None)

    def abort(self) -> None:
        super().abort()
        self._texts.put_nowait(None)
        self._is_over.set()

    async def _speak(self) -> AsyncIterator[SpeechDelta]:
        said = words = 0
        while (text := await self._texts.get()) is not None and not self.is_aborted:
            if words >= self._cascade.speech_words:
                break
            await self._pass_gate()
            samples = tone(WORD_MS)
            over = WordEnd(len(samples), said + len(text.rstrip()))
            said += len(text)
            if text.strip() and not self.is_aborted:
                words += 1
                yield SpeechDelta(samples, RATE_HZ, said, (over,))
        if self._cascade.speech_error is not None and not self.is_aborted:
            raise self._cascade.speech_error

    async def _pass_gate(self) -> None:
        if self._cascade.speech_gate is None:
            return
        waits = [
            asyncio.ensure_future(event.wait())
            for event in (self._cascade.speech_gate, self._is_over)
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


class ScriptedCascade:
    """Everything answers at once; `gate` events hold it back where a test wants that."""

    voices = ("default",)
    copies_voices = True
    model = "scripted"
    stats = ()
    capacity: Capacity | None = None

    def __init__(
        self,
        *,
        texts: Sequence[str] = ("hello",),
        reply: Sequence[ReplyOutput] | None = None,
        probability: float = 0.95,
    ) -> None:
        self.active = 0
        self.texts = list(texts)
        self.outputs = list(reply) if reply is not None else spoken_reply("Good day to you.")
        self.probability = probability
        self.keep_frames = False
        self.detector_fails = False
        self.judge_gate: asyncio.Event | None = None
        self.recognise_gate: asyncio.Event | None = None
        self.reply_gate: asyncio.Event | None = None
        self.reply_error: Exception | None = None
        self.speech_gate: asyncio.Event | None = None
        self.speech_error: Exception | None = None  # raised where a speech ends
        self.speech_words = 1_000_000  # after which it ends, whatever is pushed
        self.detectors: list[EnergyDetector] = []
        self.heard: list[Samples] = []
        self.has_heard = asyncio.Event()
        self.judged: list[Samples] = []
        self.requests: list[ReplyRequest] = []
        self.streams: list[ScriptedStream] = []
        self.speak_requests: list[SpeakRequest] = []
        self.speeches: list[ScriptedSpeech] = []
        self.calls: Counter[str] = Counter()

    async def start(self, progress: Progress) -> None:
        pass

    async def close(self) -> None:
        pass

    def detect(self) -> EnergyDetector:
        self.detectors.append(EnergyDetector(self))
        return self.detectors[-1]

    async def judge(self, audio: Samples) -> float:
        self.judged.append(audio)
        if self.judge_gate is not None:
            await self.judge_gate.wait()
        return self.probability

    def recognise(self, request: RecogniseRequest) -> ScriptedStream:
        text = self.texts[min(self.calls["recognise"], len(self.texts) - 1)]
        self.calls["recognise"] += 1

        async def script() -> AsyncIterator[Transcript]:
            await stream.has_finished.wait()
            if self.recognise_gate is not None:
                await self.recognise_gate.wait()
            self.heard.append(np.concatenate(stream.pushed))
            self.has_heard.set()
            yield Transcript(text, is_final=True)

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        return stream

    def reply(self, request: ReplyRequest) -> ScriptedStream:
        self.calls["reply"] += 1
        self.requests.append(request)

        async def script() -> AsyncIterator[ReplyOutput]:
            if self.reply_gate is not None:
                await self.reply_gate.wait()
            for output in self.outputs:
                if isinstance(output, SpeechDelta):
                    await stream.may_speak.wait()
                yield output
            if self.reply_error is not None:
                raise self.reply_error

        stream = ScriptedStream(self, script)
        self.streams.append(stream)
        return stream

    def speak(self, request: SpeakRequest) -> ScriptedSpeech:
        self.calls["speak"] += 1
        self.speak_requests.append(request)
        self.speeches.append(ScriptedSpeech(self))
        return self.speeches[-1]


def spoken_reply(text: str, audio_ms: float = 2000, rate_hz: int = RATE_HZ) -> list[ReplyOutput]:
    return [
        TextDelta(text),
        SpeechDelta(tone(audio_ms, rate_hz), rate_hz, len(text)),
        Finished(FinishReason.STOP),
    ]


class PipeTransport:
    """A socket in memory. `stalls`: sending waits for ever."""

    def __init__(self) -> None:
        self._inbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.changed = asyncio.Event()
        self.stalls = False
        self.breaks = False
        self.closed: tuple[int, str] | None = None
        self.is_closed = asyncio.Event()
        self.client_close_code: int | None = None

    def client_sends(self, *events: dict[str, Any] | str | bytes) -> None:
        for event in events:
            self._inbox.put_nowait(json.dumps(event) if isinstance(event, dict) else event)

    def client_leaves(self, code: int | None = None) -> None:
        self.client_close_code = code
        self._inbox.put_nowait(None)

    @property
    def unread(self) -> int:
        return self._inbox.qsize()

    async def receive(self) -> str | bytes | None:
        return await self._inbox.get()

    async def send(self, text: str) -> None:
        if self.breaks:
            raise TransportClosed
        if self.stalls:
            await asyncio.Event().wait()
        self.sent.append(json.loads(text))
        self.changed.set()

    async def close(self, code: int, reason: str) -> None:
        if self.closed is None:
            self.closed = (code, reason)
            self.is_closed.set()
            self.client_leaves()

    def types(self) -> list[str]:
        return [event["type"] for event in self.sent]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.sent if event["type"] == kind]

    async def until(self, kind: str, count: int = 1, timeout_s: float = 60.0) -> dict[str, Any]:
        """The count-th event of this type."""
        async with asyncio.timeout(timeout_s):
            while len(self.of(kind)) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.of(kind)[count - 1]

    def audio(self) -> Samples:
        deltas = [base64.b64decode(e["delta"]) for e in self.of("response.output_audio.delta")]
        return np.frombuffer(b"".join(deltas), dtype="<i2").astype(np.float32) / np.float32(32768)


class ScriptedMachine:
    """Effects by event, from a function; remembers what it was told."""

    def __init__(self, react: Callable[[Event], list[Effect]]) -> None:
        self._react = react
        self.events: list[tuple[float, Event]] = []
        self.deadline_ms: float | None = None
        self.is_satisfied_by_ticks = False
        self.lifecycle = Lifecycle.LIVE

    def step(self, event: Event, now_ms: float) -> list[Effect]:
        self.events.append((now_ms, event))
        if self.is_satisfied_by_ticks and isinstance(event, Tick):
            self.deadline_ms = None
        return self._react(event)

    def next_deadline_ms(self) -> float | None:
        return self.deadline_ms
