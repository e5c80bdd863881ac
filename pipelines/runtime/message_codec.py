"""Messages as frames: a header in msgpack, and behind it the arrays that it speaks of.

Scalars stand in the header as they are; everything else is a list that begins with its tag. Only
types that the codec was told of can be read, and only with fields of the annotated types.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from types import ModuleType
from typing import Any, TypeAlias, cast

import msgpack  # pyright: ignore[reportMissingTypeStubs]
import numpy as np

import pipelines.ports
import pipelines.runtime.messages
import pipelines.types
from pipelines.runtime.message_fields import Fits, describe, fits

Frame: TypeAlias = bytes | memoryview
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_TUPLE, _LIST, _DICT, _ARRAY = 0, 1, 2, 3  # tags; those of dataclasses and enums are their names
_ARRAY_KINDS = "biufc"  # plain numbers: an array of objects would need their types

# Text may hold a lone surrogate, which a model's broken output can: it travels like any other.
_pack = cast(
    "Callable[..., bytes]",
    msgpack.packb,  # pyright: ignore[reportUnknownMemberType]
)
_unpack = cast(
    "Callable[..., object]",
    msgpack.unpackb,  # pyright: ignore[reportUnknownMemberType]
)


class MessageError(ValueError):
    """A value cannot be sent, or frames cannot be read; the message names the type and field."""


class Codec:
    """Values of some types to frames and back. Arrays arrive as copies that may be changed."""

    def __init__(self, kinds: Sequence[type]) -> None:
        """Raises TypeError for a type that cannot travel, or two of one name."""
        self._shapes: dict[str, _Dataclass | _Enum] = {}
        for kind in kinds:
            if kind.__name__ in self._shapes:
                raise TypeError(f"two types of messages are called {kind.__name__}")
            self._shapes[kind.__name__] = _shape_of(kind)

    def encode(self, value: object) -> list[Frame]:
        """Raises MessageError. The arrays' frames are views, not copies, where they can be."""
        frames: list[Frame] = [b""]
        tree = self._flatten(value, frames)
        try:
            frames[0] = _pack(tree, unicode_errors="surrogatepass")
        except (ValueError, OverflowError) as error:
            raise MessageError(f"{describe(value)} cannot be sent: {error}") from error
        return frames

    def decode(self, frames: Sequence[Frame]) -> object:
        """Raises MessageError."""
        try:
            tree = _unpack(frames[0], unicode_errors="surrogatepass")
        except (ValueError, IndexError) as error:  # msgpack's own errors are ValueErrors
            raise MessageError(f"a message's header cannot be read: {error!r}") from error
        used: set[int] = set()
        value = self._build(tree, frames, used)
        if len(used) != len(frames) - 1:
            raise MessageError(f"a message has {len(frames) - 1} arrays and uses {len(used)}")
        return value

    def _flatten(self, value: object, frames: list[Frame]) -> object:
        kind = type(value)
        if value is None or kind in (str, int, float, bool, bytes):
            return value
        shape = self._shapes.get(kind.__name__)
        if shape is not None and shape.kind is kind:
            return [kind.__name__, *(self._flatten(part, frames) for part in shape.parts(value))]
        if isinstance(value, np.ndarray):
            return _flatten_array(cast("Array", value), frames)
        if isinstance(value, np.generic):
            return self._flatten(_plain(value), frames)
        if kind is dict and all(type(key) is str for key in cast("dict[object, object]", value)):
            pairs = cast("dict[str, object]", value).items()
            return [_DICT, *(self._flatten(part, frames) for pair in pairs for part in pair)]
        if kind is tuple or kind is list:
            items = cast("Sequence[object]", value)
            tag = _TUPLE if kind is tuple else _LIST
            return [tag, *(self._flatten(item, frames) for item in items)]
        raise MessageError(
            f"{describe(value)} cannot be sent to or from a worker process: {kind.__module__}."
            f"{kind.__qualname__} is none of the types that travel"
        )

    def _build(self, tree: object, frames: Sequence[Frame], used: set[int]) -> object:
        if not isinstance(tree, list):
            if tree is None or isinstance(tree, str | int | float | bytes):
                return tree
            raise MessageError(f"a message holds {describe(tree)}, which has no tag")
        match cast("list[object]", tree):
            case [int() as tag, *parts] if tag == _ARRAY:
                return _array(parts, frames, used)
            case [str() | int() as tag, *parts]:
                return self._assemble(tag, [self._build(part, frames, used) for part in parts])
            case other:
                raise MessageError(
                    f"a message holds {describe(cast('object', other))}, which has no tag"
                )

    def _assemble(self, tag: str | int, parts: list[object]) -> object:
        if tag == _TUPLE:
            return tuple(parts)
        if tag == _LIST:
            return parts
        if tag == _DICT:
            keys, values = parts[::2], parts[1::2]
            if len(keys) != len(values) or any(type(key) is not str for key in keys):
                raise MessageError("a message's dictionary is no list of texts and values")
            return dict(zip(keys, values, strict=True))
        shape = self._shapes.get(tag) if isinstance(tag, str) else None
        if shape is None:
            raise MessageError(f"a message holds a value of the unknown type {tag!r}")
        return shape.make(parts)


