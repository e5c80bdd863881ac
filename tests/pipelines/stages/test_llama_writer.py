"""What the local model is shown of its tools, and when it may call them, with a scripted engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.ticket import Ticket
from pipelines.stages.llama_engine import Completion, EngineFailed
from pipelines.stages.llm_llama import CUT_OFF, IN_WORDS, MARKUP, MOST_ROUNDS, LlamaWriter
from pipelines.types import (
    Finished,
    FinishReason,
    Message,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.stages.embedded import outputs, started
from tests.pipelines.stages.test_llama_reply import CITY, CLOCK, LISBON, ScriptedEngine
from tests.pipelines.stages.tool_schemas import objects
from tests.pipelines.waiting import check

ASKED = Message("user", "Is it warm in Lisbon? Call weather.")
REQUEST = WriteRequest("r", (ASKED,), tools=(CITY, CLOCK))


class Engine(ScriptedEngine):
    """Has a template that lists the tools, if `tells`, and passes on what it is asked."""

    def __init__(self, *texts: str, tells: bool = True) -> None:
        super().__init__(*texts)
        self.tells = tells
        self.sampling: list[Mapping[str, Any]] = []
        self.shown: list[Sequence[Mapping[str, Any]]] = []

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> str:
        self.shown.append(tools)
        if '"$ref": "#"' in json.dumps(tools):
            raise EngineFailed("unsupported $ref #")
        head = f"<tool_call>\n{json.dumps(tools)}" if tools and self.tells else ""
        return head + "".join(f"[{entry['role']}: {entry['content']}]" for entry in messages)

    def complete(
        self,
        prompt: Sequence[int],
        limit_tokens: int,
        sampling: Mapping[str, Any],
        emit: Callable[[str], None],
        pause: Callable[[], None],
        is_aborted: Callable[[], bool],
        grammar: str | None = None,
        is_enough: Callable[[], bool] = lambda: False,
        note: Callable[[int, int, int], None] = lambda read, cached, written: None,
    ) -> Completion:
        if limit_tokens == 1:
            return Completion(True, len(prompt), 0, 1)  # it warms up
        pause()
        self.sampling.append(sampling)
        return super().complete(
            prompt, limit_tokens, sampling, emit, pause, is_aborted, grammar, is_enough, note
        )

    def close(self) -> None:
        """There is nothing to close."""


def written(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, request: WriteRequest
) -> list[WriteOutput]:
    monkeypatch.setattr("pipelines.stages.llm_llama.LlamaEngine", lambda *_: engine)
    monkeypatch.setattr("pipelines.stages.llm_llama.resolve", lambda *_: Path("none.gguf"))
    found: list[WriteOutput] = []

    async def main() -> None:
        async with started(LlamaWriter(cpu=CpuToken())) as writer:
            found.extend(await outputs(writer.open(request)))

    check(main)
    return found


def said(found: list[WriteOutput]) -> str:
    return "".join(output.text for output in found if isinstance(output, TextDelta))


def called(found: list[WriteOutput]) -> list[str]:
    return [output.name for output in found if isinstance(output, ToolCallDelta) and output.name]


def round_of(number: int, calls: int = 1) -> list[Message]:
    made = tuple(ToolCall(f"c{number}_{at}", "clock", f'{{"n": {at}}}') for at in range(calls))
    results = [Message("tool", "noon", call_id=call.call_id) for call in made]
    return [Message("assistant", "", made), *results]


# ---- the prompt ----------------------------------------------------------------------------------


def test_the_prompt_is_the_same_whichever_tools_may_be_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompts: list[str] = []
    for choice, texts in (
        ("auto", ["It is."]),
        ("none", ["It is."]),
        ("clock", ["{}"]),
        ("required", ['"clock"', "{}", ""]),
    ):
        engine = Engine(*texts)
        written(monkeypatch, engine, replace(REQUEST, tool_choice=choice))
        prompts.append(engine.prompts[0].partition("[user")[0])
    assert len(set(prompts)) == 1 and '"clock"' in prompts[0]


def test_after_a_call_that_was_made_before_the_prompt_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = ToolCall("c1", "weather", LISBON)
    messages = (ASKED, Message("assistant", "", (made,)), Message("tool", "19", call_id="c1"))
    engine = Engine('{"name": "weather", ', '"weather"', LISBON, "It is 19.")
    found = written(monkeypatch, engine, replace(REQUEST, messages=messages))
    assert (said(found), called(found)) == ("It is 19.", [])
    assert engine.prompts[3] == f"{engine.prompts[0]}[system: {IN_WORDS.text}]"
    assert len(engine.sampling[3]["logit_bias"]) > 1, "and it cannot call again"


def test_where_no_tool_may_be_called_markup_is_not_said_and_an_object_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = replace(REQUEST, tool_choice="none")
    engine = Engine('{"name": "Ann"}')
    assert said(written(monkeypatch, engine, never)) == '{"name": "Ann"}'
    assert engine.sampling[0]["logit_bias"] == [(ord(MARKUP[0][0]), False)]
    assert said(written(monkeypatch, Engine('{"name": "weather"}'), never)) == ""
    assert said(written(monkeypatch, Engine("<tool_call>\n{"), never)) == ""


def test_a_template_that_shows_no_tools_is_helped_whatever_the_user_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The user speaks of "weather"; that does not mean that the template does."""
    messages = (Message("system", "Be brief."), Message("user", '"weather", "clock"!'))
    engine = Engine("Yes.", tells=False)
    written(monkeypatch, engine, replace(REQUEST, messages=messages))
    assert engine.prompts[0].startswith("[system: Be brief.\n\nYou may call")
    told = Engine("Yes.")
    written(monkeypatch, told, replace(REQUEST, messages=messages))
    assert "You may call" not in told.prompts[0]


