"""What the order of server events promises to a client, checked over one connection's wire log.

It sees what a client sees: decoded JSON events and nothing of the server. Feed every server event
of a connection, in order, to `take`; the first one that breaks a promise raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]

FINAL_STATUSES = {"completed", "incomplete"}  # of an item
TEXT_KEYS = {"audio": "transcript", "text": "text"}  # by the type of a content part
TRANSCRIPTION = "conversation.item.input_audio_transcription."


@dataclass(slots=True)
class _Output:
    """An output item of a response under way."""

    item_id: str
    kind: str
    text: str = ""
    final_text: str | None = None
    part_type: str | None = None  # of its content part, once it is open
    is_audio_done: bool = False
    is_part_done: bool = False
    done: Event | None = None


@dataclass(slots=True)
class _Response:
    is_default: bool
    outputs: list[_Output] = field(default_factory=list[_Output])


class WireInvariants:
    """`order` is the conversation as a client builds it from the events alone."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.running: dict[str, _Response] = {}
        self._over: set[str] = set()
        self._event_ids: set[str] = set()
        self._speech: tuple[str, int] | None = None  # the item announced, and where it starts
        self._committed: tuple[str, str | None] | None = None  # its item must be added next
        self._previous: dict[str, str | None] = {}
        self._undone: set[str] = set()
        self._transcribed: set[str] = set()
        self._expected_item: str | None = None  # an output item that must enter the conversation

    def take(self, event: Event) -> None:
        kind: str = event["type"]
        assert self._event_ids or kind == "session.created", f"the first event is {kind}"
        assert not self._event_ids or kind != "session.created", "the session began twice"
        assert event["event_id"] not in self._event_ids, f"two events are {event['event_id']}"
        self._event_ids.add(event["event_id"])
        if self._expected_item is not None:
            assert kind == "conversation.item.added", f"{kind} before the item was added"
            assert event["item"]["id"] == self._expected_item
            self._expected_item = None
        if self._committed is not None:
            assert kind == "conversation.item.added", f"{kind} before the committed item was added"
        if kind == "error":
            assert set(event["error"]) == {"type", "code", "message", "param", "event_id"}
        elif kind.startswith("input_audio_buffer."):
            self._take_input(kind, event)
        elif kind.startswith(TRANSCRIPTION):
            self._take_transcription(kind, event)
        elif kind.startswith("conversation.item."):
            self._take_item(kind, event)
        elif kind in ("response.created", "response.done"):
            self._take_response(kind, event["response"])
        elif kind.startswith("response."):
            self._take_output(kind, event)
        else:
            assert kind in ("session.created", "session.updated", "rate_limits.updated"), kind

    def finish(self) -> None:
        """At the end of a log whose client left when nothing was under way."""
        assert not self.running, f"never done: {sorted(self.running)}"
        assert not self._undone, f"added, never done: {sorted(self._undone)}"

    def _take_input(self, kind: str, event: Event) -> None:
        match kind.removeprefix("input_audio_buffer."):
            case "speech_started":
                assert self._speech is None, "two utterances at a time"
                assert event["item_id"] not in self._previous and event["audio_start_ms"] >= 0
                self._speech = (event["item_id"], event["audio_start_ms"])
            case "speech_stopped":
                assert self._speech is not None and event["item_id"] == self._speech[0]
                assert event["audio_end_ms"] >= self._speech[1]
                self._speech = None
            case "committed":
                self._speech = None
                self._committed = (event["item_id"], event["previous_item_id"])
            case "timeout_triggered":
                assert event["audio_end_ms"] >= event["audio_start_ms"] >= 0
            case name:
                assert name == "cleared", kind
                self._speech = None

    def _take_transcription(self, kind: str, event: Event) -> None:
        item_id = event["item_id"]
        assert item_id in self._previous, f"{kind} of an item that was never added"
        assert item_id not in self._transcribed, f"{kind} after the transcription's end"
        if not kind.endswith(".delta"):
            self._transcribed.add(item_id)

    def _take_item(self, kind: str, event: Event) -> None:
        item_id = event["item"]["id"] if "item" in event else event["item_id"]
        match kind.removeprefix("conversation.item."):
            case "added":
                previous = event["previous_item_id"]
                assert item_id not in self._previous, f"{item_id} is added twice"
                assert previous is None or previous in self.order, f"{previous} is not announced"
                if self._committed is not None:
                    assert self._committed == (item_id, previous)
                    self._committed = None
                self.order.insert(
                    0 if previous is None else self.order.index(previous) + 1, item_id
                )
                self._previous[item_id] = previous
                self._undone.add(item_id)
                _check_user_audio(event["item"])
            case "done":
                assert item_id in self._undone, f"{item_id} is done twice or was never added"
                assert event["item"]["status"] in FINAL_STATUSES
                self._undone.remove(item_id)
                told, previous = self._previous[item_id], event["previous_item_id"]
                # Who was deleted meanwhile can no longer be named.
                is_gone = told is not None and told not in self.order
                assert previous == told or (is_gone and previous in (None, *self.order))
                _check_user_audio(event["item"])
            case "deleted":
                self.order.remove(item_id)
                self._undone.discard(item_id)
            case "truncated":
                assert item_id in self.order and event["audio_end_ms"] >= 0
            case name:
                assert name == "retrieved" and item_id in self.order, kind
                _check_user_audio(event["item"])

    def _take_response(self, kind: str, response: Event) -> None:
        response_id = response["id"]
        if kind == "response.created":
            assert response_id not in self.running and response_id not in self._over
            assert response["status"] == "in_progress" and response["output"] == []
            is_default = response["conversation_id"] is not None
            assert not (is_default and any(r.is_default for r in self.running.values())), (
                "two responses in the default conversation"
            )
            self.running[response_id] = _Response(is_default)
            return
        told = self.running.pop(response_id)
        self._over.add(response_id)
        assert response["status"] in {"completed", "cancelled", "failed", "incomplete"}
        assert response["usage"] is not None
        assert response["output"] == [output.done for output in told.outputs]
        if told.is_default:
            assert not self._undone & {output.item_id for output in told.outputs}

    def _take_output(self, kind: str, event: Event) -> None:
        assert event["response_id"] in self.running, f"{kind} outside its response"
        response = self.running[event["response_id"]]
        item_id = event["item"]["id"] if "item" in event else event["item_id"]
        if kind == "response.output_item.added":
            item = event["item"]
            assert event["output_index"] == len(response.outputs), "output indexes have a gap"
            assert item["status"] == "in_progress" and not item.get("content")
            response.outputs.append(_Output(item_id, item["type"]))
            self._expected_item = item_id if response.is_default else None
            return
        output = response.outputs[event["output_index"]]
        assert output.item_id == item_id and output.done is None, f"{kind} of an item that is done"
        if kind == "response.output_item.done":
            _check_whole(output, event["item"])
            output.done = event["item"]
        elif kind.startswith("response.function_call_arguments."):
            assert output.kind == "function_call" and output.final_text is None
            if kind.endswith(".delta"):
                output.text += event["delta"]
            else:
                output.final_text = event["arguments"]
                assert output.final_text == output.text
        else:
            assert output.kind == "message" and event["content_index"] == 0
            _take_part(output, kind.removeprefix("response."), event)


