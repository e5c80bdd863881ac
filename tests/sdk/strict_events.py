"""Server events, held strictly against the types that the official SDK declares for them.

The SDK itself lets everything pass: it builds its models unchecked and allows members that it does
not know. Here every value has its exact JSON type, nothing required is missing, and a member that
no type declares is a mistake, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import BaseModel, TypeAdapter, ValidationError

from realtime.protocol.json_text import compact

# What OpenAI sends although the SDK's types of these events do not declare it.
_SESSION = {"session.id", "session.object", "session.expires_at"}
UNDECLARED: dict[str, set[str]] = {
    "session.created": _SESSION,
    "session.updated": _SESSION,
}
# The server's own words, in the one member that is reserved for them.
OWN = {"session.created": "parley", "response.done": "parley"}

_MODELS: dict[str, TypeAdapter[Any]] = {}


def _register() -> None:
    union = RealtimeServerEvent.__origin__  # type: ignore[attr-defined]  # within Annotated
    for model in union.__args__:
        literal = model.model_fields["type"].annotation
        _MODELS[literal.__args__[0]] = TypeAdapter(model)


_register()


def known_events() -> tuple[str, ...]:
    """Every type of server event that the SDK knows."""
    return tuple(_MODELS)


def faults(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event, one line each; none: it is what its type says."""
    kind = event.get("type")
    if kind not in _MODELS:
        return [f"{kind!r} is no type of server event"]
    own = OWN.get(kind)
    if own in event and not isinstance(event[own], dict):
        return [f"{kind}: {own} is no object"]
    bare = {name: value for name, value in event.items() if name != own}
    try:
        model = _MODELS[kind].validate_json(compact(bare), strict=True)
    except ValidationError as error:
        return [
            f"{kind}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        ]
    unknown = set(_undeclared(model)) - UNDECLARED.get(kind, set())
    return [f"{kind}: {path} is declared nowhere" for path in sorted(unknown)]


def _undeclared(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, BaseModel):
        for name in value.model_extra or ():
            yield f"{path}{name}"
        for name in type(value).model_fields:
            yield from _undeclared(getattr(value, name), f"{path}{name}.")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _undeclared(entry, f"{path}{index}.")
