"""What no client should send, by the dice: events that are almost right, and frames of garbage."""

from __future__ import annotations

import json
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**18, "", "x", "x" * 300, [], [None], {}, {"type": "x"},
    {"type": "realtime", "instructions": 5}, {"type": "message", "role": "user"},
)  # fmt: skip
FIELDS = (
    "session", "item", "response", "audio", "item_id", "content_index", "audio_end_ms",
    "previous_item_id", "response_id", "extra",
)  # fmt: skip
KINDS = (
    "session.update", "input_audio_buffer.append", "conversation.item.create",
    "conversation.item.truncate", "conversation.item.delete", "response.create", "no.such.event",
)  # fmt: skip
GARBAGE: tuple[str | bytes, ...] = (
    "", "{", "[]", "null", "NaN", '"x"', "{}", '{"type":5}', '{"type":"x"}', "\ufeff{}",
    '{"type":"response.create","response":NaN}', '{"type":"response.create","type":"x"}',
    '{"type":"response.cancel","x":"\\ud800"}', "[" * 5000, '{"x":' + "9" * 5000 + "}",
    b"", b"\xff\x00", '{"type":"input_audio_buffer.append"}', '{"type":"session.update"}',
    '{"type":"input_audio_buffer.append","audio":"-_-_"}',
)  # fmt: skip


def half_valid(dice: Random) -> tuple[str, dict[str, Any]]:
    """An event with one member that cannot stand; its kind and its members."""
    kind = dice.choice(KINDS)
    fields = {name: dice.choice(VALUES) for name in dice.sample(FIELDS, dice.randint(0, 3))}
    return kind, {**fields, "unheard_of": json.loads("[1]")}


def garbage(dice: Random) -> str | bytes:
    """A frame of which no event can be read, nor its id."""
    return dice.choice(GARBAGE)
