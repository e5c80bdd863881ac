"""Fits a conversation into what a model may read.

The oldest turns are dropped in bulk, down to a share of the room. The cut depends only on the turns
before it, so the next request, which has the same beginning, is cut at the same place and finds its
prefix in the cache; dropping a little each time would throw the cache away each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.types import Message, StageError, Truncation

MESSAGE_OVERHEAD_TOKENS = 8  # role and markers that a chat template puts around each message
BYTES_PER_TOKEN = 4  # of English in UTF-8, and nearly so of Chinese


class ContextTooSmall(Exception):
    """What must not be dropped (instructions, tools, the last message) does not fit."""


def fit(
    messages: Sequence[Message],
    room_tokens: int | None,
    count: Callable[[str], int],
    truncation: Truncation = Truncation(),  # noqa: B008 (frozen)
) -> tuple[Message, ...]:
    """The messages that fit into `room_tokens` (None: any number), as `truncation` wants it.

    Every leading system message stays, and the newest turns do. What is left begins with a user
    message where there is one, and never with a tool's result: servers refuse one without its call.
    The last message, or the call that it answers, is never dropped, even where `truncation` allows
    less. Raises ContextTooSmall.
    """
    limit = truncation.limit_tokens if truncation.may_drop else None
    if room_tokens is None and limit is None:
        return tuple(messages)
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    fixed, turns = messages[:leading], messages[leading:]
    sizes = [_size(message, count) for message in turns]
    if room_tokens is not None:
        room_tokens -= sum(_size(message, count) for message in fixed)
        needed = sizes[_whole(turns, max(0, len(turns) - 1)) :] if truncation.may_drop else sizes
        if room_tokens < sum(needed):
            raise ContextTooSmall
    limit = min(bound for bound in (room_tokens, limit) if bound is not None)
    start = 0
    total = 0
    for end, size in enumerate(sizes, start=1):
        total += size
        if total > limit:
            keep = int(limit * truncation.keep_share)
            start += _cut(turns[start:end], sizes[start:end], limit, keep)
            total = sum(sizes[start:end])
    return (*fixed, *turns[start:])


def estimated_tokens(text: str) -> int:
    """Of a model whose tokens nobody here can count."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def estimated_size(messages: Sequence[Message]) -> int:
    """Of a whole conversation."""
    return sum(_size(message, estimated_tokens) for message in messages)


def context_exceeded(what: str, detail: str | None = None) -> StageError:
    return StageError(
        "context_length_exceeded",
        f"The conversation does not fit into what the language model can read ({what}): delete "
        "items, shorten the instructions or the tools, or allow truncation.",
        detail,
    )


def _cut(
    turns: Sequence[Message], sizes: Sequence[int], limit_tokens: int, keep_tokens: int
) -> int:
    """How many turns to drop so that the rest come down to `keep_tokens`.

    What follows the user's last words answers them: it is cut only where it exceeds the limit.
    """
    total = sum(sizes)
    first = 0
    while first < len(turns) - 1 and total > keep_tokens:
        total -= sizes[first]
        first += 1
    spoken = [at for at, message in enumerate(turns) if message.role == "user"]
    later = [at for at in spoken if at >= first]
    if later:
        return later[0]
    if spoken and sum(sizes[spoken[-1] :]) <= limit_tokens:
        return spoken[-1]
    return _whole(turns, first)


def _whole(turns: Sequence[Message], first: int) -> int:
    """The turn nearest to `first` that is no tool's result, and if possible behind it."""
    for at in (*range(first, len(turns)), *reversed(range(first))):
        if turns[at].role != "tool":
            return at
    return first


def _size(message: Message, count: Callable[[str], int]) -> int:
    calls = sum(count(call.name) + count(call.arguments) for call in message.tool_calls)
    return MESSAGE_OVERHEAD_TOKENS + count(message.text) + calls
