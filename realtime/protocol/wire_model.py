"""What the pydantic models of the wire share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from realtime.protocol.problems import Invalid, missing, unknown, unsupported, wrong_type

MAX_INTEGER = 2**31 - 1  # 24 days of milliseconds; keeps arithmetic on client numbers small

Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]

# Of every list: one fault is told, and to collect one for each entry of a long list takes seconds.
FIRST_FAULT = Field(fail_fast=True)


class WireModel(BaseModel):
    """Strict (JSON types are not converted) and closed (no field beyond the declared ones).

    A field that may be left out defaults to None, and None on the wire means the same unless the
    field's schema says that null clears something.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_flood(cls, value: object) -> object:
        """With more members than there are fields, the first unknown one says enough."""
        members = members_in(value)
        if len(members) > len(cls.model_fields):
            first = next(name for name in members if name not in cls.model_fields)
            raise Invalid(unknown, at=(first,))
        return value


Model = TypeVar("Model", bound=WireModel)


def members_in(value: object) -> dict[str, object]:
    """Those of a JSON object; anything else has none."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def object_of(value: object) -> dict[str, Any]:
    """The value if it is a JSON object; raises Invalid otherwise."""
    if not isinstance(value, dict):
        raise Invalid(partial(wrong_type, expected="an object", value=value))
    return cast("dict[str, Any]", value)


def word_of(
    value: dict[str, Any],
    field: str,
    words: tuple[str, ...],
    hints: Mapping[str, str] | None = None,
) -> str:
    """The value of a field that must be one of `words`. Raises Invalid.

    hints: a sentence for a word that is wrong here for a reason worth telling.
    """
    if field not in value:
        raise Invalid(missing, at=(field,))
    word = value[field]
    if not isinstance(word, str):
        raise Invalid(partial(wrong_type, expected="a string", value=word), at=(field,))
    if word not in words:
        why = (hints or {}).get(word, "")
        raise Invalid(partial(unsupported, value=word, supported=words, why=why), at=(field,))
    return word


def tagged(
    value: object,
    field: str,
    models: Mapping[str, type[Model]],
    hints: Mapping[str, str] | None = None,
) -> Model:
    """Read an object by the model that its `field` names. Raises Invalid or ValidationError."""
    members = object_of(value)
    return models[word_of(members, field, tuple(models), hints)].model_validate(members)
