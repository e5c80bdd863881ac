"""What each scenario brings about, whichever SDK plays it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from realtime.protocol.g711 import a_law_levels
from tests.sdk.parley_process import KEY
from tests.sdk.plain_scenarios import SECRET_LASTS_S, TRUNCATE_MS
from tests.sdk.runs import Run, Runs
from tests.sdk.scripted_words import COUNT, SUNNY, TOOL_ARGUMENTS
from tests.sdk.sdks import SDKS

LOUD = 1000  # a sample of a voice, of 32767
MS_PER_WORD = 300  # of the scripted voice

Check = Callable[[Run], None]


def done(run: Run) -> list[dict[str, Any]]:
    return [event["response"] for event in run.log.events("server", "response.done")]


def statuses(run: Run) -> list[str]:
    return [response["status"] for response in done(run)]


def audio_bytes(run: Run) -> bytes:
    deltas = run.log.events("server", "response.output_audio.delta")
    return b"".join(base64.b64decode(event["delta"]) for event in deltas)


def text_turn(run: Run) -> None:
    (response,) = done(run)
    assert response["output"][0]["content"] == [{"type": "output_text", "text": "You said: Hello?"}]
    assert run.log.joined("response.output_text.delta") == "You said: Hello?"
    assert run.log.last("session.updated")["session"]["instructions"] == "Be kind."


def spoken_turn(run: Run) -> None:
    kinds = run.log.kinds("server")
    turn = ["speech_started", "speech_stopped", "committed"]
    at = [kinds.index(f"input_audio_buffer.{kind}") for kind in turn]
    assert at == sorted(at) and at[-1] < kinds.index("response.created")
    heard = run.log.last("conversation.item.input_audio_transcription.completed")
    assert heard["transcript"] == "hello"
    started, stopped = (run.log.last(f"input_audio_buffer.{kind}") for kind in turn[:2])
    # 300 ms of silence come before the voice, and 900 ms of voice before the silence.
    assert started["audio_start_ms"] <= 300 < 1200 <= stopped["audio_end_ms"]
    assert statuses(run) == ["completed"]
    assert run.log.joined("response.output_audio_transcript.delta") == "You said: hello"
    pcm = np.frombuffer(audio_bytes(run), "<i2")
    assert np.abs(pcm.astype(np.int32)).max() > LOUD
    assert abs(len(pcm) / 24 - 3 * MS_PER_WORD) < 100


def barge_in(run: Run) -> None:
    cut, answer = done(run)
    assert cut["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    told = cut["output"][0]["content"][0]["transcript"]
    assert COUNT.startswith(told) and len(told) < len(COUNT) / 2
    kinds = run.log.kinds("server")
    started = kinds.index("input_audio_buffer.speech_started")
    assert started < kinds.index("response.done")
    cut_item = cut["output"][0]["id"]
    later = [
        event
        for event in run.log.events("server")[started:]
        if event["type"] == "response.output_audio.delta" and event["item_id"] == cut_item
    ]
    assert later == [], "sound of a reply after its interruption"
    truncated = run.log.last("conversation.item.truncated")
    asked = run.log.events("client", "conversation.item.truncate")[-1]
    assert truncated["item_id"] == cut_item
    assert truncated["audio_end_ms"] == asked["audio_end_ms"]
    if not run.sdk.is_agent:
        assert truncated["audio_end_ms"] == TRUNCATE_MS
    retrieved = run.log.events("server", "conversation.item.retrieved")
    shown = next(event["item"] for event in retrieved if event["item"]["id"] == cut_item)
    heard_words = -(-truncated["audio_end_ms"] // MS_PER_WORD)
    assert shown["status"] == "incomplete"
    assert len(shown["content"][0]["transcript"].split()) <= heard_words
    assert answer["output"][0]["content"][0]["transcript"] == "You said: hello"


def function_call(run: Run) -> None:
    call, answer = done(run)
    (item,) = call["output"]
    assert (item["type"], item["name"]) == ("function_call", "get_weather")
    assert item["arguments"] == TOOL_ARGUMENTS and item["status"] == "completed"
    created = run.log.events("client", "conversation.item.create")[-1]["item"]
    assert created["type"] == "function_call_output" and created["call_id"] == item["call_id"]
    assert created["output"] == "sunny in Paris"
    (part,) = answer["output"][0]["content"]
    assert SUNNY in (part.get("text"), part.get("transcript"))


def out_of_band(run: Run) -> None:
    side, main = done(run)
    assert side["conversation_id"] is None and side["metadata"] == {"topic": "side"}
    assert side["status"] == "completed"
    assert side["output"][0]["content"][0]["text"] == "You said: A side question."
    assert main["conversation_id"] is not None and main["status"] == "cancelled"
    added = run.log.events("server", "conversation.item.added")
    assert side["output"][0]["id"] not in {event["item"]["id"] for event in added}


def cancel(run: Run) -> None:
    (response,) = done(run)
    assert response["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert response["output"][0]["status"] == "incomplete"


def manual_turn(run: Run) -> None:
    assert "input_audio_buffer.speech_started" not in run.log.kinds("server")
    assert len(run.log.events("server", "input_audio_buffer.committed")) == 1
    assert statuses(run) == ["completed"]
    assert done(run)[0]["output"][0]["content"][0]["transcript"] == "You said: hello"


def items(run: Run) -> None:
    added = run.log.events("server", "conversation.item.added")
    assert [(event["item"]["id"], event["previous_item_id"]) for event in added] == [
        ("item_second", None),
        ("item_first", None),
        ("item_third", "item_second"),
    ]
    retrieved = run.log.last("conversation.item.retrieved")["item"]
    assert retrieved["content"] == [{"type": "input_text", "text": "First."}]
    assert run.log.last("conversation.item.deleted")["item_id"] == "item_second"


def refusal(run: Run) -> None:
    (refused,) = run.log.events("server", "error")
    assert refused["error"]["code"] == "response_cancel_not_active"
    assert refused["error"]["event_id"] == "mine"
    assert statuses(run) == ["completed"]


def token_limit(run: Run) -> None:
    (response,) = done(run)
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["max_output_tokens"] == 3


def failure(run: Run) -> None:
    (response,) = done(run)
    assert response["status"] == "failed"
    assert response["status_details"]["error"]["type"] == "server_error"


def deaf_ears(run: Run) -> None:
    failed = run.log.last("conversation.item.input_audio_transcription.failed")
    assert failed["item_id"] == run.log.last("input_audio_buffer.committed")["item_id"]
    assert None not in failed["error"].values(), "a null here makes one SDK drop the event"


def telephone(run: Run) -> None:
    session = run.log.last("session.updated")["session"]
    assert session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert done(run)[0]["audio"]["output"]["format"] == {"type": "audio/pcma"}
    spoken = a_law_levels()[np.frombuffer(audio_bytes(run), np.uint8)]
    assert np.abs(spoken.astype(np.int32)).max() > LOUD
    assert abs(len(spoken) / 8 - 3 * MS_PER_WORD) < 100


def transcription(run: Run) -> None:
    session = run.log.last("session.updated")["session"]
    assert session["type"] == "transcription" and "output_modalities" not in session
    heard = run.log.last("conversation.item.input_audio_transcription.completed")
    assert heard["transcript"] == "hello" and heard["usage"]["type"] == "duration"
    assert not [kind for kind in run.log.kinds("server") if kind.startswith("response.")]


def idle(run: Run) -> None:
    fired = run.log.last("input_audio_buffer.timeout_triggered")
    assert run.log.last("input_audio_buffer.committed")["item_id"] == fired["item_id"]
    assert statuses(run) == ["completed", "completed"]


def client_secret(run: Run) -> None:
    asked, opened = run.log.http("client")
    answered, upgraded = run.log.http("server")
    assert asked["first"].startswith("POST /v1/realtime/client_secrets ")
    assert asked["headers"]["authorization"] == f"Bearer {KEY}"
    assert " 200 " in answered["first"] and " 101 " in upgraded["first"]
    secret = answered["body"]
    assert "ek_" in secret and '"expires_at"' in secret
    shown = opened["headers"].get("authorization", opened["headers"].get("sec-websocket-protocol"))
    assert "ek_" in shown
    assert statuses(run) == ["completed"]
    assert done(run)[0]["output"][0]["content"][0]["text"] == "You said: Hello?"
    if not run.sdk.is_agent:
        told = run.told("secret")[0]
        assert told["session"]["instructions"] == "Be brief."
        assert 600 < told["expires_at"] - time.time() <= SECRET_LASTS_S
        created = run.log.last("session.created")["session"]
        assert created["instructions"] == "Be brief."
        assert created["output_modalities"] == ["text"]


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        text_turn,
        spoken_turn,
        barge_in,
        function_call,
        out_of_band,
        cancel,
        manual_turn,
        items,
        refusal,
        token_limit,
        failure,
        deaf_ears,
        telephone,
        transcription,
        idle,
        client_secret,
    )
} | {"chosen_call": function_call}


@pytest.mark.parametrize(
    ("sdk_name", "scenario_name"),
    [(sdk.name, scenario.name) for sdk in SDKS.values() for scenario in sdk.scenarios],
)
def test_a_scenario(runs: Runs, sdk_name: str, scenario_name: str) -> None:
    CHECKS[scenario_name](runs.of(sdk_name)[scenario_name])


@pytest.mark.parametrize("name", [sdk.name for sdk in SDKS.values() if sdk.is_agent])
class TestAgents:
    """SDKs that hold the conversation have the right one in the end."""

    def history(self, runs: Runs, name: str, scenario: str) -> list[dict[str, Any]]:
        return runs.of(name)[scenario].told("history")[0]

    def test_the_history_of_a_typed_turn(self, runs: Runs, name: str) -> None:
        said = [(item["role"], text(item)) for item in self.history(runs, name, "text_turn")]
        assert said == [("user", "Hello?"), ("assistant", "You said: Hello?")]

    def test_the_history_of_a_spoken_turn(self, runs: Runs, name: str) -> None:
        said = [(item["role"], text(item)) for item in self.history(runs, name, "spoken_turn")]
        assert said == [("user", "hello"), ("assistant", "You said: hello")]

    def test_an_interruption_reaches_the_application(self, runs: Runs, name: str) -> None:
        run = runs.of(name)["barge_in"]
        assert "audio_interrupted" in run.told("sdk")
        # The server cancels by itself and says so in the session: the SDK must not do it again.
        assert run.log.events("client", "response.cancel") == []

    def test_the_tool_is_run_once(self, runs: Runs, name: str) -> None:
        starts = {"tool_start", "agent_tool_start"}
        told = runs.of(name)["function_call"].told("sdk")
        assert len([kind for kind in told if kind in starts]) == 1


def text(item: dict[str, Any]) -> str:
    return "".join(part.get("text") or part.get("transcript") or "" for part in item["content"])


def test_a_browser_s_subprotocols_are_answered(runs: Runs) -> None:
    log = runs.of("npm_openai_native")["text_turn"].log
    assert KEY in log.http("client")[0]["headers"]["sec-websocket-protocol"]
    assert log.http("server")[0]["headers"]["sec-websocket-protocol"] == "realtime"
