"""The words and calls of one answer are one message of the next prompt, as the model wrote them."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session.effects import PromptMessage
from realtime.session.items import Item, ItemKind, ItemStatus, Part, PartKind, Role
from realtime.session.playback import Playback
from realtime.session.prompt import INTERRUPTED, NO_RESULT, build_prompt
from tests.realtime.session.script import Script


def said(role: Role, text: str) -> Item:
    kind = PartKind.INPUT_TEXT if role is Role.USER else PartKind.OUTPUT_TEXT
    return Item(text, ItemKind.MESSAGE, role=role, parts=(Part(kind, text),))


def call(name: str, status: ItemStatus = ItemStatus.COMPLETED) -> Item:
    return Item(name, ItemKind.FUNCTION_CALL, status, call_id=f"c_{name}", name=name)


def output(name: str, text: str) -> Item:
    return Item(f"o_{name}", ItemKind.FUNCTION_CALL_OUTPUT, call_id=f"c_{name}", output=text)


def prompt(*items: Item) -> list[tuple[str, str, list[str]]]:
    """Role, text and called tools of each message."""
    messages: tuple[PromptMessage, ...] = build_prompt("", items, Playback(), 0.0)
    return [(m.role, m.text, [made.name for made in m.calls]) for m in messages]


USER = said(Role.USER, "hi")
WORDS = said(Role.ASSISTANT, "Let me look.")


def test_words_and_the_calls_behind_them_are_one_message() -> None:
    assert prompt(USER, WORDS, call("a"), call("b"), output("b", "2"), output("a", "1")) == [
        ("user", "hi", []),
        ("assistant", "Let me look.", ["a", "b"]),
        ("tool", "1", []),
        ("tool", "2", []),
    ]


def test_calls_without_words_are_one_message_too() -> None:
    assert prompt(USER, call("a"), call("b"), output("a", "1")) == [
        ("user", "hi", []),
        ("assistant", "", ["a", "b"]),
        ("tool", "1", []),
        ("tool", NO_RESULT, []),
    ]


def test_what_follows_an_output_is_another_answer() -> None:
    items = (USER, call("a"), output("a", "1"), call("b"), output("b", "2"), WORDS, call("c"))
    assert prompt(*items) == [
        ("user", "hi", []),
        ("assistant", "", ["a"]),
        ("tool", "1", []),
        ("assistant", "", ["b"]),
        ("tool", "2", []),
        ("assistant", "Let me look.", ["c"]),
        ("tool", NO_RESULT, []),
    ]


def test_a_user_s_words_come_between_answers_and_a_call_cut_short_is_none() -> None:
    half = call("half", ItemStatus.INCOMPLETE)
    assert prompt(WORDS, USER, call("a"), half, call("b")) == [
        ("assistant", "Let me look.", []),
        ("user", "hi", []),
        ("assistant", "", ["a", "b"]),
        ("tool", NO_RESULT, []),
        ("tool", NO_RESULT, []),
    ]


def test_the_prompt_after_a_call_goes_on_where_the_answer_ended() -> None:
    script = Script()
    script.ask()
    script.write("Let me look.")
    script.speak(400)
    script.call("look", "{}")
    script.finish("tool_calls")
    script.wait(2000)
    script.output("call_a", "noon")
    script.create()
    first, second = script.done(fx.StartReply)[-2:]
    assert second.messages[: len(first.messages)] == first.messages
    answer, result = second.messages[len(first.messages) :]
    assert (answer.text, [made.name for made in answer.calls]) == ("Let me look.", ["look"])
    assert (result.role, result.text) == ("tool", "noon")


def test_words_that_were_broken_off_before_a_call_are_told_as_such() -> None:
    script = Script()
    script.ask()
    script.write("one two three four five six seven eight nine ten")
    script.speak(5000)
    script.call("look", "{}")
    script.silence(1500)
    script.ask()
    messages = script.done(fx.StartReply)[-1].messages
    assert any(message.text == INTERRUPTED for message in messages)
    assert not any(message.text and message.calls for message in messages)
