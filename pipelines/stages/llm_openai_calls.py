"""Demanded calls of a remote model: what it answered is judged, and asked for once more if wrong.

Servers differ in what they make of `tool_choice`: some pass over it, and few hold a model to the
schema. So the answer to a demand is read to its end before any of it counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pipelines.stages.tool_schema import BadSchema, invalid_call, parameters_of, refuse_schema
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    StageError,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
    WriteOutput,
    WriteRequest,
)

_REPAIR = "Call {what} now. Answer only with {form}, as JSON that fits its schema."

_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)


@dataclass(slots=True)
class _Call:
    call_id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class Demand:
    """Collects the answer to a request that demands a call. Text that comes instead is dropped.

    Raises StageError at once for tools whose schemas cannot be judged.
    """

    request: WriteRequest
    calls: list[_Call] = field(default_factory=list[_Call])
    usage: Usage = Usage()
    reason: FinishReason = FinishReason.STOP
    _is_repaired: bool = False

    def __post_init__(self) -> None:
        for tool in self._tools:
            try:
                parameters_of(tool)
            except BadSchema as error:
                raise refuse_schema(tool, error) from None

    @property
    def _tools(self) -> tuple[ToolSpec, ...]:
        """Those that may answer the demand."""
        choice = self.request.tool_choice
        if choice == "required":
            return self.request.tools
        return tuple(tool for tool in self.request.tools if tool.name == choice)

    def take(self, outputs: Sequence[WriteOutput]) -> None:
        """A whole answer; the second one is that to the repair, and takes the first one's place."""
        for output in outputs:
            if isinstance(output, Finished):
                self.reason = output.reason
                self.usage = self.usage.plus(output.usage)
        if self._is_repaired:
            self._take_repair(outputs)
        for output in () if self._is_repaired else outputs:
            if isinstance(output, ToolCallDelta):
                if output.index == len(self.calls):
                    self.calls.append(_Call(output.call_id, output.name))
                self.calls[output.index].arguments += output.arguments

    @property
    def _kept(self) -> list[_Call]:
        is_one = self.request.tool_choice != "required" or not self.request.parallel_tool_calls
        return self.calls[:1] if is_one else self.calls

    @property
    def _is_cut(self) -> bool:
        return self.reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)

    def outputs(self) -> list[WriteOutput]:
        """The calls, and how they end. Of those that were cut short the last one is not whole."""
        kept = self._kept
        if self._is_cut:
            known = {tool.name for tool in self._tools}
            whole = [call for call in kept[:-1] if self._problem_of(call) is None]
            kept = [call for call in (*whole, *kept[-1:]) if call.name in known]
        return [
            *(
                ToolCallDelta(index, call.call_id, call.name, call.arguments)
                for index, call in enumerate(kept)
            ),
            Finished(self.reason if self._is_cut else FinishReason.TOOL_CALLS, self.usage),
        ]

    def problem(self) -> StageError | None:
        """Why the demand is not met; None: it is, or it was cut short, which is told otherwise."""
        if self._is_cut:
            return None
        if not self.calls:
            return StageError(
                "tool_call_not_made",
                "The language model was told to call a tool, and answered otherwise. Use a model, "
                "or a server, that follows tool_choice.",
            )
        found = (self._problem_of(call) for call in self._kept)
        return next((problem for problem in found if problem is not None), None)

    def _problem_of(self, call: _Call) -> StageError | None:
        tool = next((tool for tool in self._tools if tool.name == call.name), None)
        if tool is None:
            return StageError(
                "tool_call_not_made",
                f"The language model was told to call {self._what}, and called {call.name!r}.",
            )
        found = parameters_of(tool).problem(call.arguments)
        return None if found is None else invalid_call(tool.name, found)

    # ---- the second try ----------------------------------------------------------------------

    @property
    def _aim(self) -> tuple[ToolSpec, ...]:
        """The tools that a repair may call: the one that was called badly, or any."""
        names = {call.name for call in self._kept}
        return tuple(tool for tool in self._tools if tool.name in names) or self._tools

    @property
    def _what(self) -> str:
        return " or ".join(f"the function {tool.name!r}" for tool in self._tools)

    def repair(self) -> tuple[WriteRequest, dict[str, Any]]:
        """A request without tools, and what its body has beyond others: the schema of an answer."""
        self._is_repaired = True
        aim = self._aim
        if len(aim) == 1:
            schema, form = parameters_of(aim[0]).schema, "its arguments"
            what = f"the function {aim[0].name!r}"
        else:
            schema, form = _schema_of_choice(aim), '{"name": ..., "arguments": {...}}'
            what = "one of the functions"
        told = "\n".join(_told(tool) for tool in aim)
        # As the user's: many templates take a system message at the beginning alone.
        ask = Message("user", f"{_REPAIR.format(what=what, form=form)}\n{told}")
        request = WriteRequest(
            request_id=self.request.request_id,
            messages=(*self.request.messages, ask),
            max_output_tokens=self.request.max_output_tokens,
            temperature=self.request.temperature,
        )
        answer = {"name": "call", "schema": schema}
        return request, {"response_format": {"type": "json_schema", "json_schema": answer}}

    def _take_repair(self, outputs: Sequence[WriteOutput]) -> None:
        said = "".join(output.text for output in outputs if isinstance(output, TextDelta))
        text = _unfenced(said)
        aim = self._aim
        name, arguments = aim[0].name, text
        if len(aim) > 1:
            try:
                value: Any = json.loads(text)
            except (ValueError, RecursionError):
                return
            if not isinstance(value, dict):
                return
            called = cast("dict[str, Any]", value)
            name = str(called.get("name"))
            arguments = json.dumps(called.get("arguments"), ensure_ascii=False)
        self.calls = [_Call(f"call_{self.request.request_id}_0", name, arguments)]


def _unfenced(text: str) -> str:
    """A JSON text without the fence that many models put around it."""
    fenced = _FENCED.fullmatch(text.strip())
    return fenced[1] if fenced is not None else text.strip()


def _told(tool: ToolSpec) -> str:
    return f"{tool.name}: {tool.description}\n{tool.parameters_json}"


def _schema_of_choice(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """A call of any of these tools. References go on pointing into their own schema."""
    choices = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": _moved(
                    parameters_of(tool).schema, f"#/anyOf/{number}/properties/arguments"
                ),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for number, tool in enumerate(tools)
    ]
    return {"anyOf": choices}


def _moved(schema: object, root: str) -> Any:
    """A schema that has become a part of another one, at `root`."""
    if isinstance(schema, list):
        return [_moved(part, root) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for name, part in cast("Mapping[str, object]", schema).items():
        is_reference = name == "$ref" and isinstance(part, str) and part.startswith("#")
        made[name] = root + str(part)[1:] if is_reference else _moved(part, root)
    return made
