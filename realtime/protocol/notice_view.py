"""Each notice as the body of a server event: `type` and everything but `event_id`."""

from __future__ import annotations

from typing import Any

from realtime.protocol.item_view import item_view, part_view
from realtime.protocol.response_view import latency_view, response_view
from realtime.protocol.session_view import session_view
from realtime.session import notices
from realtime.session.notices import Detail, Notice, PartAddress
from realtime.session.settings import Modality

MS_PER_SECOND = 1000

# How the events of a part's text are called, and the key that holds the whole text.
_TEXT_EVENTS = {Modality.AUDIO: "output_audio_transcript", Modality.TEXT: "output_text"}
_TEXT_KEYS = {Modality.AUDIO: "transcript", Modality.TEXT: "text"}

_TranscriptionNotice = (
    notices.TranscriptionDelta | notices.TranscriptionCompleted | notices.TranscriptionFailed
)
_ItemNotice = (
    notices.ItemAdded
    | notices.ItemDone
    | notices.ItemRetrieved
    | notices.ItemTruncated
    | notices.ItemDeleted
)
_ResponseNotice = (
    notices.ResponseCreated
    | notices.ResponseDone
    | notices.OutputItemAdded
    | notices.OutputItemDone
    | notices.PartAdded
    | notices.PartDone
    | notices.TextDelta
    | notices.TextDone
    | notices.AudioDone
    | notices.ArgumentsDelta
    | notices.ArgumentsDone
)
_PartNotice = (
    notices.PartAdded | notices.PartDone | notices.TextDelta | notices.TextDone | notices.AudioDone
)


def notice_view(notice: Notice) -> dict[str, Any]:
    match notice:
        case notices.ErrorRaised():
            error = {
                "type": notice.type,
                "code": notice.code,
                "message": notice.message,
                "param": notice.param,
                "event_id": notice.client_event_id,
            }
            return {"type": "error", "error": error}
        case notices.SessionCreated(session_id, settings, expires_at_s):
            session = session_view(session_id, settings, expires_at_s)
            return {"type": "session.created", "session": session}
        case notices.SessionUpdated(session_id, settings, expires_at_s):
            session = session_view(session_id, settings, expires_at_s)
            return {"type": "session.updated", "session": session}
        case notices.SpeechStarted(item_id, audio_start_ms):
            return {
                "type": "input_audio_buffer.speech_started",
                "audio_start_ms": audio_start_ms,
                "item_id": item_id,
            }
        case notices.SpeechStopped(item_id, audio_end_ms):
            return {
                "type": "input_audio_buffer.speech_stopped",
                "audio_end_ms": audio_end_ms,
                "item_id": item_id,
            }
        case notices.InputCommitted(item_id, previous_item_id):
            return {
                "type": "input_audio_buffer.committed",
                "previous_item_id": previous_item_id,
                "item_id": item_id,
            }
        case notices.InputCleared():
            return {"type": "input_audio_buffer.cleared"}
        case notices.TimeoutTriggered(item_id, audio_start_ms, audio_end_ms):
            return {
                "type": "input_audio_buffer.timeout_triggered",
                "audio_start_ms": audio_start_ms,
                "audio_end_ms": audio_end_ms,
                "item_id": item_id,
            }
        case (
            notices.TranscriptionDelta()
            | notices.TranscriptionCompleted()
            | notices.TranscriptionFailed()
        ):
            return _transcription_view(notice)
        case (
            notices.ItemAdded()
            | notices.ItemDone()
            | notices.ItemRetrieved()
            | notices.ItemTruncated()
            | notices.ItemDeleted()
        ):
            return _item_event_view(notice)
        case notices.Pong(ping_id):
            return {"type": "parley.pong", "id": ping_id}
        case _:
            return _response_event_view(notice)


def detail_view(detail: Detail) -> dict[str, Any]:
    match detail:
        case notices.StateShown(state):
            return {"type": "parley.state", "state": state.value}
        case notices.HeardSoFar(item_id, transcript):
            return {"type": "parley.transcript", "item_id": item_id, "transcript": transcript}


