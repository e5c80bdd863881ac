"""How the tables of malformed events are written: one case, and short ways to make one.

In a frame `$SPOKEN` stands for the id of an assistant's spoken item, `$RUNNING` for that of the
response under way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

MINE = "evt_mine"


class Moment(Enum):
    """What has happened before on the connection."""

    FRESH = auto()
    TALKED = auto()  # a user's message, and a spoken answer to it
    ANSWERING = auto()  # a response is under way
    CALLED = auto()  # a function call, answered
    DELETED = auto()  # the item `item_gone` was there, and is no more
    TRANSCRIBING = auto()  # the session only transcribes


@dataclass(frozen=True, slots=True)
class Case:
    """param, code, event_id: of the error. says: a part of its message."""

    name: str
    frame: Callable[[], str | bytes]
    code: str | None
    param: str | None
    says: str
    event_id: str | None = MINE
    moment: Moment = Moment.FRESH


def raw(name: str, frame: str | bytes, code: str, says: str, event_id: str | None = None) -> Case:
    return Case(name, lambda: frame, code, None, says, event_id)


def event(
    kind: str,
    code: str | None,
    param: str | None,
    says: str,
    name: str = "",
    moment: Moment = Moment.FRESH,
    **fields: Any,
) -> Case:
    body = {"type": kind, "event_id": MINE, **fields}
    title = name or f"{kind} {json.dumps(fields)[:70]}"
    return Case(title, lambda: json.dumps(body), code, param, says, moment=moment)


def update(code: str, param: str, says: str, moment: Moment = Moment.FRESH, **session: Any) -> Case:
    body = {"type": "realtime", **session}
    return event("session.update", code, param, says, moment=moment, session=body)


def hearing(code: str, field: str, says: str, **fields: Any) -> Case:
    return update(code, f"session.audio.input.{field}", says, audio={"input": fields})


def speaking(code: str, field: str, says: str, **fields: Any) -> Case:
    return update(code, f"session.audio.output.{field}", says, audio={"output": fields})


def create(code: str, param: str, says: str, **item: Any) -> Case:
    return event("conversation.item.create", code, param, says, item=item)


def message(code: str, field: str, says: str, *content: Any, role: str = "user") -> Case:
    item = {"type": "message", "role": role, "content": list(content)}
    return create(code, f"item.{field}", says, **item)


def append(name: str, audio: object, code: str = "invalid_value", says: str = "base64") -> Case:
    return event("input_audio_buffer.append", code, "audio", says, name, audio=audio)


def respond(code: str, param: str, says: str, **response: Any) -> Case:
    return event("response.create", code, f"response.{param}", says, response=response)


FUNCTION = {"type": "function", "name": "look"}
USER = {"type": "message", "role": "user"}
TEXT = {"type": "input_text", "text": "hello"}
RETRIEVE, DELETE, TRUNCATE = (f"conversation.item.{v}" for v in ("retrieve", "delete", "truncate"))
JSON, VALUE, TYPE = "invalid_json", "invalid_value", "invalid_type"
MISSING, UNKNOWN = "missing_required_parameter", "unknown_parameter"
