"""Whether a value fits the annotation of a dataclass's field."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

import numpy as np

Fits = Callable[[object], bool]

_SCALARS: dict[object, tuple[type, ...]] = {
    type(None): (type(None),),
    None: (type(None),),
    bool: (bool,),
    int: (int,),  # compared by exact type, so that True is no number
    float: (float, int),
    str: (str,),
    bytes: (bytes,),
}


def fits(annotation: Any) -> Fits:
    """The check of one annotation. Raises TypeError for one that messages cannot have.

    An array fits if it is one-dimensional, as audio always is, and of the named dtype.
    """
    if annotation is object or annotation is Any:
        return lambda value: True
    if annotation in _SCALARS:
        kinds = _SCALARS[annotation]
        return lambda value: type(value) in kinds
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    alias = getattr(origin, "__value__", None)
    if alias is not None:  # of a `type` statement, such as NumPy's NDArray since 2.5
        return fits(alias[inner])
    if origin in (typing.Union, types.UnionType):
        return _one_of([fits(part) for part in inner])
    if origin is tuple:
        return _all_in(inner)
    if origin is dict and inner[0] is str:
        return _dict_of(fits(inner[1]))
    if origin is np.ndarray:
        return _array_of(np.dtype(typing.get_args(inner[1])[0]))
    if isinstance(annotation, type):
        if dataclasses.is_dataclass(annotation) or issubclass(annotation, Enum):
            return lambda value: type(value) is annotation
    raise TypeError(f"a message cannot have a field of the type {annotation!r}")


def describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        return f"an array of {array.dtype} {list(array.shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def _one_of(parts: list[Fits]) -> Fits:
    return lambda value: any(part(value) for part in parts)


def _all_in(inner: tuple[Any, ...]) -> Fits:
    if len(inner) == 2 and inner[1] is Ellipsis:
        each = fits(inner[0])
        return lambda value: (items := _items(value)) is not None and all(map(each, items))
    parts = [fits(part) for part in inner]

    def check(value: object) -> bool:
        items = _items(value)
        if items is None or len(items) != len(parts):
            return False
        return all(part(item) for part, item in zip(parts, items, strict=True))

    return check


def _items(value: object) -> tuple[object, ...] | None:
    return cast("tuple[object, ...]", value) if type(value) is tuple else None


def _dict_of(each: Fits) -> Fits:
    def check(value: object) -> bool:
        if type(value) is not dict:
            return False
        pairs = cast("dict[object, object]", value).items()
        return all(type(key) is str and each(item) for key, item in pairs)

    return check


def _array_of(dtype: np.dtype[Any]) -> Fits:
    def check(value: object) -> bool:
        if not isinstance(value, np.ndarray):
            return False
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        return array.dtype == dtype and array.ndim == 1

    return check
