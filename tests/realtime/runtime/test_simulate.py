"""Sessions faster than real time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import Call, FakeWriter, words
from pipelines.types import Samples
from realtime.protocol.decode import decode
from realtime.protocol.messages import ClientMessage
from realtime.runtime.egress import DEFAULT_LEAD_MS
from realtime.runtime.shell import SessionSetup
from realtime.runtime.simulate import Simulation, simulate
from realtime.session.notices import (
    ArgumentsDone,
    InputCommitted,
    ResponseCreated,
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


def test_a_long_reply_is_written_at_once_and_spoken_at_the_pace_of_its_playing() -> None:
    """The writer takes real time, of which a simulation knows nothing."""
    text = "There is so much more to say now. " * 20
    script = [*words(text, 10, 2), Call("look", "{}")]
    create = decode('{"type": "response.create"}')

    found: list[Simulation] = []  # a result of `main` would be printed by the runner, for seconds

    async def main() -> None:
        cascade = FakeCascade(
            writer=FakeWriter([script]), speaker=FakeSpeaker(ms_per_word=300), voices=("default",)
        )
        await cascade.start(lambda line: None)
        try:
            found.append(
                await simulate(
                    silence(320), cascade, SETUP, messages=[(200.0, create)], quiet_ms=60_000
                )
            )
        finally:
            await cascade.close()
        assert cascade.active == 0

    run_virtual(main())
    (simulation,) = found
    ((created_ms, _),) = of(simulation, ResponseCreated)
    ((called_ms, _),) = of(simulation, ArgumentsDone)
    ((done_ms, done),) = of(simulation, ResponseDone)
    assert called_ms == created_ms, "though the words before it have just begun to sound"
    assert done.response.status is ResponseStatus.COMPLETED
    sounded_ms = sum(frame.duration_ms for _, frame in simulation.frames)
    assert sounded_ms == pytest.approx(160 * 300, abs=1)
    assert done_ms - created_ms == pytest.approx(sounded_ms - DEFAULT_LEAD_MS, abs=150)


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
