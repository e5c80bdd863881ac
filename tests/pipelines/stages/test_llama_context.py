"""Long conversations are cut in bulk, at a place that stays the same from turn to turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.llama_context import MESSAGE_OVERHEAD_TOKENS, ContextTooSmall, fit
from pipelines.types import Message, ToolCall

SYSTEM = Message("system", "be brief")


def count(text: str) -> int:
    return len(text.split())


def talk(turns: int, words: int = 12) -> list[Message]:
    """A conversation of `turns` messages; with the overhead each is 20 tokens."""
    roles = ("user", "assistant")
    return [SYSTEM, *(Message(roles[i % 2], f"{i} " + "word " * (words - 1)) for i in range(turns))]


def size(messages: tuple[Message, ...]) -> int:
    return sum(count(message.text) + MESSAGE_OVERHEAD_TOKENS for message in messages)


def test_what_fits_is_kept_whole() -> None:
    messages = talk(6)
    assert fit(messages, 1000, count) == tuple(messages)


def test_the_oldest_turns_go_and_the_instructions_stay() -> None:
    messages = talk(31)
    kept = fit(messages, 210, count)
    assert kept[0] == SYSTEM
    assert kept[1].role == "user"
    assert kept[-1] == messages[-1]
    assert list(kept[1:]) == messages[-len(kept) + 1 :]
    assert size(kept) <= 210


def test_the_cut_stays_until_the_room_is_full_again() -> None:
    starts = [fit(talk(turns), 210, count)[1].text.split()[0] for turns in range(1, 80)]
    changes = sum(left != right for left, right in zip(starts, starts[1:], strict=False))
    # 200 tokens of room hold 10 turns, and each cut frees half: every 5 turns or more.
    assert 0 < changes <= 80 // 4
    assert sorted(map(int, starts)) == list(map(int, starts))


def test_no_tool_result_is_left_without_its_call() -> None:
    call = Message("assistant", "", (ToolCall("c1", "weather", "{}"),))
    messages = [SYSTEM]
    for number in range(40):
        messages += [Message("user", f"{number} rain?"), call, Message("tool", "no", call_id="c1")]
    for end in range(3, len(messages)):
        kept = fit(messages[: end + 1], 150, count)
        answers = [at for at, message in enumerate(kept) if message.role == "tool"]
        assert all(kept[at - 1] == call for at in answers)


def test_a_last_message_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ContextTooSmall):
        fit([SYSTEM, Message("user", "word " * 100)], 60, count)
    with pytest.raises(ContextTooSmall):
        fit([Message("system", "word " * 100)], 60, count)


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(80, 300))
def test_it_always_fits(lengths: list[int], room: int) -> None:
    roles = ("user", "assistant")
    messages = [SYSTEM]
    messages += [Message(roles[i % 2], "w " * length) for i, length in enumerate(lengths)]
    kept = fit(messages, room, count)
    assert size(kept) <= room
    assert kept[0] == SYSTEM
    assert kept[-1] == messages[-1]
