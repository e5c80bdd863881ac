"""Demanded calls on the stand-in for the engine: held to a schema, judged, and made or failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.stages.llm_sglang_prompt import Prompts
from pipelines.types import (
    FinishReason,
    Message,
    StageError,
    ToolSpec,
    UsageSoFar,
    WriteOutput,
    WriteRequest,
)
from tests.pipelines.stages.sglang_model import FakeEngine, write_model
from tests.pipelines.stages.test_sglang_writer import (
    CITY,
    CLOCK,
    LISBON,
    bench,
    called,
    ending,
    said,
)
from tests.pipelines.waiting import check

ASKED = (Message("user", "Is it warm in Lisbon?"),)
REQUEST = WriteRequest("r", ASKED, tools=(CITY, CLOCK), tool_choice="weather")


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Prompts:
    return Prompts.load(write_model(tmp_path_factory.mktemp("model")))


class Answers:
    """Gives one text per run; `ends` closes each with the end of a turn."""

    def __init__(self, prompts: Prompts, *texts: str, ends: bool = True) -> None:
        self.prompts, self.texts, self.end = prompts, list(texts), "<|im_end|>" if ends else ""

    def __call__(self, _ids: list[int], sampling: dict[str, Any]) -> Sequence[int]:
        if sampling["max_new_tokens"] == 1:
            return self.prompts.encode("!")  # the warm-up
        return self.prompts.encode(self.texts.pop(0) + self.end)


def answered(
    prompts: Prompts, request: WriteRequest, *texts: str, **engine: Any
) -> tuple[list[WriteOutput], FakeEngine, list[str]]:
    """What a request brings, the engine, and the prompts that it was shown."""
    found: list[WriteOutput] = []
    shown: list[str] = []
    fake = FakeEngine(Answers(prompts, *texts), **engine)

    async def main() -> None:
        async with bench(prompts, "", engine=fake) as it:
            try:
                found.extend(await it.write(request))
            finally:
                shown.extend(it.shown(number) for number in range(len(fake.calls)))

    check(main)
    return found, fake, shown


def test_a_named_tool_is_called_inside_its_schema(prompts: Prompts) -> None:
    found, engine, shown = answered(prompts, REQUEST, f" {LISBON}")
    assert (said(found), called(found)) == ("", [("weather", LISBON)])
    assert ending(found).reason is FinishReason.TOOL_CALLS
    assert shown[0].endswith('</think>\n\n<tool_call>\n{"name": "weather", "arguments": ')
    schema = json.loads(engine.calls[0]["json_schema"])
    assert schema == json.loads(CITY.parameters_json)
    assert sum(isinstance(output, UsageSoFar) for output in found) >= 2


def test_of_several_tools_one_is_chosen_first(prompts: Prompts) -> None:
    required = replace(REQUEST, tool_choice="required")
    found, engine, shown = answered(prompts, required, '"clock"', "{}")
    assert called(found) == [("clock", "{}")]
    assert json.loads(engine.calls[0]["json_schema"])["enum"] == ["weather", "clock"]
    assert shown[0].endswith('<tool_call>\n{"name": ')
    assert shown[1].endswith('<tool_call>\n{"name": "clock", "arguments": ')
    usage = ending(found).usage
    assert usage.input_tokens == len(engine.calls[0]["ids"]), "what is in the cache is read once"
    assert usage.output_tokens == len('"clock"') + 1 + len("{}"), "it ends with the object"


def test_without_schemas_the_call_is_judged_and_tried_again(prompts: Prompts) -> None:
    texts = ('{"city": 7}', f"{LISBON}}}\n</tool_call> and more")
    found, engine, _ = answered(prompts, REQUEST, *texts, knows_schemas=False)
    assert called(found) == [("weather", LISBON)]
    assert ["json_schema" in call for call in engine.calls] == [True, False, False]


def test_a_name_without_a_schema_may_have_more_behind_it(prompts: Prompts) -> None:
    required = replace(REQUEST, tool_choice="required")
    texts = ('"rm", "arguments"', '"weather", "arguments": {}', LISBON)
    found, _, _ = answered(prompts, required, *texts, knows_schemas=False)
    assert called(found) == [("weather", LISBON)]


@pytest.mark.parametrize(
    ("choice", "texts", "code"),
    [
        ("weather", ('{"city": 7}',) * 3, "tool_call_invalid"),
        ("weather", ("I will not.",) * 3, "tool_call_invalid"),
        ("required", ("I will not.",) * 3, "tool_call_not_made"),
    ],
)
def test_a_call_that_does_not_come_fails_the_request(
    prompts: Prompts, choice: str, texts: tuple[str, ...], code: str
) -> None:
    with pytest.raises(StageError) as caught:
        answered(prompts, replace(REQUEST, tool_choice=choice), *texts, knows_schemas=False)
    assert caught.value.code == code


def test_a_call_that_is_cut_says_so(prompts: Prompts) -> None:
    found, _, _ = answered(prompts, replace(REQUEST, max_output_tokens=6), LISBON)
    assert called(found) == [("weather", LISBON[:6])]
    assert ending(found).reason is FinishReason.LENGTH


def test_a_tool_whose_schema_cannot_be_judged_is_refused(prompts: Prompts) -> None:
    bad = ToolSpec("weather", "", '{"type": "array"}')
    with pytest.raises(StageError) as caught:
        answered(prompts, replace(REQUEST, tools=(bad,)), "{}")
    assert caught.value.code == "llm_bad_tool_schema"


def test_an_engine_without_a_tokenizer_is_not_asked_for_schemas(prompts: Prompts) -> None:
    fake = FakeEngine(Answers(prompts, LISBON))

    async def main() -> None:
        async with bench(prompts, "", engine=fake, follows_schemas=False) as it:
            assert called(await it.write(REQUEST)) == [("weather", LISBON)]
            assert "json_schema" not in fake.calls[0]

    check(main)


def test_the_folder_of_the_model_is_what_is_loaded(prompts: Prompts, tmp_path: Path) -> None:
    from pipelines.stages.llm_sglang import SGLangWriter
    from pipelines.stages.llm_sglang_arguments import SGLangOptions

    writer = SGLangWriter(SGLangOptions(tmp_path / "nowhere", 0.3))

    async def main() -> None:
        with pytest.raises(StageError, match="nowhere could not be loaded"):
            await writer.start(lambda line: None)
        await writer.close()

    check(main)
