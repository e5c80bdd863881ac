"""What SDKs are made to do that hold the conversation themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.sdk.plain_scenarios import PLAIN
from tests.sdk.scenarios import DEAF, FORCED, INTERRUPTION, Scenario, says, send, until, utterance

# An application may send events of its own through these SDKs too. They hold a second
# `response.create` back until the first is done, so nothing out of band here.
RAW = ("manual_turn", "items", "refusal", "token_limit", "failure", "telephone")


def agent_scenarios(text_only: dict[str, Any], *raw: str) -> tuple[Scenario, ...]:
    """text_only: the setting, in the SDK's spelling, that asks for text instead of speech.

    raw: which of the plain scenarios it plays by sending their events as they are.
    """
    return (
        *(
            replace(scenario, steps=[until("session.updated"), *scenario.steps])
            for scenario in PLAIN
            if scenario.name in raw
        ),
        Scenario("text_turn", [{"message": "Hello?"}, until("response.done")], session=text_only),
        Scenario(
            "spoken_turn",
            [
                until("session.updated"),
                *utterance(),
                until("conversation.item.input_audio_transcription.completed", "response.done"),
            ],
        ),
        Scenario(
            "barge_in",
            [
                until("session.updated"),
                {"message": "Count."},
                until("response.output_audio.delta"),
                *INTERRUPTION,
                until(
                    "input_audio_buffer.speech_started",
                    "conversation.item.truncated",
                    "conversation.item.retrieved",
                    "response.done",
                ),
                until("response.done"),
            ],
        ),
        Scenario(
            "function_call",
            [
                until("session.updated"),
                send("conversation.item.create", item=says("Good evening.")),
                send("response.create", response={"tool_choice": FORCED}),
                until("response.done"),
                until("response.done"),
            ],
            has_tool=True,
        ),
        Scenario(
            "chosen_call",
            [{"message": "How is the weather?"}, until("response.done"), until("response.done")],
            has_tool=True,
        ),
        Scenario(
            "deaf_ears",
            [
                until("session.updated"),
                *utterance(),
                until("conversation.item.input_audio_transcription.failed", "error"),
            ],
            server=DEAF,
        ),
        Scenario(
            "cancel",
            [
                until("session.updated"),
                {"message": "Count."},
                until("response.output_audio.delta"),
                {"pause_ms": 400},
                {"interrupt": True},
                until("conversation.item.truncated", "response.done"),
            ],
        ),
        Scenario(
            "client_secret",
            [{"message": "Hello?"}, until("response.done")],
            session=text_only,
            secret={"session": {"type": "realtime"}},
        ),
    )
