"""Long conversations are cut in bulk, at a place that stays the same from turn to turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.stages.context_window import (
    MESSAGE_OVERHEAD_TOKENS,
    ContextTooSmall,
    estimated_size,
    estimated_tokens,
    fit,
)
from pipelines.types import Message, ToolCall, Truncation

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


# ---- what a session chooses ----------------------------------------------------------------------


def starts_of(turns: int, truncation: Truncation, room: int | None = 210) -> list[int]:
    """The number of the first turn that is kept, turn by turn."""
    kept = [fit(talk(end), room, count, truncation) for end in range(1, turns)]
    return [int(messages[1].text.split()[0]) for messages in kept]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_a_cut_keeps_the_share_and_stays_until_the_limit_is_hit_again(share: float) -> None:
    truncation = Truncation(keep_share=share)
    starts = starts_of(80, truncation)
    assert starts == sorted(starts) and starts[0] == 0
    for end, (before, after) in enumerate(zip(starts, starts[1:], strict=False), start=2):
        kept = size(fit(talk(end), 210, count, truncation)[1:])
        if before != after:
            # Cut at whole turns, back to a user's: the last message stays whatever the share.
            assert kept <= max(200 * share, 20)
        assert kept <= 200


def test_the_smaller_the_share_the_rarer_the_cuts() -> None:
    cuts = [
        len(set(starts_of(120, Truncation(keep_share=share)))) for share in (0.2, 0.5, 0.8, 1.0)
    ]
    assert cuts == sorted(cuts) and cuts[0] < cuts[-1]


def test_the_messages_may_have_a_limit_of_their_own() -> None:
    limited = Truncation(keep_share=1.0, limit_tokens=100)
    for turns in range(2, 40):
        for room in (None, 1000):
            assert size(fit(talk(turns), room, count, limited)[1:]) <= 100
    assert starts_of(40, limited, None) == starts_of(40, limited, 1000)
    # The context is a limit too, whatever the client names.
    assert size(fit(talk(40), 110, count, Truncation(limit_tokens=5000))) <= 110


def test_the_last_message_stays_though_the_client_s_limit_is_below_it() -> None:
    kept = fit(talk(9), 1000, count, Truncation(limit_tokens=5))
    assert kept == (SYSTEM, talk(9)[-1])
    assert fit([SYSTEM], None, count, Truncation(limit_tokens=0)) == (SYSTEM,)


def test_nothing_is_dropped_where_nothing_may_be() -> None:
    fixed = Truncation(may_drop=False)
    assert fit(talk(9), 1000, count, fixed) == tuple(talk(9))
    assert fit(talk(90), None, count, fixed) == tuple(talk(90))
    with pytest.raises(ContextTooSmall):
        fit(talk(31), 210, count, fixed)


def test_tokens_are_estimated_by_the_bytes_of_a_text() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "word", "words")] == [0, 1, 1, 2]
    assert estimated_tokens("你好你好") == 3, "not one: each is nearly a token"
    assert estimated_tokens("\ud83d") == 1, "half a character is no reason to fail"
    assert estimated_size([SYSTEM]) == MESSAGE_OVERHEAD_TOKENS + 2


# ---- calls and their results ---------------------------------------------------------------------


def called(number: int, results: int = 1, words: int = 4) -> list[Message]:
    """One round: calls in one message, and behind it the result of each."""
    ids = [f"c{number}_{at}" for at in range(results)]
    calls = tuple(ToolCall(call_id, "look", "{}") for call_id in ids)
    answers = [Message("tool", "word " * words, call_id=call_id) for call_id in ids]
    return [Message("assistant", "", calls), *answers]


def orphans(kept: tuple[Message, ...]) -> list[str | None]:
    """The results without a call before them."""
    made: set[str | None] = set()
    found: list[str | None] = []
    for message in kept:
        made |= {call.call_id for call in message.tool_calls}
        found += [message.call_id] * (message.role == "tool" and message.call_id not in made)
    return found


def test_a_cut_comes_between_rounds_where_one_turn_has_too_many() -> None:
    messages = [SYSTEM, Message("user", "look everywhere")]
    for number in range(40):
        messages += called(number, results=number % 3 + 1)
        for end in range(len(messages) - 2, len(messages) + 1):
            for room in (90, 120, 200):
                kept = fit(messages[:end], room, count)
                assert not orphans(kept) and kept[-1] == messages[end - 1]


def test_the_question_stays_while_it_and_what_follows_fit() -> None:
    question = Message("user", "look everywhere")
    messages = [*talk(9), question]
    for number in range(8):  # 22 tokens each: with the question 186 of the 200 that there are
        messages += called(number)
        kept = fit(messages, 210, count, Truncation(keep_share=0.3))
        assert question in kept


def test_a_last_result_whose_call_does_not_fit_beside_it_is_refused() -> None:
    messages = [SYSTEM, Message("user", "look"), *called(0, results=3, words=20)]
    assert not orphans(fit(messages, 120, count))
    with pytest.raises(ContextTooSmall):
        fit(messages, 70, count)
    kept = fit(messages, None, count, Truncation(limit_tokens=5))
    assert kept == (SYSTEM, *messages[2:]), "the client's own limit refuses nothing"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), min_size=1, max_size=40),
    st.integers(150, 300),
    st.floats(0, 1),
)
def test_no_result_ever_stands_without_its_call(
    rounds: list[tuple[int, int]], room: int, share: float
) -> None:
    messages = [SYSTEM]
    for number, (results, words) in enumerate(rounds):
        if results:
            messages += called(number, results, words)
        else:
            messages.append(Message("user", "w " * words))
    kept = fit(messages, room, count, Truncation(keep_share=share))
    assert not orphans(kept) and kept[-1] == messages[-1]