def _flatten_array(array: Array, frames: list[Frame]) -> object:
    if array.dtype.kind not in _ARRAY_KINDS:
        raise MessageError(f"{describe(array)} cannot be sent: it holds no plain numbers")
    frames.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return [_ARRAY, len(frames) - 1, array.dtype.str, *array.shape]


def _plain(value: Any) -> Any:
    """A number that came out of an array as Python's own."""
    scalar = value
    return scalar.item() if isinstance(value, np.generic) else scalar


def _array(parts: list[object], frames: Sequence[Frame], used: set[int]) -> Array:
    match parts:
        case [int(number), str(name), *sizes] if 0 < number < len(frames) and number not in used:
            shape = [size for size in sizes if type(size) is int and size >= 0]
            if len(shape) == len(sizes):
                used.add(number)
                return _read_array(frames[number], name, tuple(shape))
        case _:
            pass
    raise MessageError(f"a message's array is {parts!r}, with {len(frames) - 1} frames")


def _read_array(frame: Frame, name: str, shape: tuple[int, ...]) -> Array:
    try:
        dtype = np.dtype(name)
        if dtype.kind not in _ARRAY_KINDS:
            raise MessageError(f"a message's array has the dtype {name!r}, which is no number's")
        # A copy is aligned and may be changed; a frame is neither.
        return np.frombuffer(frame, dtype).reshape(shape).copy()
    except (TypeError, ValueError) as error:
        raise MessageError(
            f"a message's array of {name} {list(shape)} has {len(frame)} bytes: {error}"
        ) from error


class _Dataclass:
    def __init__(self, kind: type[Any]) -> None:
        if not dataclasses.is_dataclass(kind):
            raise TypeError(f"{kind!r} is neither a dataclass nor an enum")
        self.kind: type = kind
        hints = typing.get_type_hints(kind)
        self._hints = hints
        self._fields: list[tuple[str, Fits]] = [
            (field.name, fits(hints[field.name])) for field in dataclasses.fields(kind)
        ]

    def parts(self, value: object) -> list[object]:
        parts = [getattr(value, name) for name, _ in self._fields]
        self._check(parts, lenient=True)
        return parts

    def make(self, parts: list[object]) -> object:
        if len(parts) != len(self._fields):
            raise MessageError(
                f"{self.kind.__name__} has {len(self._fields)} fields, and {len(parts)} came"
            )
        self._check(parts)
        try:
            return self.kind(*parts)
        except (TypeError, ValueError) as error:
            raise MessageError(f"{self.kind.__name__} cannot be made: {error}") from error

    def _check(self, parts: list[object], lenient: bool = False) -> None:
        for (name, check), part in zip(self._fields, parts, strict=True):
            if check(part):
                continue
            if lenient and check(_plain(part)):
                continue
            hint = self._hints[name]
            wanted = hint.__name__ if isinstance(hint, type) else str(hint)
            raise MessageError(
                f"{self.kind.__name__}.{name} is {describe(part)}, which does not fit {wanted}"
            )


class _Enum:
    def __init__(self, kind: type[Enum]) -> None:
        self.kind: type = kind
        self._kind = kind

    def parts(self, value: object) -> list[object]:
        return [cast("Enum", value).value]

    def make(self, parts: list[object]) -> object:
        try:
            (value,) = parts
            return self._kind(value)
        except ValueError as error:
            raise MessageError(f"{self._kind.__name__} has no value {parts!r}") from error


def _shape_of(kind: type[Any]) -> _Dataclass | _Enum:
    if issubclass(kind, Enum):
        return _Enum(kind)
    return _Dataclass(kind)


def kinds_of(module: ModuleType) -> list[type]:
    """The dataclasses and enums that a module defines."""
    return [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and kind.__module__ == module.__name__
        and (dataclasses.is_dataclass(kind) or issubclass(kind, Enum))
    ]


STAGE_CODEC = Codec(
    [
        kind
        for module in (pipelines.types, pipelines.ports, pipelines.runtime.messages)
        for kind in kinds_of(module)
    ]
)
