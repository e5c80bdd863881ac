"""The passes of a local model's reply, with an engine that writes what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from pipelines.stages.llama_engine import Completion, LlamaEngine
from pipelines.stages.llama_reply import MOST_CALLS, MOST_TRIES, LlamaReply, Pace
from pipelines.types import StageError, ToolCallDelta, ToolSpec, Usage, UsageSoFar, WriteOutput
from tests.pipelines.stages.tool_schemas import objects

CITY = ToolSpec("weather", "", json.dumps(objects(city={"type": "string"})))
ODD = ToolSpec("odd", "", json.dumps(objects(n={"type": "integer", "not": {"const": 1}})))
CLOCK = ToolSpec("clock", "", "{}")
LISBON, PARIS = '{"city": "Lisbon"}', '{"city": "Paris"}'
QUANTUM = 4


class ScriptedEngine:
    """Each pass writes the next text, a token per three characters, until told that it is enough.

    prompts: what each pass went on from, as text.
    """

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.prompts: list[str] = []
        self.grammars: list[str | None] = []

    def tokenize(self, text: str, *, special: bool = False, goes_on: bool = False) -> list[int]:
        return [ord(character) for character in text]

    def complete(
        self,
        prompt: Sequence[int],
        limit_tokens: int,
        sampling: object,
        emit: Callable[[str], None],
        pause: Callable[[], None],
        is_aborted: Callable[[], bool],
        grammar: str | None,
        is_enough: Callable[[], bool],
        note: Callable[[int, int, int], None],
    ) -> Completion:
        self.prompts.append("".join(map(chr, prompt)))
        self.grammars.append(grammar)
        text = self.texts.pop(0)
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        note(len(prompt), 2, 0)
        for count, piece in enumerate(pieces[:limit_tokens], start=1):
            emit(piece)
            if grammar is None and count % QUANTUM == 0 and is_enough():
                note(len(prompt), 2, count)
                return Completion(False, len(prompt), 2, count)
        written = min(len(pieces), limit_tokens)
        note(len(prompt), 2, written)
        return Completion(len(pieces) > limit_tokens, len(prompt), 2, written)


class Told:
    """What one reply says and calls."""

    def __init__(
        self,
        *texts: str,
        tools: tuple[ToolSpec, ...] = (CITY, CLOCK),
        must_call: bool = False,
        may_repeat: bool = True,
        knows_calls: bool = True,
        limit_tokens: int = 1000,
        answered: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.engine = ScriptedEngine(*texts)
        self.outputs: list[WriteOutput] = []
        self.said = ""
        pace = Pace({}, lambda: None, lambda: False)
        self.reply = LlamaReply(
            cast("LlamaEngine", self.engine),
            [ord("P")],
            limit_tokens,
            pace,
            self.outputs.append,
            answered=answered,
        )
        self.reply.write(
            tools,
            self._say,
            lambda: False,
            must_call=must_call,
            tag="<tool_call>\n",
            may_repeat=may_repeat,
            knows_calls=knows_calls,
        )

    def _say(self, text: str) -> None:
        self.said += text

    @property
    def calls(self) -> list[tuple[str, str]]:
        made: dict[int, tuple[str, str]] = {}
        for output in self.outputs:
            if isinstance(output, ToolCallDelta):
                name, arguments = made.get(output.index, (output.name, ""))
                made[output.index] = name, arguments + output.arguments
        return [made[index] for index in range(len(made))]


def call(arguments: str, name: str = "weather") -> list[str]:
    """The passes of one call among several tools."""
    return [json.dumps(name), arguments]


def test_words_alone_are_words() -> None:
    told = Told("It is { fine } in Lisbon. <b>")
    assert (told.said, told.calls) == ("It is { fine } in Lisbon. <b>", [])
    assert not told.reply.has_called and not told.reply.hit_limit


def test_a_call_is_written_in_passes_that_go_on_from_each_other() -> None:
    told = Told("Let me look. <tool_call>\n{", *call(LISBON), "\nIt is fine.")
    assert told.said.strip() == "Let me look."
    assert told.calls == [("weather", LISBON)]
    opened = "PLet me look. <tool_call>\n"
    assert told.engine.prompts == [
        "P",
        opened + '{"name": ',
        opened + '{"name": "weather", "arguments": ',
        opened + '{"name": "weather", "arguments": ' + LISBON + "}\n</tool_call>",
    ]
    assert [grammar is None for grammar in told.engine.grammars] == [True, False, False, True]


def test_a_call_for_which_there_is_no_tool_is_neither_made_nor_said() -> None:
    told = Told('Fine. <tool_call>\n{"name": "weather"}', tools=())
    assert (told.said.strip(), told.calls) == ("Fine.", [])
    told = Told('{"name": "Ann"}', tools=(), knows_calls=False)
    assert told.said == '{"name": "Ann"}', "where nobody speaks of tools it is an answer"


def test_an_only_tool_need_not_be_chosen() -> None:
    told = Told("{}", tools=(CLOCK,), must_call=True, may_repeat=False)
    assert told.calls == [("clock", "{}")] and len(told.engine.prompts) == 1


def test_several_calls_follow_each_other_and_none_is_made_twice() -> None:
    again = '\n<tool_call>\n{"name": "w'
    told = Told('{"name": "we', *call(LISBON), again, *call(PARIS), again, *call(LISBON))
    assert told.calls == [("weather", LISBON), ("weather", PARIS)]
    told = Told('{"name": "we', *call(LISBON), may_repeat=False)
    assert told.calls == [("weather", LISBON)]


def test_a_model_that_calls_for_ever_is_stopped() -> None:
    texts = ['{"name": "w']
    for number in range(MOST_CALLS):
        texts += [*call(f'{{"city": "{number}"}}'), '\n{"name": "w']
    assert len(Told(*texts).calls) == MOST_CALLS


def test_arguments_are_told_as_they_come_unless_they_must_be_judged_first() -> None:
    told = Told('{"name": "w', *call(LISBON), "", tools=(CITY, ODD))
    assert len([o for o in told.outputs if isinstance(o, ToolCallDelta)]) > 3
    told = Told('{"n": 2}', tools=(ODD,), must_call=True, may_repeat=False)
    pieces = [o for o in told.outputs if isinstance(o, ToolCallDelta)]
    assert [(piece.name, piece.arguments) for piece in pieces] == [("odd", '{"n": 2}')]


def test_misfits_are_written_anew_and_never_told() -> None:
    told = Told('{"n": 1}', '{"n": 2}', tools=(ODD,), must_call=True, may_repeat=False)
    assert told.calls == [("odd", '{"n": 2}')]
    with pytest.raises(StageError) as failure:
        Told(*['{"n": 1}'] * MOST_TRIES, tools=(ODD,), must_call=True)
    assert failure.value.code == "tool_call_invalid"


def test_an_engine_that_drops_a_grammar_is_noticed_at_the_first_character() -> None:
    told = Told("Once upon a time", LISBON, tools=(CITY,), must_call=True, may_repeat=False)
    assert told.calls == [("weather", LISBON)] and told.said == ""
    first, second = told.engine.grammars
    assert first != second, "the second try asks for any object"


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_at_the_limit_a_call_is_as_far_as_it_was_written(limit: int) -> None:
    told = Told(LISBON, tools=(CITY,), must_call=True, limit_tokens=limit)
    assert told.reply.hit_limit and told.calls == [("weather", LISBON[: 3 * limit])]
    assert told.reply.usage.output_tokens == limit


def test_a_call_whose_tool_is_not_yet_chosen_at_the_limit_is_none() -> None:
    told = Told('"weather"', must_call=True, limit_tokens=1)
    assert told.reply.hit_limit and told.calls == [] and told.said == ""


def test_half_an_opening_at_the_end_is_said_as_it_stands() -> None:
    assert Told("1 <to").said == "1 <to"
    assert Told("ab <tool", limit_tokens=2).said == "ab <to"


def test_a_call_that_has_its_answer_is_not_made_again() -> None:
    known = frozenset({("weather", json.dumps(json.loads(LISBON), sort_keys=True))})
    told = Told('{"name": "w', *call(LISBON), answered=known)
    assert told.reply.has_repeated and told.calls == []
    told = Told('{"name": "w', *call(PARIS), "", answered=known)
    assert not told.reply.has_repeated and told.calls == [("weather", PARIS)]


def test_usage_rises_from_pass_to_pass_and_ends_at_the_whole() -> None:
    told = Told('{"name": "w', *call(LISBON), "")
    usages: list[Any] = [o.usage for o in told.outputs if isinstance(o, UsageSoFar)]
    written = [usage.output_tokens for usage in usages]
    assert written == sorted(written)
    assert told.reply.usage == usages[-1] == Usage(1, 2, 4 + 3 + 6)
