"""A whole session over a recording, faster than real time, on a clock that follows the audio.

Answers of the judge and the recogniser arrive in the frame in which they were asked for, replies
as soon as they are made: what is simulated is a machine that is fast enough. Decisions are then
the same in every run, and as many minutes pass as the stages allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipelines.ports import Cascade, Detector
from pipelines.types import DETECTOR_FRAME_SAMPLES, HEARING_RATE_HZ, Samples
from realtime.observe.metrics import Metrics
from realtime.protocol.formats import encode_audio
from realtime.protocol.messages import AppendAudio, ClientMessage
from realtime.runtime.clock import ManualClock
from realtime.runtime.conversation import Conversation
from realtime.runtime.driver import Recorder
from realtime.runtime.egress import Egress, Frame
from realtime.runtime.outlet import Clip
from realtime.runtime.shell import SessionSetup, Shell
from realtime.session.effects import TellConversation
from realtime.session.items import Item
from realtime.session.machine import Machine
from realtime.session.notices import Detail, ItemRetrieved, Notice
from realtime.session.settings import AudioFormat

_STEP_MS = DETECTOR_FRAME_SAMPLES * 1000 // HEARING_RATE_HZ
_ANSWER_DEADLINE_S = 60.0  # real: for all that one frame has set off


@dataclass(slots=True)
class Simulation:
    """What a client would have been told and sent, each with the virtual time in ms."""

    notices: list[tuple[float, Notice]] = field(default_factory=list[tuple[float, Notice]])
    frames: list[tuple[float, Frame]] = field(default_factory=list[tuple[float, Frame]])
    duration_ms: float = 0.0
    open_requests: int = 0  # left over at the end; zero unless something leaks
    closed: tuple[int, str] | None = None


class _Watcher:
    """An outlet that writes everything down."""

    def __init__(self, clock: ManualClock, simulation: Simulation) -> None:
        self._clock = clock
        self._simulation = simulation
        self.has_audio_room = True

    def tell(self, notice: Notice) -> None:
        self._simulation.notices.append((self._clock.now_ms(), notice))

    def tell_detail(self, detail: Detail) -> None:
        pass  # a simulated client asks for none

    def tell_conversation(self, told: TellConversation) -> None:
        pass  # a simulated client is never lost

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        self.tell(ItemRetrieved(item))

    def send(self, frame: Frame) -> None:
        self._simulation.frames.append((self._clock.now_ms(), frame))

    def first_stale(self, lane: str) -> Frame | None:
        return None  # nothing waits for a socket here

    def close(self, code: int, reason: str) -> None:
        self._simulation.closed = (code, reason)


async def simulate(
    audio: Samples,
    cascade: Cascade,
    setup: SessionSetup,
    *,
    messages: Sequence[tuple[float, ClientMessage]] = (),
    quiet_ms: float = 0.0,
    conversation: Conversation | None = None,
    recorder: Recorder | None = None,
    metrics: Metrics | None = None,
) -> Simulation:
    """Run float32 [n], at the rate of the session's input format, through a session.

    messages: (virtual ms, what the client sends then), in order; audio is sent by itself.
    quiet_ms: how much longer to run after the audio, with nothing coming in.
    Raises TimeoutError when the stages do not answer, and whatever the machine raises.
    """
    simulation = Simulation()
    clock = ManualClock()
    detector = cascade.detect()
    try:
        async with asyncio.TaskGroup() as group:
            shell = _assemble(
                group, cascade, detector, clock, setup, simulation, conversation, recorder, metrics
            )
            driving = group.create_task(shell.driver.run(), name="driver")
            shell.driver.handle(setup.opened())
            waiting = list(messages)
            for chunk in _chunks(audio, setup.settings.input_format, quiet_ms):
                while waiting and waiting[0][0] <= clock.now_ms():
                    await shell.ingress.handle(waiting.pop(0)[1])
                if chunk is not None:
                    await shell.ingress.handle(AppendAudio(None, chunk))
                await _settle(shell)
                clock.advance(_STEP_MS)
                await _settle(shell)
                if shell.driver.is_over:
                    break
            simulation.duration_ms = clock.now_ms()
            shell.driver.lose_client()
            await driving
            shell.close()
            while shell.works.open_requests:
                shell.works.changed.clear()
                await shell.works.changed.wait()
            simulation.open_requests = shell.works.open_requests
    finally:
        detector.close()
    return simulation


def _assemble(
    group: asyncio.TaskGroup,
    cascade: Cascade,
    detector: Detector,
    clock: ManualClock,
    setup: SessionSetup,
    simulation: Simulation,
    conversation: Conversation | None,
    recorder: Recorder | None,
    metrics: Metrics | None,
) -> Shell:
    return Shell(
        group=group,
        cascade=cascade,
        detector=detector,
        egress=Egress(setup.lead_ms),
        outlet=_Watcher(clock, simulation),
        conversation=conversation or Machine(),
        clock=clock,
        setup=setup,
        metrics=metrics or Metrics(),
        recorder=recorder,
    )


def _chunks(audio: Samples, audio_format: AudioFormat, quiet_ms: float) -> Iterator[bytes | None]:
    """The audio in wire bytes, 32 ms at a time; then None for every 32 ms of nothing."""
    step = audio_format.rate_hz * _STEP_MS // 1000
    for start in range(0, len(audio), step):
        yield encode_audio(audio[start : start + step], audio_format)
    for _ in range(int(np.ceil(quiet_ms / _STEP_MS))):
        yield None


async def _settle(shell: Shell) -> None:
    """Until nothing more happens at this moment of virtual time."""
    async with asyncio.timeout(_ANSWER_DEADLINE_S):
        while shell.works.is_busy or not shell.driver.is_idle:
            if shell.driver.is_over:
                return
            if shell.driver.is_idle:
                shell.works.changed.clear()
                await shell.works.changed.wait()
            else:
                await asyncio.sleep(0)
