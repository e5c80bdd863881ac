"""What both a session and one response may say about output: modality, tools, length."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, NoReturn, cast

from pydantic import AfterValidator, Field, PlainValidator

from realtime.protocol.json_text import compact
from realtime.protocol.problems import Invalid, Problem, invalid, unsupported, wrong_type
from realtime.protocol.wire_model import WireModel, object_of, word_of
from realtime.session.settings import Modality, Tool, ToolChoice, ToolMode

MAX_OUTPUT_TOKENS = 4096  # the wire's limit; beyond it only "inf"
MAX_NAME_CHARACTERS = 128  # of a function; calls and choices repeat it
MAX_TOOLS = 128  # the usual limit of such interfaces; each one is a part of every prompt

MODES = (ToolMode.AUTO, ToolMode.NONE, ToolMode.REQUIRED)  # "tool_choice" in one word
_NO_MCP = "MCP servers are not called by this server: declare the tools as functions."
_TOOL_HINTS = {"mcp": _NO_MCP}


def read_modality(value: object) -> Modality:
    """["audio"] or ["text"]."""
    if not isinstance(value, list):
        raise Invalid(partial(wrong_type, expected="an array", value=value))
    words = tuple(Modality)
    for index, word in enumerate(cast("list[object]", value)):
        if not isinstance(word, str):
            raise Invalid(partial(wrong_type, expected="a string", value=word), at=(index,))
        if word not in words:
            raise Invalid(partial(unsupported, value=word, supported=words), at=(index,))
    distinct = sorted(set(cast("list[str]", value)))
    if len(distinct) != 1:
        raise Invalid(partial(_wrong_modalities, words=distinct))
    return Modality(distinct[0])


def _wrong_modalities(path: str, words: list[str]) -> Problem:
    return invalid(
        path,
        f"Invalid modalities: {words}. Supported combinations are: ['text'] and ['audio'].",
    )


ToolName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]


class FunctionToolSchema(WireModel):
    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


def read_tool(value: object) -> Tool:
    word_of(object_of(value), "type", ("function",), _TOOL_HINTS)
    given = FunctionToolSchema.model_validate(value)
    parameters = given.parameters or {"type": "object", "properties": {}}
    return Tool(given.name, given.description or "", compact(parameters), compact(value))


def check_names(tools: list[Tool]) -> list[Tool]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if tool.name in MODES:
            raise Invalid(partial(_mode_as_name, name=tool.name), at=(index, "name"))
        if tool.name in names:
            raise Invalid(partial(_same_name, name=tool.name), at=(index, "name"))
        names.add(tool.name)
    return tools


def _same_name(path: str, name: str) -> Problem:
    return invalid(path, f"Invalid '{path}': another tool is called '{name}' too.")


def _mode_as_name(path: str, name: str) -> Problem:
    return invalid(
        path,
        f"Invalid '{path}': '{name}' is a word of 'tool_choice', from which the function could "
        "not be told apart. Call it something else.",
    )


class FunctionChoiceSchema(WireModel):
    type: Literal["function"]
    name: ToolName


def read_tool_choice(value: object) -> ToolChoice:
    match value:
        case str() if value in MODES:
            return ToolChoice(ToolMode(value))
        case str():
            raise Invalid(partial(unsupported, value=value, supported=MODES))
        case dict():
            word_of(cast("dict[str, Any]", value), "type", ("function",), _TOOL_HINTS)
            given = FunctionChoiceSchema.model_validate(value)
            return ToolChoice(ToolMode.FUNCTION, given.name)
        case _:
            raise Invalid(partial(wrong_type, expected="a string or an object", value=value))


def read_max_output_tokens(value: object) -> int | Literal["inf"]:
    if value == "inf":
        return "inf"
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(partial(wrong_type, expected="an integer or 'inf'", value=value))
    if not 1 <= value <= MAX_OUTPUT_TOKENS:
        raise Invalid(_wrong_length)
    return value


def _wrong_length(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': expected 1 to {MAX_OUTPUT_TOKENS}, or 'inf'.")


def refuse_prompt(value: object) -> NoReturn:
    """Without stored prompts only null can be honoured, and null never gets here."""
    raise Invalid(_no_prompts)


def _no_prompts(path: str) -> Problem:
    return invalid(
        path, f"Invalid '{path}': this server stores no prompts. Send 'instructions' instead."
    )


OutputModality = Annotated[Modality, PlainValidator(read_modality)]
ToolEntry = Annotated[Tool, PlainValidator(read_tool)]
Tools = Annotated[
    list[ToolEntry], Field(max_length=MAX_TOOLS, fail_fast=True), AfterValidator(check_names)
]
Choice = Annotated[ToolChoice, PlainValidator(read_tool_choice)]
MaxOutputTokens = Annotated[int | Literal["inf"], PlainValidator(read_max_output_tokens)]
Prompt = Annotated[object, PlainValidator(refuse_prompt)]