def _transcription_view(notice: _TranscriptionNotice) -> dict[str, Any]:
    where = {"item_id": notice.item_id, "content_index": notice.content_index}
    prefix = "conversation.item.input_audio_transcription"
    match notice:
        case notices.TranscriptionDelta():
            return {"type": f"{prefix}.delta", **where, "delta": notice.delta}
        case notices.TranscriptionCompleted():
            usage = {"type": "duration", "seconds": notice.audio_ms / MS_PER_SECOND}
            return {
                "type": f"{prefix}.completed",
                **where,
                "transcript": notice.transcript,
                "usage": usage,
            }
        case notices.TranscriptionFailed():
            # A null in here makes one SDK drop the event, so `param` stays out.
            error = {
                "type": "transcription_error",
                "code": notice.code,
                "message": notice.message,
            }
            return {"type": f"{prefix}.failed", **where, "error": error}


def _item_event_view(notice: _ItemNotice) -> dict[str, Any]:
    match notice:
        case notices.ItemAdded(item, previous_item_id):
            kind = "conversation.item.added"
        case notices.ItemDone(item, previous_item_id):
            kind = "conversation.item.done"
        case notices.ItemRetrieved(item):
            return {"type": "conversation.item.retrieved", "item": item_view(item)}
        case notices.ItemTruncated(item_id, content_index, audio_end_ms):
            return {
                "type": "conversation.item.truncated",
                "item_id": item_id,
                "content_index": content_index,
                "audio_end_ms": audio_end_ms,
            }
        case notices.ItemDeleted(item_id):
            return {"type": "conversation.item.deleted", "item_id": item_id}
    # null says "the first item"; a client that misses the key appends.
    return {"type": kind, "previous_item_id": previous_item_id, "item": item_view(item)}


def _response_event_view(notice: _ResponseNotice) -> dict[str, Any]:
    match notice:
        case notices.ResponseCreated(response):
            return {"type": "response.created", "response": response_view(response)}
        case notices.ResponseDone(response, latency_ms):
            extra = {"latency_ms": latency_view(latency_ms)}
            return {"type": "response.done", "response": response_view(response), "parley": extra}
        case notices.OutputItemAdded(response_id, output_index, item):
            kind = "response.output_item.added"
        case notices.OutputItemDone(response_id, output_index, item):
            kind = "response.output_item.done"
        case notices.ArgumentsDelta() | notices.ArgumentsDone():
            return _arguments_view(notice)
        case _:
            return _part_event_view(notice)
    return {
        "type": kind,
        "response_id": response_id,
        "output_index": output_index,
        "item": item_view(item),
    }


def _arguments_view(notice: notices.ArgumentsDelta | notices.ArgumentsDone) -> dict[str, Any]:
    where = {
        "response_id": notice.response_id,
        "item_id": notice.item_id,
        "output_index": notice.output_index,
        "call_id": notice.call_id,
    }
    prefix = "response.function_call_arguments"
    match notice:
        case notices.ArgumentsDelta():
            return {"type": f"{prefix}.delta", **where, "delta": notice.delta}
        case notices.ArgumentsDone():
            return {
                "type": f"{prefix}.done",
                **where,
                "name": notice.name,
                "arguments": notice.arguments,
            }


def _part_event_view(notice: _PartNotice) -> dict[str, Any]:
    where = _address_view(notice.at)
    match notice:
        case notices.PartAdded(_, modality):
            part = part_view(modality, "")
            return {"type": "response.content_part.added", **where, "part": part}
        case notices.PartDone(_, modality, text):
            part = part_view(modality, text)
            return {"type": "response.content_part.done", **where, "part": part}
        case notices.TextDelta(_, modality, delta):
            return {"type": f"response.{_TEXT_EVENTS[modality]}.delta", **where, "delta": delta}
        case notices.TextDone(_, modality, text):
            kind = f"response.{_TEXT_EVENTS[modality]}.done"
            return {"type": kind, **where, _TEXT_KEYS[modality]: text}
        case notices.AudioDone():
            return {"type": "response.output_audio.done", **where}


def _address_view(at: PartAddress) -> dict[str, Any]:
    return {
        "response_id": at.response_id,
        "item_id": at.item_id,
        "output_index": at.output_index,
        "content_index": at.content_index,
    }
