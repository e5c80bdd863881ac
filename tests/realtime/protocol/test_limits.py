"""What is too large is refused before it costs anything, and what is sent back stays small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.protocol.decode import decode
from realtime.protocol.encode import Encoder
from realtime.protocol.event_schema import MAX_RESPONSE_CHARACTERS, MAX_UPDATE_CHARACTERS
from realtime.protocol.item_schema import MAX_ITEM_BYTES
from realtime.protocol.output_schema import MAX_TOOLS
from realtime.session.events import (
    ClientItemCreate,
    ClientRefused,
    ClientResponseCreate,
    ClientSessionUpdate,
)
from realtime.session.notices import ItemAdded

MIB = 2**20


def update(**session: Any) -> dict[str, Any]:
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def padded(event: dict[str, Any], characters: int) -> str:
    """An event as exactly so many characters of JSON."""
    text = json.dumps(event)
    return text + " " * (characters - len(text))


def item_of(*content: dict[str, Any]) -> str:
    item = {"type": "message", "role": "user", "content": list(content)}
    event = {"type": "conversation.item.create", "event_id": "mine", "item": item}
    return json.dumps(event, ensure_ascii=False)


@pytest.mark.parametrize(
    ("event", "limit", "kind"),
    [
        (update(), MAX_UPDATE_CHARACTERS, ClientSessionUpdate),
        ({"type": "response.create"}, MAX_RESPONSE_CHARACTERS, ClientResponseCreate),
    ],
)
def test_an_event_has_a_length(event: dict[str, Any], limit: int, kind: type) -> None:
    assert isinstance(decode(padded(event, limit)), kind)
    answer = decode(padded({**event, "event_id": "mine"}, limit + 1))
    assert isinstance(answer, ClientRefused)
    assert (answer.code, answer.param, answer.event_id) == ("invalid_value", None, "mine")
    assert str(limit) in answer.message and str(limit + 1) in answer.message


def test_a_session_has_so_many_tools() -> None:
    tools = [{"type": "function", "name": f"f{number}"} for number in range(MAX_TOOLS + 1)]
    assert isinstance(decode(json.dumps(update(tools=tools[:-1]))), ClientSessionUpdate)
    answer = decode(json.dumps(update(tools=tools)))
    assert isinstance(answer, ClientRefused)
    assert (answer.code, answer.param) == ("invalid_value", "session.tools")
    assert f"at most {MAX_TOOLS} entries" in answer.message


@pytest.mark.parametrize("letter", ["x", "ł", '"', "\U0001f600"])
def test_an_item_that_is_taken_can_be_sent_back(letter: str) -> None:
    """However the characters are escaped: what is taken fits, what is refused would not."""
    escaped = len(json.dumps(letter)) - 2
    characters = MAX_ITEM_BYTES // escaped
    fits = decode(item_of({"type": "input_text", "text": letter * (characters - 1000)}))
    assert isinstance(fits, ClientItemCreate)
    assert len(Encoder().encode(ItemAdded(fits.item, None))) < 8 * MIB
    answer = decode(item_of({"type": "input_text", "text": letter * (characters + 1)}))
    assert isinstance(answer, ClientRefused)
    assert (answer.code, answer.param, answer.event_id) == ("invalid_value", "item", "mine")


def test_all_parts_of_an_item_count_together() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 3 * MIB}
    assert isinstance(decode(item_of(image, image)), ClientItemCreate)
    answer = decode(item_of(image, image, image))
    assert isinstance(answer, ClientRefused) and "Send smaller images" in answer.message


def test_audio_counts_apart() -> None:
    """It is not sent back, but for `retrieved`, which shows what fits."""
    event = decode(item_of({"type": "input_audio", "audio": "A" * 12 * MIB}))
    assert not isinstance(event, ClientRefused)
