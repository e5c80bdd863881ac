"""Models that misbehave in a call: every turn comes to an end that is heard or told."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

import numpy as np
import pytest

from pipelines.cascade import CascadeOptions, VoiceCascade
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.hearing import FakeDetectorStage, FakeJudge, FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import Call, End, Fail, FakeWriter, Say, Script, Stall, Step, words
from pipelines.text.chunker import MOST_CHARS
from pipelines.types import (
    FinishReason,
    Message,
    ReplyOutput,
    ReplyRequest,
    SpeechDelta,
    StageError,
    TextDelta,
    Urgency,
)
from realtime.settings import Replies, Settings
from realtime.stage_settings import OpenAIWriter, Scripted, Stages
from realtime.stages import create_cascade
from tests.realtime.rough_calls import (
    APOLOGY,
    EMPTY,
    SETUP,
    TIMING,
    WORD_SAMPLES,
    Caller,
    VoiceThatFailsOnce,
    call,
    problem,
    said,
    silent_voice,
)
from tests.realtime.runtime.stand_ins import tone

FILTERED = End(FinishReason.CONTENT_FILTER)
UNREACHABLE = StageError("llm_unreachable", "nobody is there")


def cascade_of(*scripts: Script, speaker: FakeSpeaker | None = None) -> FakeCascade:
    return FakeCascade(writer=FakeWriter(scripts), speaker=speaker, timing=TIMING)


def spoken_by_assistant(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.role == "assistant"]


# ---- the language model --------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["***", "---\n\n***\n", "🙂", "🎉🎉🎉"])
def test_a_model_that_writes_only_markup_or_emoji_is_answered_for(text: str) -> None:
    cascade = cascade_of([Say(text)], words("Good day to you."))

    async def talk(caller: Caller) -> None:
        first = await caller.ask()
        assert first["status"] == "completed" and said(first) == [text]
        assert caller.heard_samples == len(EMPTY.split()) * WORD_SAMPLES
        second = await caller.ask(2)
        assert said(second) == ["Good day to you."]

    call(cascade, talk)


def test_a_model_that_says_nothing_is_answered_for_in_words() -> None:
    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "completed" and said(response) == [EMPTY]
        assert caller.transcript == EMPTY

    call(cascade_of([]), talk)


def test_a_sentence_of_ten_thousand_words_is_spoken_early_and_stopped_at_once() -> None:
    cascade = cascade_of(words("again and " * 5000), words("Yes."))

    async def talk(caller: Caller) -> None:
        await caller.talk(np.concatenate([tone(800), np.zeros(24 * 700, np.float32)]))
        await caller.transport.until("response.created", timeout_s=5)
        began_s = asyncio.get_running_loop().time()
        await caller.transport.until("response.output_audio.delta")
        assert asyncio.get_running_loop().time() - began_s < 0.5
        await caller.talk(np.zeros(24 * 3000, np.float32))
        # A pause of the voice stops the writer: what waits is bounded, whatever is to come.
        pieces = [text for _, text in cascade.speaker.pushed]
        assert len(pieces) < 200 and max(map(len, pieces)) <= MOST_CHARS
        await caller.talk(tone(1300))
        done = await caller.transport.until("response.done", timeout_s=0.1)
        assert done["response"]["status_details"]["reason"] == "turn_detected"
        made = len(cascade.speaker.pushed)
        await caller.talk(np.zeros(24 * 500, np.float32))
        assert len([text for _, text in cascade.speaker.pushed if "again" in text]) == made
        second = await caller.transport.until("response.done", 2)
        assert said(second["response"]) == ["Yes."]

    call(cascade, talk)


def test_a_model_that_cannot_be_reached_is_excused_aloud_and_asked_again_at_the_next_turn() -> None:
    cascade = cascade_of([Fail(UNREACHABLE)], words("Good day to you."))

    async def talk(caller: Caller) -> None:
        first = await caller.ask()
        assert first["status"] == "failed" and problem(first) == "llm_unreachable"
        assert said(first) == [APOLOGY] and caller.transcript == APOLOGY
        assert caller.heard_samples == len(APOLOGY.split()) * WORD_SAMPLES
        assert caller.transport.of("error")[0]["error"]["code"] == "llm_unreachable"
        second = await caller.ask(2)
        assert second["status"] == "completed" and said(second) == ["Good day to you."]

    call(cascade, talk)
    # The apology was heard, so the model knows of it.
    assert spoken_by_assistant(cascade.writer.requests[1].messages) == [APOLOGY]


def test_a_model_that_never_begins_gets_a_filler_then_an_apology_in_bounded_time() -> None:
    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "failed" and problem(response) == "stage_timeout"
        assert said(response) == [APOLOGY]
        spoken = 2 + len(APOLOGY.split())
        assert caller.heard_samples == spoken * WORD_SAMPLES
        assert asyncio.get_running_loop().time() < 30

    call(cascade_of([Stall()]), talk)


def test_a_model_that_thinks_longer_than_a_reply_may_stall_is_waited_for_after_a_filler() -> None:
    timing = replace(TIMING, writer_timeout_ms=40_000, stall_timeout_ms=50_000)
    writer = FakeWriter([words("So it is.", first_ms=25_000)])

    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "completed" and said(response) == ["So it is."]
        assert caller.heard_samples == (2 + 3) * WORD_SAMPLES

    call(FakeCascade(writer=writer, timing=timing), talk)


def test_a_filler_is_in_no_transcript_and_in_no_history() -> None:
    cascade = cascade_of(words("So it is.", first_ms=3000), words("Yes."))

    async def talk(caller: Caller) -> None:
        first = await caller.ask()
        assert said(first) == ["So it is."] and caller.transcript == "So it is."
        assert caller.heard_samples == (2 + 3) * WORD_SAMPLES
        await caller.ask(2)

    call(cascade, talk)
    assert spoken_by_assistant(cascade.writer.requests[1].messages) == ["So it is."]


def test_a_filler_can_be_interrupted_and_leaves_nothing_behind() -> None:
    cascade = cascade_of([Stall()], words("Yes."))

    async def talk(caller: Caller) -> None:
        await caller.talk(np.concatenate([tone(800), np.zeros(24 * 700, np.float32)]))
        await caller.transport.until("response.output_audio.delta", timeout_s=5)
        await caller.talk(np.concatenate([tone(800), np.zeros(24 * 700, np.float32)]))
        first = await caller.transport.until("response.done")
        assert first["response"]["status"] == "cancelled" and said(first["response"]) == [""]
        second = await caller.transport.until("response.done", 2)
        assert said(second["response"]) == ["Yes."]

    call(cascade, talk)
    assert spoken_by_assistant(cascade.writer.requests[1].messages) == []


def test_noise_that_cuts_a_filler_short_does_not_cost_the_answer() -> None:
    """Nothing of the reply was said yet: the question is asked anew, not gone on from."""
    cascade = FakeCascade(
        recogniser=FakeRecogniser(["What is it?", "", ""]),
        writer=FakeWriter([[Stall()], words("So it is.")]),
        timing=TIMING,
    )

    async def talk(caller: Caller) -> None:
        await caller.talk(np.concatenate([tone(800), np.zeros(24 * 700, np.float32)]))
        await caller.transport.until("response.output_audio.delta", timeout_s=5)
        await caller.talk(np.concatenate([tone(1000), np.zeros(24 * 1500, np.float32)]))
        second = await caller.transport.until("response.done", 2)
        assert said(second["response"]) == ["So it is."]

    call(cascade, talk)
    assert [message.role for message in cascade.writer.requests[1].messages] == ["user"]


@pytest.mark.parametrize(
    ("script", "heard"),
    [([Say("I can't help with that."), FILTERED], "I can't help with that."), ([FILTERED], EMPTY)],
)
def test_a_refusal_is_spoken_and_told_as_filtered(script: list[Step], heard: str) -> None:
    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "incomplete"
        assert response["status_details"]["reason"] == "content_filter"
        assert said(response) == [heard]
        assert caller.heard_samples == len(heard.split()) * WORD_SAMPLES

    call(cascade_of(script), talk)


def test_a_model_that_breaks_off_is_heard_to_its_last_clause_and_fails() -> None:
    script = [Say("I can help you with that, if you t"), Fail(UNREACHABLE, 300)]

    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert problem(response) == "llm_unreachable"
        assert said(response) == ["I can help you with that, "]
        assert caller.heard_samples == 6 * WORD_SAMPLES

    call(cascade_of(script), talk)


def test_a_draft_that_fails_is_dropped_unheard_and_the_reply_begins_anew() -> None:
    cascade = cascade_of([Fail(UNREACHABLE)], words("Good day to you."))

    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "completed" and said(response) == ["Good day to you."]
        assert caller.heard_samples == 4 * WORD_SAMPLES

    call(cascade, talk, replace(SETUP, drafts=True))
    assert len(cascade.writer.requests) == 2


def test_a_call_with_arguments_that_are_no_json_is_the_clients_to_judge() -> None:
    cascade = cascade_of([Call("look", '{"a": ')], words("It failed."))

    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        (item,) = response["output"]
        assert response["status"] == "completed" and item["arguments"] == '{"a": '
        output = {"type": "function_call_output", "call_id": item["call_id"], "output": "bad"}
        caller.transport.client_sends(
            {"type": "conversation.item.create", "item": output}, {"type": "response.create"}
        )
        done = await caller.transport.until("response.done", 2)
        assert said(done["response"]) == ["It failed."]

    transport = call(cascade, talk)
    assert "error" not in transport.types()
    (call_message,) = [m for m in cascade.writer.requests[1].messages if m.tool_calls]
    assert call_message.tool_calls[0].arguments == '{"a": '


def test_a_written_reply_that_fails_has_its_error_alone() -> None:
    async def talk(caller: Caller) -> None:
        options = {"output_modalities": ["text"]}
        caller.transport.client_sends(json.dumps({"type": "response.create", "response": options}))
        done = await caller.transport.until("response.done")
        assert problem(done["response"]) == "llm_unreachable"
        assert done["response"]["output"] == [] and caller.heard_samples == 0

    call(cascade_of([Fail(UNREACHABLE)]), talk)


# ---- the voice -----------------------------------------------------------------------------------


def test_a_voice_that_fails_in_mid_word_is_heard_so_far_and_speaks_again_at_the_next_turn() -> None:
    cascade = cascade_of(words("Good day to you."), speaker=VoiceThatFailsOnce())

    async def talk(caller: Caller) -> None:
        first = await caller.ask()
        assert first["status"] == "failed" and problem(first) == "tts_failed"
        assert caller.heard_samples == 2.5 * WORD_SAMPLES
        second = await caller.ask(2)
        assert second["status"] == "completed" and said(second) == ["Good day to you."]

    call(cascade, talk)


def test_a_voice_that_never_answers_ends_its_turn_with_an_error_in_bounded_time() -> None:
    cascade = VoiceCascade(
        FakeDetectorStage(),
        FakeJudge(),
        FakeRecogniser(),
        FakeWriter([words("Good day to you.")]),
        silent_voice(),
        CascadeOptions(("tone",), "script", TIMING),
    )

    async def talk(caller: Caller) -> None:
        response = await caller.ask()
        assert response["status"] == "failed" and problem(response) == "stage_timeout"
        assert caller.heard_samples == 0
        assert asyncio.get_running_loop().time() < 60

    call(cascade, talk)


# ---- the configuration ---------------------------------------------------------------------------


def test_the_configured_phrases_reach_the_voice() -> None:
    scripted = Scripted(kind="scripted")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening: refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        stages = Stages(
            detector=scripted,
            judge=scripted,
            recogniser=scripted,
            writer=OpenAIWriter(kind="openai", url=url, model="m"),
            speaker=scripted,
        )
        settings = Settings(stages=stages, reply=Replies(apology="Nobody is at home."))

        async def main() -> None:
            cascade = create_cascade(settings)
            await cascade.start(lambda line: None)
            request = ReplyRequest("r", (), Urgency.FIRST_AUDIO, True, "tone")
            outputs: list[ReplyOutput] = []
            with pytest.raises(StageError, match="cannot be reached"):
                async for output in cascade.reply(request):
                    outputs.append(output)  # noqa: PERF401 (what came before a failure counts)
            assert [o.text for o in outputs if isinstance(o, TextDelta)] == ["Nobody is at home."]
            assert sum(isinstance(output, SpeechDelta) for output in outputs) == 4
            await cascade.close()

        asyncio.run(main())
