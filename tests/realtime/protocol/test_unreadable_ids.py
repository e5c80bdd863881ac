"""The id of an event that cannot be read, as far as it can be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol.decode import decode
from realtime.protocol.json_text import MAX_SEARCHED_CHARACTERS, find_text
from realtime.session.events import ClientRefused

HEAD = '{"event_id":"mine","type":"response.create"'


def id_of(frame: str | bytes) -> str | None:
    answer = decode(frame)
    assert isinstance(answer, ClientRefused)
    return answer.event_id


@pytest.mark.parametrize(
    "rest",
    [
        "",
        ",",
        ',"x"',
        ',"x":',
        ',"x":NaN}',
        ',"x":1,"x":2}',
        ',"x":{"event_id":"other","event_id":"another"}}',
        ',"x":"\\ud800"}',
        ',"x":1e999}',
        ',"x":' + "9" * 10_000 + "}",
        ',"x":' + "[" * 200_000,
        "} and more",
    ],
)
def test_what_comes_behind_the_id_does_not_hide_it(rest: str) -> None:
    assert id_of(HEAD + rest) == "mine"


@pytest.mark.parametrize(
    "frame",
    [
        '{"event_id":"mi',
        '{"event_id":"mine","event_id":"mine"}',
        '{"event_id":5,"x":NaN}',
        '{"event_id":null,"x":NaN}',
        '{"event_id":"\\ud800"}',
        '{"event_id":"' + "x" * 513 + '","x":NaN}',
        '{"x":{"event_id":"inner"},"y":NaN}',
        '{"x":NaN ["event_id":"mine"}',
        '["event_id","mine"]',
        '"event_id":"mine"',
        '{"x":"' + "y" * MAX_SEARCHED_CHARACTERS + '","event_id":"far","z":NaN}',
    ],
)
def test_an_id_that_is_not_certain_is_none(frame: str) -> None:
    assert id_of(frame) is None


def test_a_binary_frame_may_hold_one() -> None:
    assert id_of((HEAD + "}").encode()) == "mine"
    assert id_of(b"\xff" + HEAD.encode()) is None


@given(st.dictionaries(st.text(), st.text() | st.floats() | st.lists(st.integers())), st.text())
def test_of_whole_events_it_is_found_wherever_it_stands(event: dict[str, Any], wanted: str) -> None:
    try:
        wanted.encode()
    except UnicodeEncodeError:
        return
    event["event_id"] = wanted
    for indent in (None, 2):
        assert find_text(json.dumps(event, indent=indent), "event_id") == wanted


@given(st.text(st.characters(codec=None)) | st.text('{}[]":,e\\ 1'))
def test_nothing_is_raised(text: str) -> None:
    for frame in (text, HEAD + text, "{" + text):
        found = find_text(frame, "event_id")
        assert found is None or isinstance(found, str)
