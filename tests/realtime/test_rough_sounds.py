"""Sounds that are no conversation, and ears that are wrong about them: bounded turns, no storms."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.chat_server import ChatServer, event, streams
from pipelines.fakes.hearing import (
    SILENCE,
    SPEECH,
    FakeDetectorStage,
    FakeJudge,
    FakeRecogniser,
    by_frame,
)
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import FakeWriter, words
from pipelines.stages.llm_openai import OpenAIWriter
from pipelines.stages.llm_openai_client import OpenAIWriterOptions
from pipelines.types import HEARING_RATE_HZ
from realtime.runtime.simulate import Simulation, simulate
from realtime.session.notices import (
    InputCommitted,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
    SpeechStarted,
)
from tests.realtime.rough_calls import SETUP
from tests.realtime.runtime.stand_ins import silence, tone

FRAME_MS = 32


def hear(cascade: FakeCascade, duration_ms: int, *, quiet_ms: float = 0.0) -> Simulation:
    """Sound of this length, of which the scripted detector alone decides what it is."""

    async def main() -> Simulation:
        await cascade.start(lambda line: None)
        try:
            sound = np.concatenate([tone(duration_ms), silence(quiet_ms)])
            simulation = await simulate(sound, cascade, SETUP)
            assert cascade.active == 0 and simulation.open_requests == 0
            return simulation
        finally:
            await cascade.close()

    return run_virtual(main())


def count(simulation: Simulation, kind: type) -> int:
    return sum(isinstance(notice, kind) for _, notice in simulation.notices)


def answers(simulation: Simulation) -> list[ResponseStatus]:
    return [n.response.status for _, n in simulation.notices if isinstance(n, ResponseDone)]


@pytest.mark.parametrize(("text", "turns"), [("", 0), ("Thank you.", 1)])
def test_noise_that_is_taken_for_speech_is_a_turn_only_if_words_are_heard_in_it(
    text: str, turns: int
) -> None:
    """Nobody spoke: 256 ms of noise. A recogniser that makes words of it makes one turn, with one
    answer; the stage itself keeps such words back, the session believes what it is told."""
    cascade = FakeCascade(
        detector=FakeDetectorStage(by_frame([SILENCE] * 10 + [SPEECH] * 8)),
        recogniser=FakeRecogniser([text]),
        writer=FakeWriter([words("You are welcome.")]),
    )
    simulation = hear(cascade, 10_000)
    assert count(simulation, SpeechStarted) == 1
    assert count(simulation, InputCommitted) == turns
    assert answers(simulation) == [ResponseStatus.COMPLETED] * turns


@pytest.mark.parametrize(
    ("text", "judged"), [("", 0.3), ("", 0.9), ("la la la", 0.3), ("la la la", 0.9)]
)
def test_ten_minutes_of_music_on_hold_make_no_storm_of_replies(text: str, judged: float) -> None:
    """The detector wavers between 0.3 and 0.7, as it does over music.

    Without words nothing is answered. With words made up for it a turn is at most a few in a
    minute, since each needs speech, a pause that ends it, and an answer.
    """
    duration_ms = 10 * 60_000
    chance = random.Random(3)
    probabilities = [chance.uniform(0.3, 0.7) for _ in range(duration_ms // FRAME_MS)]
    cascade = FakeCascade(
        detector=FakeDetectorStage(by_frame(probabilities)),
        judge=FakeJudge([judged]),
        recogniser=FakeRecogniser([text]),
        writer=FakeWriter([words("Are you still there?")]),
    )
    simulation = hear(cascade, duration_ms, quiet_ms=10_000)
    turns, created = count(simulation, InputCommitted), count(simulation, ResponseCreated)
    assert created <= turns <= 10 * 6
    assert (turns > 0) is bool(text)
    assert len(answers(simulation)) == created
    assert max(samples for _, samples in cascade.recogniser.heard) <= 30 * HEARING_RATE_HZ


def test_somebody_who_never_stops_talking_is_heard_in_pieces_and_answered_at_the_end() -> None:
    """A turn is cut at 28 s: its text is kept and the listener stays silent until it is over."""
    spoken_ms = 5 * 60_000
    cascade = FakeCascade(
        detector=FakeDetectorStage(by_frame([SPEECH] * (spoken_ms // FRAME_MS))),
        recogniser=FakeRecogniser(["and so on"]),
        writer=FakeWriter([words("I see.")]),
    )
    simulation = hear(cascade, spoken_ms, quiet_ms=5000)
    pieces = count(simulation, InputCommitted)
    assert pieces == -(-spoken_ms // 28_000)
    assert answers(simulation)[-1] is ResponseStatus.COMPLETED
    assert answers(simulation).count(ResponseStatus.COMPLETED) == 1
    last_commit_ms = max(at for at, n in simulation.notices if isinstance(n, InputCommitted))
    first_answer_ms = min(at for at, n in simulation.notices if isinstance(n, ResponseCreated))
    assert first_answer_ms >= last_commit_ms
    # What is held for the recogniser never grows beyond one piece.
    assert max(samples for _, samples in cascade.recogniser.heard) <= 30 * HEARING_RATE_HZ
    (asked,) = cascade.writer.requests
    assert sum(message.text.count("and so on") for message in asked.messages) == pieces


def test_a_model_that_never_ends_is_cut_and_the_call_goes_on() -> None:
    """The remote writer's limit of characters ends the reply as one that was too long."""

    async def main() -> None:
        endless = [event(content="and again, ") for _ in range(5000)]
        server = ChatServer([streams(*endless)])
        async with server.listen():
            options = OpenAIWriterOptions(server.base_url, "m", output_limit_chars=1000)
            cascade = VoiceCascade(
                FakeDetectorStage(),
                FakeJudge(),
                FakeRecogniser(),
                OpenAIWriter(options),
                FakeSpeaker(ms_per_word=100),
                CascadeOptions(("tone",), "m"),
            )
            await cascade.start(lambda line: None)
            sound = np.concatenate([silence(500), tone(800), silence(30_000), tone(800)])
            simulation = await simulate(sound, cascade, SETUP, quiet_ms=30_000)
            await cascade.close()
        statuses = answers(simulation)
        assert statuses == [ResponseStatus.INCOMPLETE] * 2
        spoken_ms = sum(len(frame.samples) for _, frame in simulation.frames) / 24
        assert spoken_ms < 2 * 25_000

    asyncio.run(main())
