"""Limits are told in the words of what they limit, singular where it is one."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError

from realtime.protocol.problems import first_problem

Short = Annotated[str, BeforeValidator(lambda text: text), StringConstraints(max_length=3)]


class Limited(BaseModel):
    share: Annotated[float, Field(gt=0)] = 1.0
    name: Annotated[str, StringConstraints(min_length=1, max_length=2)] = "a"
    text: Short = ""
    entries: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("share", 0, "expected a number above 0, but got 0 instead"),
        ("name", "", "expected at least 1 character"),
        ("name", "abc", "expected at most 2 characters"),
        ("text", "abcd", "expected at most 3 characters"),
        ("entries", [], "expected at least 1 entry"),
        ("entries", [1, 2, 3], "expected at most 2 entries"),
    ],
)
def test_a_limit_says_of_what_it_is(field: str, value: Any, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Limited.model_validate({field: value})
    problem = first_problem(caught.value)
    assert (problem.param, problem.message) == (field, f"Invalid '{field}': {why}.")
