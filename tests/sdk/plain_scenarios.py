"""What SDKs are made to do that are a socket with types: the program holds the conversation."""

from __future__ import annotations

from tests.live_server import tone
from tests.sdk.scenarios import (
    DEAF,
    FORCED,
    INTERRUPTION,
    SERVER_VAD,
    TRANSCRIPTION,
    Scenario,
    says,
    send,
    sound,
    types,
    until,
    update,
    utterance,
)

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "How the weather is in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
TRUNCATE_MS = 300
SECRET_LASTS_S = 7200  # the longest; without a word it is 600

PLAIN = (
    Scenario(
        "text_turn",
        [
            *update(output_modalities=["text"], instructions="Be kind."),
            *types("Hello?"),
            until("response.done"),
        ],
    ),
    Scenario(
        "spoken_turn",
        [
            *update(
                audio={"input": {"turn_detection": SERVER_VAD, "transcription": TRANSCRIPTION}}
            ),
            *utterance(),
            until("conversation.item.input_audio_transcription.completed", "response.done"),
        ],
    ),
    Scenario(
        "barge_in",
        [
            *update(audio={"input": {"transcription": TRANSCRIPTION}}),
            *types("Count."),
            until("response.output_audio.delta"),
            *INTERRUPTION,
            until("input_audio_buffer.speech_started", "response.done"),
            send(
                "conversation.item.truncate",
                item_id="$response.output_item.added:item.id",
                content_index=0,
                audio_end_ms=TRUNCATE_MS,
            ),
            until("conversation.item.truncated"),
            send("conversation.item.retrieve", item_id="$conversation.item.truncated:item_id"),
            until("conversation.item.retrieved"),
            until("response.done"),
        ],
    ),
    Scenario(
        "function_call",
        [
            *update(output_modalities=["text"], tools=[WEATHER], tool_choice=FORCED),
            *types("Good evening."),
            until("response.done"),
            send(
                "conversation.item.create",
                item={
                    "type": "function_call_output",
                    "call_id": "$response.function_call_arguments.done:call_id",
                    "output": "sunny in Paris",
                },
            ),
            send("response.create", response={"tool_choice": "none"}),
            until("response.done"),
        ],
    ),
    Scenario(
        "out_of_band",
        [
            *update(),
            *types("Count."),
            until("response.output_audio.delta"),
            send(
                "response.create",
                response={
                    "conversation": "none",
                    "metadata": {"topic": "side"},
                    "output_modalities": ["text"],
                    "input": [says("A side question.")],
                },
            ),
            until("response.output_text.done"),
            until("response.done"),
            send("response.cancel"),
            until("response.done"),
        ],
    ),
    Scenario(
        "cancel",
        [
            *update(),
            *types("Count."),
            until("response.output_audio.delta"),
            send("response.cancel", response_id="$response.created:response.id"),
            until("response.done"),
        ],
    ),
    Scenario(
        "manual_turn",
        [
            *update(audio={"input": {"turn_detection": None}}),
            *sound(tone(300)),
            send("input_audio_buffer.clear"),
            until("input_audio_buffer.cleared"),
            *sound(tone(900)),
            send("input_audio_buffer.commit"),
            until("conversation.item.done"),
            send("response.create"),
            until("response.done"),
        ],
    ),
    Scenario(
        "items",
        [
            send("conversation.item.create", item={**says("Second."), "id": "item_second"}),
            send(
                "conversation.item.create",
                previous_item_id="root",
                item={
                    "id": "item_first",
                    "type": "message",
                    "role": "system",
                    "content": [{"type": "input_text", "text": "First."}],
                },
            ),
            send(
                "conversation.item.create",
                previous_item_id="item_second",
                item={
                    "id": "item_third",
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Third."}],
                },
            ),
            send("conversation.item.retrieve", item_id="item_first"),
            send("conversation.item.delete", item_id="item_second"),
            until("conversation.item.deleted"),
        ],
    ),
    Scenario(
        "refusal",
        [
            send("response.cancel", event_id="mine"),
            until("error"),
            *update(output_modalities=["text"]),
            *types("Still there?"),
            until("response.done"),
        ],
    ),
    Scenario(
        "token_limit",
        [
            *update(output_modalities=["text"], max_output_tokens=3),
            *types("Hello to you all?"),
            until("response.done"),
        ],
    ),
    Scenario(
        "failure",
        [*update(output_modalities=["text"]), *types("Fail."), until("response.done")],
    ),
    Scenario(
        "deaf_ears",
        [
            *update(
                audio={
                    "input": {
                        "turn_detection": {**SERVER_VAD, "create_response": False},
                        "transcription": TRANSCRIPTION,
                    }
                }
            ),
            *utterance(),
            until("conversation.item.input_audio_transcription.failed"),
        ],
        server=DEAF,
    ),
    Scenario(
        "telephone",
        [
            *update(
                audio={
                    "input": {"turn_detection": SERVER_VAD, "format": {"type": "audio/pcmu"}},
                    "output": {"format": {"type": "audio/pcma"}},
                },
            ),
            *types("Hello?"),
            until("response.done"),
        ],
    ),
    Scenario(
        "transcription",
        [
            send(
                "session.update",
                session={
                    "type": "transcription",
                    "audio": {
                        "input": {"transcription": TRANSCRIPTION, "turn_detection": SERVER_VAD}
                    },
                },
            ),
            until("session.updated"),
            *utterance(),
            until("conversation.item.input_audio_transcription.completed"),
        ],
        connect={"extra_query": {"intent": "transcription"}},
    ),
    Scenario(
        "idle",
        [
            *update(audio={"input": {"turn_detection": {**SERVER_VAD, "idle_timeout_ms": 5000}}}),
            *types("Hello?"),
            until("response.done"),
            until("input_audio_buffer.timeout_triggered", "response.done"),
        ],
    ),
    Scenario(
        "client_secret",
        [until("session.created"), *types("Hello?"), until("response.done")],
        secret={
            "expires_after": {"anchor": "created_at", "seconds": SECRET_LASTS_S},
            "session": {
                "type": "realtime",
                "instructions": "Be brief.",
                "output_modalities": ["text"],
            },
        },
    ),
)
