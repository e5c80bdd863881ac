"""A server event back to the notice that it was made of, as strictly as the strictest client reads.

Every member that the wire knows must be there, none beside it, and null only where the wire says
so. What has been read goes through `WireOrder`, which judges the order.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from realtime.session import notices as n
from realtime.session.items import Item, ItemKind, ItemStatus, Part, PartKind, Role
from realtime.session.notices import Notice, PartAddress, ResponseStatus, ResponseUsage
from realtime.session.settings import AudioFormat, Modality, SessionSettings

View = dict[str, Any]

CONTENT = {
    Role.USER: (PartKind.INPUT_TEXT, PartKind.INPUT_AUDIO, PartKind.INPUT_IMAGE),
    Role.ASSISTANT: (PartKind.OUTPUT_TEXT, PartKind.OUTPUT_AUDIO),
    Role.SYSTEM: (PartKind.INPUT_TEXT,),
}
SESSIONS = {
    "realtime": "realtime.session",
    "transcription": "realtime.transcription_session",
}
ADDRESS = ("response_id", "item_id", "output_index", "content_index")
CALL = ("response_id", "item_id", "output_index", "call_id")


@dataclass(frozen=True, slots=True)
class AudioDelta:
    at: PartAddress
    audio: bytes


def read_event(event: View) -> Notice | AudioDelta:
    """Raises AssertionError on whatever a strict client would not take."""
    body = dict(event)
    assert text(body.pop("event_id")).startswith("event_")
    kind = text(body.pop("type"))
    family = kind.split(".")[0]
    match family:
        case "error":
            error = members(body, "error")[0]
            type_, code, message, param, event_id = members(
                error, "type", "code", "message", "param", "event_id"
            )
            return n.ErrorRaised(text(type_), code, text(message), param, event_id)
        case "session":
            return _session(kind, members(body, "session")[0])
        case "input_audio_buffer":
            return _buffer(kind, body)
        case "conversation":
            return _conversation(kind, body)
        case _:
            return _response(kind, body)


def members(view: View, *names: str, maybe: tuple[str, ...] = ()) -> list[Any]:
    """The values of exactly these members."""
    assert set(names) <= set(view) <= {*names, *maybe}, (sorted(view), names)
    return [view[name] for name in names]


def text(value: object) -> str:
    assert isinstance(value, str), value
    return value


def count(value: object) -> int:
    assert type(value) is int and value >= 0, value
    return value


# ---- the session and what is heard -----------------------------------------------------------


def _session(kind: str, session: View) -> Notice:
    assert session["object"] == SESSIONS[session["type"]]
    detection = session["audio"]["input"]["turn_detection"]
    # A client that misses these cancels responses by itself.
    assert detection is None or isinstance(detection["interrupt_response"], bool)
    assert detection is None or isinstance(detection["create_response"], bool)
    told = (text(session["id"]), SessionSettings(), count(session["expires_at"]))
    match kind:
        case "session.created":
            return n.SessionCreated(*told)
        case "session.updated":
            return n.SessionUpdated(*told)
        case _:
            raise AssertionError(kind)


def _buffer(kind: str, body: View) -> Notice:
    match kind.removeprefix("input_audio_buffer."):
        case "speech_started":
            start_ms, item_id = members(body, "audio_start_ms", "item_id")
            return n.SpeechStarted(text(item_id), count(start_ms))
        case "speech_stopped":
            end_ms, item_id = members(body, "audio_end_ms", "item_id")
            return n.SpeechStopped(text(item_id), count(end_ms))
        case "committed":
            previous, item_id = members(body, "previous_item_id", "item_id")
            return n.InputCommitted(text(item_id), None if previous is None else text(previous))
        case "cleared":
            members(body)
            return n.InputCleared()
        case "timeout_triggered":
            start_ms, end_ms, item_id = members(body, "audio_start_ms", "audio_end_ms", "item_id")
            return n.TimeoutTriggered(text(item_id), count(start_ms), count(end_ms))
        case _:
            raise AssertionError(kind)


# ---- items -----------------------------------------------------------------------------------


def _conversation(kind: str, body: View) -> Notice:
    name = kind.removeprefix("conversation.item.")
    match name:
        case "added" | "done":
            previous, view = members(body, "previous_item_id", "item")
            item, told = read_item(view), None if previous is None else text(previous)
            return n.ItemAdded(item, told) if name == "added" else n.ItemDone(item, told)
        case "retrieved":
            return n.ItemRetrieved(read_item(members(body, "item")[0], shows_audio=True))
        case "truncated":
            item_id, index, end_ms = members(body, "item_id", "content_index", "audio_end_ms")
            return n.ItemTruncated(text(item_id), count(index), count(end_ms))
        case "deleted":
            return n.ItemDeleted(text(members(body, "item_id")[0]))
        case _:
            return _transcription(name.removeprefix("input_audio_transcription."), body)


def _transcription(name: str, body: View) -> Notice:
    match name:
        case "delta":
            item_id, index, delta = members(body, "item_id", "content_index", "delta")
            return n.TranscriptionDelta(text(item_id), count(index), text(delta))
        case "completed":
            item_id, index, transcript, usage = members(
                body, "item_id", "content_index", "transcript", "usage"
            )
            kind, seconds = members(usage, "type", "seconds")
            assert kind == "duration" and seconds >= 0
            audio_ms = round(seconds * 1000)
            return n.TranscriptionCompleted(text(item_id), count(index), text(transcript), audio_ms)
        case "failed":
            item_id, index, error = members(body, "item_id", "content_index", "error")
            _, code, message = members(error, "type", "code", "message")
            return n.TranscriptionFailed(text(item_id), count(index), text(code), text(message))
        case _:
            raise AssertionError(name)


def read_item(view: View, shows_audio: bool = False) -> Item:
    assert view["object"] == "realtime.item" and text(view["id"])
    common = ("id", "object", "type", "status")
    item_id, kind, status = view["id"], ItemKind(view["type"]), ItemStatus(view["status"])
    match kind:
        case ItemKind.MESSAGE:
            *_, role, content = members(view, *common, "role", "content")
            parts = tuple(_part(Role(role), part, shows_audio) for part in content)
            return Item(item_id, kind, status, Role(role), parts)
        case ItemKind.FUNCTION_CALL:
            *_, call_id, name, arguments = members(view, *common, "call_id", "name", "arguments")
            assert text(call_id) and text(name)
            return Item(
                item_id, kind, status, call_id=call_id, name=name, arguments=text(arguments)
            )
        case ItemKind.FUNCTION_CALL_OUTPUT:
            *_, call_id, output = members(view, *common, "call_id", "output")
            return Item(item_id, kind, status, call_id=text(call_id), output=text(output))


def _part(role: Role, view: View, shows_audio: bool) -> Part:
    kind = PartKind(view["type"])
    assert kind in CONTENT[role]
    audio = ("audio",) if shows_audio else ()
    match kind:
        case PartKind.INPUT_TEXT | PartKind.OUTPUT_TEXT:
            return Part(kind, text(members(view, "type", "text")[1]))
        case PartKind.INPUT_AUDIO:
            transcript = members(view, "type", "transcript", maybe=audio)[1]
            return Part(kind, None if transcript is None else text(transcript))
        case PartKind.OUTPUT_AUDIO:
            return Part(kind, text(members(view, "type", "transcript", maybe=audio)[1]))
        case PartKind.INPUT_IMAGE:
            return Part(kind, image_url=text(view["image_url"]), image_detail=view.get("detail"))


# ---- responses -------------------------------------------------------------------------------


def _response(kind: str, body: View) -> Notice | AudioDelta:
    name = kind.removeprefix("response.")
    match name:
        case "created":
            return n.ResponseCreated(_snapshot(members(body, "response")[0]))
        case "done":
            return n.ResponseDone(_snapshot(members(body, "response", maybe=("parley",))[0]))
        case "output_item.added" | "output_item.done":
            response_id, index, view = members(body, "response_id", "output_index", "item")
            told = (text(response_id), count(index), read_item(view))
            return n.OutputItemAdded(*told) if name.endswith("added") else n.OutputItemDone(*told)
        case "function_call_arguments.delta":
            response_id, item_id, index, call_id, delta = members(body, *CALL, "delta")
            return n.ArgumentsDelta(response_id, text(item_id), count(index), call_id, text(delta))
        case "function_call_arguments.done":
            *_, call_id, called, whole = members(body, *CALL, "name", "arguments")
            return n.ArgumentsDone(
                body["response_id"], body["item_id"], body["output_index"],
                text(call_id), text(called), text(whole),
            )  # fmt: skip
        case _:
            return _of_part(name, body)


def _of_part(name: str, body: View) -> Notice | AudioDelta:
    at = PartAddress(
        text(body["response_id"]),
        text(body["item_id"]),
        count(body["output_index"]),
        count(body["content_index"]),
    )
    match name:
        case "content_part.added" | "content_part.done":
            part = members(body, *ADDRESS, "part")[-1]
            modality = Modality(part["type"])
            words = members(part, "type", "transcript" if modality is Modality.AUDIO else "text")[1]
            if name.endswith("done"):
                return n.PartDone(at, modality, text(words))
            assert words == ""
            return n.PartAdded(at, modality)
        case "output_audio.delta":
            return AudioDelta(
                at, base64.b64decode(members(body, *ADDRESS, "delta")[-1], validate=True)
            )
        case "output_audio.done":
            members(body, *ADDRESS)
            return n.AudioDone(at)
        case "output_audio_transcript.delta" | "output_text.delta":
            modality = Modality.TEXT if name.startswith("output_text") else Modality.AUDIO
            return n.TextDelta(at, modality, text(members(body, *ADDRESS, "delta")[-1]))
        case "output_audio_transcript.done":
            return n.TextDone(at, Modality.AUDIO, text(members(body, *ADDRESS, "transcript")[-1]))
        case "output_text.done":
            return n.TextDone(at, Modality.TEXT, text(members(body, *ADDRESS, "text")[-1]))
        case _:
            raise AssertionError(name)


REASONS = {
    ResponseStatus.CANCELLED: ("turn_detected", "client_cancelled"),
    ResponseStatus.INCOMPLETE: ("max_output_tokens", "content_filter"),
}


def _snapshot(view: View) -> n.ResponseSnapshot:
    status, details = ResponseStatus(view["status"]), view["status_details"]
    match status:
        case ResponseStatus.IN_PROGRESS | ResponseStatus.COMPLETED:
            assert details is None
        case ResponseStatus.FAILED:
            assert details["type"] == "failed" and text(details["error"]["code"])
        case _:
            assert members(details, "type", "reason")[0] == status
            assert details["reason"] in REASONS[status]
    assert view["object"] == "realtime.response"
    assert (view["usage"] is None) == (status is ResponseStatus.IN_PROGRESS)
    output = view["audio"]["output"]
    return n.ResponseSnapshot(
        id=text(view["id"]),
        status=status,
        output=tuple(read_item(item) for item in view["output"]),
        conversation_id=view["conversation_id"],
        modality=Modality(*view["output_modalities"]),
        voice=text(output["voice"]),
        output_format=AudioFormat(output["format"]["type"]),
        max_output_tokens=None,
        metadata=None if view["metadata"] is None else tuple(view["metadata"].items()),
        usage=None if view["usage"] is None else _usage(view["usage"]),
    )


def _usage(view: View) -> ResponseUsage:
    """What belongs together adds up."""
    taken, made = view["input_token_details"], view["output_token_details"]
    assert view["total_tokens"] == view["input_tokens"] + view["output_tokens"]
    assert view["input_tokens"] == sum(
        taken[f"{kind}_tokens"] for kind in ("text", "audio", "image")
    )
    assert view["output_tokens"] == made["text_tokens"] + made["audio_tokens"]
    cached = taken["cached_tokens_details"]
    assert taken["cached_tokens"] == sum(cached.values()) <= view["input_tokens"]
    return ResponseUsage(
        taken["text_tokens"], taken["cached_tokens"], made["text_tokens"], made["audio_tokens"]
    )
