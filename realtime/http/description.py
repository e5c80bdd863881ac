"""What routes say of their answers in the server's description of itself, `/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

Responses = dict[int | str, dict[str, Any]]

REQUEST_ID = {
    "x-request-id": {"description": "The request's id.", "schema": {"type": "string"}},
}
_RETRY_AFTER = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
}
_STATUSES = {
    400: "Something in the request is at fault: `param` names the field.",
    401: "There is no key, or a wrong one.",
    403: "The key, or the page that asks, may not do this.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    409: "The name is taken.",
    413: "The body is too large.",
    415: "The body is of another type than the route takes.",
    429: "The server answers as many requests as it takes at once.",
    500: "The answer could not be made, through no fault of the request's.",
    503: "The server loads, stops, or has lost a stage.",
    504: "A stage has made nothing for too long.",
}
_TO_TRY_AGAIN = frozenset({429, 503})


class Fault(BaseModel):
    """What went wrong, for programs and for people."""

    model_config = ConfigDict(extra="forbid")

    message: str = Field(description="What is wrong, where, and what to do.")
    type: Literal["invalid_request_error", "server_error"]
    code: str | None = Field(description="One word for programs, such as invalid_value.")
    param: str | None = Field(description="The path of the field that is at fault.")


class Failure(BaseModel):
    """Every answer that is no success."""

    model_config = ConfigDict(extra="forbid")

    error: Fault


def failures(*statuses: int) -> Responses:
    """The errors that a route answers with, all of one shape. `default` is for whatever else may
    come; where it is told, FastAPI tells of no 422, with which no route answers."""
    told: Responses = {}
    for status in statuses:
        told[status] = {"model": Failure, "description": _STATUSES[status]}
        if status in _TO_TRY_AGAIN:
            told[status]["headers"] = _RETRY_AFTER
    return told | {"default": {"model": Failure, "description": "Any other failure."}}


def described(model: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON Schema, which refers to nothing outside itself."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})
    return _with_parts(schema, parts)


def _with_parts(schema: Any, parts: dict[str, Any]) -> Any:
    match schema:
        case {"$ref": str(name)}:
            return _with_parts(parts[name.removeprefix("#/$defs/")], parts)
        case dict():
            members = cast("dict[str, Any]", schema)
            return {name: _with_parts(member, parts) for name, member in members.items()}
        case list():
            return [_with_parts(entry, parts) for entry in cast("list[Any]", schema)]
        case _:
            return schema
