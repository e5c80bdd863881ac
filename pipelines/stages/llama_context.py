"""Fits a conversation into the context of a model.

The oldest turns are dropped in bulk, down to half of the room. The cut depends only on the turns
before it, so the next request, which has the same beginning, is cut at the same place and finds its
prefix in the cache; dropping a little each time would throw the cache away each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.types import Message

MESSAGE_OVERHEAD_TOKENS = 8  # role and markers that a chat template puts around each message


class ContextTooSmall(Exception):
    """What must not be dropped (instructions, tools, the last message) does not fit."""


def fit(
    messages: Sequence[Message], room_tokens: int, count: Callable[[str], int]
) -> tuple[Message, ...]:
    """The messages that fit into `room_tokens`: every leading system message, and the newest turns.

    What is left begins with a user message where there is one, so that no tool result stands
    without its call. Raises ContextTooSmall.
    """
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    fixed, turns = messages[:leading], messages[leading:]
    room_tokens -= sum(_size(message, count) for message in fixed)
    sizes = [_size(message, count) for message in turns]
    if room_tokens < (sizes[-1] if sizes else 0):
        raise ContextTooSmall
    start = 0
    total = 0
    for end, size in enumerate(sizes, start=1):
        total += size
        if total > room_tokens:
            start = _cut(turns, sizes, start, end, room_tokens // 2)
            total = sum(sizes[start:end])
    return (*fixed, *turns[start:])


def _cut(
    turns: Sequence[Message], sizes: Sequence[int], start: int, end: int, room_tokens: int
) -> int:
    """The first turn to keep so that `turns[start:end]` come down to `room_tokens`."""
    total = sum(sizes[start:end])
    while start < end - 1 and total > room_tokens:
        total -= sizes[start]
        start += 1
    first_user = next((at for at in range(start, end) if turns[at].role == "user"), start)
    return first_user


def _size(message: Message, count: Callable[[str], int]) -> int:
    calls = sum(count(call.name) + count(call.arguments) for call in message.tool_calls)
    return MESSAGE_OVERHEAD_TOKENS + count(message.text) + calls
