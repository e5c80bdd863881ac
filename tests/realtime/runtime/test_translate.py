"""What the machine asks for arrives at the stages whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.runtime.message_codec import STAGE_CODEC
from pipelines.types import Finished, FinishReason, ToolSpec, Usage, UsageSoFar
from pipelines.types import Truncation as WriterTruncation
from realtime.runtime.translate import prepare_request, reply_request
from realtime.session.effects import PrepareReply, PromptCall, PromptMessage, StartReply
from realtime.session.events import ReplyFinished, ReplyUsage
from realtime.session.items import Role
from realtime.session.settings import (
    AudioFormat,
    Tool,
    ToolChoice,
    ToolMode,
    Truncation,
    TruncationMode,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade
from tests.realtime.runtime.test_work import Rig, work

LOOK = Tool("look", "Look.", '{"type":"object"}', "{}")
START = StartReply(
    request="r",
    draft=False,
    messages=(PromptMessage("user", "Hi"),),
    speak=True,
    voice="joe",
    speed=1.0,
    output_format=AudioFormat(),
    tools=(LOOK,),
    tool_choice=ToolChoice(ToolMode.REQUIRED),
    max_output_tokens=7,
)


def test_a_conversation_travels_to_a_writer_in_a_process_of_its_own() -> None:
    said = [PromptMessage(role, f"said by the {role}") for role in Role]
    call = PromptCall("c1", "look", "{}")
    answered = (
        PromptMessage("assistant", "", calls=(call,)),
        PromptMessage("tool", "[]", call_id="c1"),
    )
    request = reply_request(replace(START, messages=(*said, *answered)))
    assert request.messages[0].text == "said by the user"
    frames = STAGE_CODEC.encode(request)
    assert STAGE_CODEC.decode(frames) == request


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (Truncation(), WriterTruncation(may_drop=True, keep_share=0.5, limit_tokens=None)),
        (Truncation(TruncationMode.DISABLED), WriterTruncation(may_drop=False)),
        (
            Truncation(TruncationMode.RETENTION_RATIO, 0.8, 900),
            WriterTruncation(may_drop=True, keep_share=0.8, limit_tokens=900),
        ),
    ],
)
def test_truncation_is_the_same_for_a_reply_and_for_its_preparation(
    chosen: Truncation, wanted: WriterTruncation
) -> None:
    assert reply_request(replace(START, truncation=chosen)).truncation == wanted
    ahead = PrepareReply("p", START.messages, (LOOK,), START.tool_choice, chosen)
    assert prepare_request(ahead).truncation == wanted


def test_tools_and_their_choice() -> None:
    request = reply_request(replace(START, parallel_tool_calls=False))
    assert request.tools == (ToolSpec("look", "Look.", '{"type":"object"}'),)
    assert (request.tool_choice, request.max_output_tokens) == ("required", 7)
    assert not request.parallel_tool_calls and reply_request(START).parallel_tool_calls
    named = replace(START, tool_choice=ToolChoice(ToolMode.FUNCTION, "look"))
    assert reply_request(named).tool_choice == "look"


def test_what_was_used_is_told_on_the_way_and_at_the_end() -> None:
    cascade = ScriptedCascade(
        reply=[
            UsageSoFar(Usage(7, 3, 0)),
            UsageSoFar(Usage(7, 3, 4)),
            Finished(FinishReason.STOP, Usage(7, 3, 5)),
        ]
    )

    async def script(rig: Rig) -> None:
        rig.reply()

    rig = work(cascade, script)
    assert rig.events == [
        ReplyUsage("r", 7, 3, 0),
        ReplyUsage("r", 7, 3, 4),
        ReplyFinished("r", "stop", 7, 3, 5),
    ]