def _take_part(output: _Output, kind: str, event: Event) -> None:
    if kind == "content_part.added":
        assert output.part_type is None
        part_type: str = event["part"]["type"]
        assert event["part"] == {"type": part_type, TEXT_KEYS[part_type]: ""}
        output.part_type = part_type
        return
    assert output.part_type is not None and not output.is_part_done, kind
    is_audio = output.part_type == "audio"
    match kind:
        case "output_audio.delta":
            assert is_audio and not output.is_audio_done and event["delta"]
        case "output_audio.done":
            assert is_audio and not output.is_audio_done
            output.is_audio_done = True
        case "output_audio_transcript.delta" | "output_text.delta":
            assert is_audio == ("transcript" in kind) and output.final_text is None
            assert event["delta"]
            output.text += event["delta"]
        case "output_audio_transcript.done" | "output_text.done":
            assert is_audio == ("transcript" in kind) and output.final_text is None
            output.final_text = event[TEXT_KEYS[output.part_type]]
            assert output.final_text == output.text
        case _:
            assert kind == "content_part.done", kind
            assert output.is_audio_done == is_audio and output.final_text is not None
            text_key = TEXT_KEYS[output.part_type]
            assert event["part"] == {"type": output.part_type, text_key: output.text}
            output.is_part_done = True


def _check_whole(output: _Output, item: Event) -> None:
    """An item that is done holds what its deltas said."""
    assert item["status"] in FINAL_STATUSES and output.final_text is not None
    if output.kind == "function_call":
        assert item["arguments"] == output.text
        return
    assert output.is_part_done and output.part_type is not None
    (part,) = item["content"]
    text_key = TEXT_KEYS[output.part_type]
    assert part == {"type": f"output_{output.part_type}", text_key: output.text}


def _check_user_audio(item: Event) -> None:
    """A client throws where the key is missing; null says that nobody knows."""
    for part in item.get("content", ()):
        assert part["type"] != "input_audio" or "transcript" in part, item["id"]


def check_order(events: Iterable[Event], *, is_whole: bool = True) -> WireInvariants:
    """Check one connection's server events. is_whole: nothing was under way at its end."""
    watch = WireInvariants()
    for number, event in enumerate(events):
        try:
            watch.take(event)
        except (AssertionError, KeyError) as error:
            error.add_note(f"event {number} of the connection: {event}")
            raise
    if is_whole:
        watch.finish()
    return watch
