"""Events and effects to JSON and back, without losing anything.

Every dataclass and every enum member carries the name of its class under "$"; arrays are tuples,
as frozen values hold nothing else. Numbers go through `repr`, so floats come back bit for bit.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, cast

from realtime.session import bounds, effects, events, items, ledger, notices, settings

_TAG = "$"
_VALUE = "value"
_VOCABULARY = (settings, bounds, items, ledger, notices, events, effects)


class Unreadable(ValueError):
    """A record holds something that no class of this version stands for."""


def encode(value: object) -> Any:
    """A frozen value to what `json.dumps` takes. Raises TypeError for anything else."""
    if isinstance(value, Enum):
        return {_TAG: type(value).__name__, _VALUE: value.value}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [encode(entry) for entry in cast("tuple[object, ...]", value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        body: dict[str, Any] = {_TAG: type(value).__name__}
        for name in _field_names(type(value)):
            body[name] = encode(getattr(value, name))
        return body
    raise TypeError(f"a record cannot hold a {type(value).__name__}")


def decode(data: Any) -> Any:
    """What `encode` gave, after JSON, to the same frozen value. Raises Unreadable."""
    if isinstance(data, list):
        return tuple(decode(entry) for entry in cast("list[Any]", data))
    if not isinstance(data, dict):
        return data
    body = cast("dict[str, Any]", data)
    name = body.get(_TAG)
    kind = _classes().get(name) if isinstance(name, str) else None
    if kind is None:
        raise Unreadable(f"no class is called {name!r}")
    try:
        if issubclass(kind, Enum):
            return kind(body[_VALUE])
        return kind(**{key: decode(value) for key, value in body.items() if key != _TAG})
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{name}: {error}") from error


def to_text(value: object) -> str:
    """One line of JSON."""
    return json.dumps(encode(value), ensure_ascii=False, separators=(",", ":"))


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _classes() -> dict[str, type]:
    """Every dataclass and enum of the session's vocabulary, by name."""
    found = dict[str, type]()
    for kind in _defined_in(_VOCABULARY):
        if found.setdefault(kind.__name__, kind) is not kind:
            raise RuntimeError(f"two classes of the session are called {kind.__name__}")
    return found


def _defined_in(modules: Iterable[ModuleType]) -> Iterable[type]:
    for module in modules:
        for value in vars(module).values():
            if not isinstance(value, type) or value.__module__ != module.__name__:
                continue
            if dataclasses.is_dataclass(value) or issubclass(value, Enum):
                yield value
