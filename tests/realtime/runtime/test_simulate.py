"""Sessions faster than real time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Samples
from realtime.protocol.decode import decode
from realtime.protocol.messages import ClientMessage
from realtime.runtime.egress import DEFAULT_LEAD_MS
from realtime.runtime.shell import SessionSetup
from realtime.runtime.simulate import Simulation, simulate
from realtime.session.notices import (
    InputCommitted,
    ResponseDone,
    ResponseStatus,
    SpeechStarted,
)
from realtime.session.settings import SessionSettings
from tests.realtime.runtime.stand_ins import ScriptedCascade, silence, spoken_reply, tone

Kind = TypeVar("Kind")
SETUP = SessionSetup(SessionSettings(), seed=5)


def run(
    audio: Samples,
    cascade: ScriptedCascade,
    messages: Sequence[tuple[float, ClientMessage]] = (),
    quiet_ms: float = 0.0,
) -> Simulation:
    return asyncio.run(simulate(audio, cascade, SETUP, messages=messages, quiet_ms=quiet_ms))


def of(simulation: Simulation, kind: type[Kind]) -> list[tuple[float, Kind]]:
    return [(at_ms, notice) for at_ms, notice in simulation.notices if isinstance(notice, kind)]


def test_half_an_hour_of_silence_commits_no_turn() -> None:
    simulation = run(silence(30 * 60_000), ScriptedCascade())
    assert simulation.duration_ms == pytest.approx(30 * 60_000, abs=64)
    assert of(simulation, SpeechStarted) == [] and of(simulation, InputCommitted) == []
    assert simulation.open_requests == 0


def test_turns_are_answered_at_the_pace_of_their_playing() -> None:
    cascade = ScriptedCascade(reply=spoken_reply("Good day.", audio_ms=3000))
    audio = np.concatenate([silence(500), tone(1000), silence(6000)])
    simulation = run(audio, cascade)
    done = of(simulation, ResponseDone)
    assert [notice.response.status for _, notice in done] == [ResponseStatus.COMPLETED]
    assert sum(len(frame.samples) for _, frame in simulation.frames) == 72_000
    first_ms, last_ms = simulation.frames[0][0], simulation.frames[-1][0]
    assert last_ms - first_ms == pytest.approx(3000 - DEFAULT_LEAD_MS, abs=72)
    assert cascade.active == 0 and simulation.open_requests == 0


def test_two_runs_are_the_same() -> None:
    audio = np.concatenate([silence(300), tone(800), silence(900), tone(600), silence(1500)])
    first, second = (run(audio, ScriptedCascade()) for _ in range(2))
    assert first.notices == second.notices
    assert len(first.frames) == len(second.frames)


def test_the_client_may_speak_by_events_too() -> None:
    create = decode('{"type": "response.create"}')
    simulation = run(silence(500), ScriptedCascade(), messages=[(200.0, create)], quiet_ms=4000)
    (done,) = of(simulation, ResponseDone)
    assert 200 <= done[0] <= 4500


def test_a_stage_that_never_answers_is_an_error() -> None:
    async def main() -> None:
        cascade = ScriptedCascade()
        cascade.reply_gate = asyncio.Event()
        create = decode('{"type": "response.create"}')
        with pytest.raises(ExceptionGroup) as caught:
            await simulate(silence(500), cascade, SETUP, messages=[(0.0, create)])
        assert caught.group_contains(TimeoutError)
        assert cascade.active == 0

    run_virtual(main())
