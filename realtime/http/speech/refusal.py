"""What is wrong with a speech request: from a body's fault, and to where no response can go."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from realtime.http.faults import first_fault
from realtime.http.reception import Refused, refuse
from realtime.protocol.problems import Problem

Fields = TypeVar("Fields", bound=BaseModel)


def validated(model: type[Fields], fields: dict[str, Any]) -> Fields:
    """Raises Refused, 400, which names the field."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise refuse_problem(first_fault(error, model)) from None


def refuse_problem(problem: Problem, root: str = "") -> Refused:
    """400 for a fault of the body. root: of the path of the field, "items[3]." in a batch."""
    param = f"{root}{problem.param}" if problem.param is not None else None
    return refuse(400, problem.code, problem.message, param)


def error_in(refused: Refused) -> dict[str, Any]:
    """{message, type, code, param} of a refusal that was made by `refuse`."""
    return json.loads(bytes(refused.response.body))["error"]
