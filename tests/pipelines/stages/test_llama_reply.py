"""The passes of a local model's reply, with an engine that writes what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from pipelines.stages.llama_engine import Completion, LlamaEngine
from pipelines.stages.llama_reply import MOST_CALLS, MOST_TRIES, MOST_YIELDS, LlamaReply, Pace
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
        sampling: Mapping[str, Any],
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
        known: tuple[str, ...] | None = ("weather", "odd", "clock"),
        limit_tokens: int = 1000,
        answered: frozenset[tuple[str, str]] = frozenset(),
        pace: Pace = Pace({}, lambda: None, lambda: False),  # noqa: B008 (frozen)
    ) -> None:
        self.engine = ScriptedEngine(*texts)
        self.outputs: list[WriteOutput] = []
        self.said = ""
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
            known=known,
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
    told = Told('Fine.\n{"name": "weather"}', tools=())
    assert (told.said.strip(), told.calls) == ("Fine.", [])


@pytest.mark.parametrize("known", [None, ("weather", "clock")])
@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```"])
def test_an_answer_that_is_an_object_with_a_name_is_said(
    known: tuple[str, ...] | None, fence: str
) -> None:
    text = fence.replace("{}", '{"name": "Ann", "age": 3}')
    for tools in ((CITY, CLOCK), ()):
        told = Told(text, known=known, tools=tools)
        assert (told.said, told.calls) == (text, [])
    assert Told('{"name": "weather"}', known=None).said == '{"name": "weather"}'


def test_an_only_tool_need_not_be_chosen() -> None:
    told = Told("{}", tools=(CLOCK,), must_call=True, may_repeat=False)
    assert told.calls == [("clock", "{}")] and len(told.engine.prompts) == 1


def test_several_calls_follow_each_other_and_none_is_made_twice() -> None:
    again = '\n<tool_call>\n{"name": "weather"'
    told = Told('{"name": "weather", ', *call(LISBON), again, *call(PARIS), again, *call(LISBON))
    assert told.calls == [("weather", LISBON), ("weather", PARIS)]
    told = Told('{"name": "weather", ', *call(LISBON), may_repeat=False)
    assert told.calls == [("weather", LISBON)]


def test_a_model_that_calls_for_ever_is_stopped() -> None:
    texts = ['{"name": "weather", ']
    for number in range(MOST_CALLS):
        texts += [*call(f'{{"city": "{number}"}}'), '\n{"name": "weather", ']
    assert len(Told(*texts).calls) == MOST_CALLS


def test_arguments_are_told_as_they_come_unless_they_must_be_judged_first() -> None:
    told = Told('{"name": "weather", ', *call(LISBON), "", tools=(CITY, ODD))
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
    told = Told('{"name": "weather", ', *call(LISBON), answered=known)
    assert told.reply.has_repeated and told.calls == []
    told = Told('{"name": "weather", ', *call(PARIS), "", answered=known)
    assert not told.reply.has_repeated and told.calls == [("weather", PARIS)]


def test_usage_rises_from_pass_to_pass_and_ends_at_the_whole() -> None:
    told = Told('{"name": "weather", ', *call(LISBON), "")
    usages: list[Any] = [o.usage for o in told.outputs if isinstance(o, UsageSoFar)]
    written = [usage.output_tokens for usage in usages]
    assert written == sorted(written)
    assert told.reply.usage == usages[-1] == Usage(1, 1, 7 + 3 + 6), (
        "no more is cached than there is"
    )


def test_a_schema_beyond_bounds_never_becomes_a_grammar() -> None:
    bomb = ToolSpec("bomb", "", json.dumps(objects(a={"type": "array", "minItems": 10**9})))
    with pytest.raises(StageError) as failure:
        Told("{}", tools=(bomb,), must_call=True)
    assert failure.value.code == "llm_bad_tool_schema"
    told = Told('{"name": "bomb"}', '{"a": []}', "", tools=(bomb,), known=("bomb",))
    assert told.calls == [("bomb", '{"a": []}')], "of its own accord it writes any object"
    assert all(len(grammar or "") < 1000 for grammar in told.engine.grammars)


AGAIN = '\n{"name": "weather", '  # 7 tokens, behind the 16 of a first call


@pytest.mark.parametrize("limit", [16, 17, 20, 23, 24, 25])
def test_a_limit_before_the_next_call_has_begun_leaves_the_last_one_whole(limit: int) -> None:
    told = Told('{"name": "weather", ', *call(LISBON), AGAIN, *call(PARIS), limit_tokens=limit)
    assert told.calls == [("weather", LISBON)]
    assert not told.reply.hit_limit and told.reply.has_called


def test_a_limit_within_the_next_call_makes_that_one_incomplete() -> None:
    told = Told('{"name": "weather", ', *call(LISBON), AGAIN, *call(PARIS), limit_tokens=28)
    assert told.reply.hit_limit and told.calls == [("weather", LISBON), ("weather", PARIS[:6])]


class Rival:
    """Somebody more urgent, who is waiting whenever asked, and has been let go first `turns`."""

    def __init__(self, *, is_draft: bool) -> None:
        self.turns = 0
        self.pace = Pace({}, self._pause, lambda: False, lambda: True, lambda: is_draft)

    def _pause(self) -> None:
        self.turns += 1


def test_arguments_of_which_nobody_knows_are_written_anew_after_somebody_more_urgent() -> None:
    rival = Rival(is_draft=True)
    half = LISBON[:9] + "x"
    passes = ['{"name": "weather", ', json.dumps("weather"), *[half] * MOST_YIELDS, LISBON, ""]
    told = Told(*passes, pace=rival.pace)
    assert told.calls == [("weather", LISBON)]
    assert rival.turns == MOST_YIELDS, "and then it is their turn"


def test_arguments_that_somebody_reads_are_written_to_their_end() -> None:
    rival = Rival(is_draft=False)
    told = Told('{"name": "weather", ', *call(LISBON), "", pace=rival.pace)
    assert told.calls == [("weather", LISBON)] and rival.turns == 0