def test_a_schema_that_the_engine_refuses_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = ToolSpec("tree", "", json.dumps(objects([], next={"$ref": "#"})))
    engine = Engine("Yes.")
    assert said(written(monkeypatch, engine, replace(REQUEST, tools=(tree,)))) == "Yes."
    assert "You may call" in engine.prompts[0] and '"tree"' in engine.prompts[0]


def test_the_engine_is_never_shown_a_schema_beyond_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = ToolSpec("bomb", "", json.dumps(objects(a={"type": "array", "minItems": 10**9})))
    engine = Engine("Yes.")
    written(monkeypatch, engine, replace(REQUEST, tools=(CITY, bomb)))
    shown = [tool["function"] for tool in engine.shown[-1]]
    assert [tool["name"] for tool in shown] == ["weather", "bomb"]
    assert shown[1]["parameters"] == CUT_OFF and shown[0]["parameters"] != CUT_OFF


# ---- how often -----------------------------------------------------------------------------------


def test_calls_of_its_own_accord_end_after_some_rounds_however_many_each_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = [ASKED, *round_of(0, calls=MOST_ROUNDS + 1)]
    texts = ('{"name": "weather", ', '"weather"', LISBON, "")
    found = written(monkeypatch, Engine(*texts), replace(REQUEST, messages=tuple(wide)))
    assert called(found) == ["weather"]
    long = [ASKED, *(message for n in range(MOST_ROUNDS) for message in round_of(n))]
    found = written(monkeypatch, Engine("Enough."), replace(REQUEST, messages=tuple(long)))
    assert (said(found), called(found)) == ("Enough.", [])
    again = replace(REQUEST, messages=(*long, ASKED))
    assert called(written(monkeypatch, Engine(*texts), again)) == ["weather"]


def test_a_limit_after_a_whole_call_leaves_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine('{"name": "weather", ', '"weather"', LISBON, '\n{"name": "weather", ')
    found = written(monkeypatch, engine, replace(REQUEST, max_output_tokens=18))
    end = found[-1]
    assert isinstance(end, Finished) and end.reason is FinishReason.TOOL_CALLS
    assert called(found) == ["weather"] and end.usage.output_tokens == 18


# ---- giving way ----------------------------------------------------------------------------------


class CountingToken(CpuToken):
    def __init__(self, *, is_wanted: bool) -> None:
        super().__init__()
        self.ways = 0
        self._is_wanted = is_wanted

    def outranked(self, ticket: Ticket) -> bool:
        return self._is_wanted

    def give_way(self, ticket: Ticket) -> None:
        self.ways += 1
        super().give_way(ticket)


@pytest.mark.parametrize(("is_wanted", "wanted"), [(False, [2, 1, 1]), (True, [2, 2, 2])])
def test_equals_have_one_turn_between_two_quanta_and_the_more_urgent_any(
    monkeypatch: pytest.MonkeyPatch, is_wanted: bool, wanted: list[int]
) -> None:
    token = CountingToken(is_wanted=is_wanted)
    counts: list[int] = []

    class Quanta(Engine):
        def complete(
            self,
            prompt: Sequence[int],
            limit_tokens: int,
            sampling: Mapping[str, Any],
            emit: Callable[[str], None],
            pause: Callable[[], None],
            is_aborted: Callable[[], bool],
            grammar: str | None = None,
            is_enough: Callable[[], bool] = lambda: False,
            note: Callable[[int, int, int], None] = lambda read, cached, written: None,
        ) -> Completion:
            if limit_tokens > 1:
                for quantum in range(3):
                    before = token.ways
                    pause()
                    note(len(prompt), 0, quantum)
                    counts.append(token.ways - before)
            return Completion(False, len(prompt), 0, 3)

    monkeypatch.setattr("pipelines.stages.llm_llama.LlamaEngine", lambda *_: Quanta())
    monkeypatch.setattr("pipelines.stages.llm_llama.resolve", lambda *_: Path("none.gguf"))

    async def main() -> None:
        async with started(LlamaWriter(cpu=token)) as writer:
            await outputs(writer.open(WriteRequest("r", (ASKED,))))

    check(main)
    assert counts == wanted, "the first quantum has nothing before it"
