"""The language model's view: instructions and items, assistant text cut to what was heard."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from realtime.session.effects import PromptCall, PromptMessage
from realtime.session.items import ItemKind, ItemStatus, PartKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from realtime.session.items import Item
    from realtime.session.playback import Playback

NO_RESULT = "No result."  # stands in a prompt for an output that the client never gave
CONTINUE = (
    "A noise interrupted you; the user said nothing. Go on from where you stopped, without "
    "repeating what you said."
)
RECONNECTED = (
    "The connection to the user was lost for a while and is back. Go on from where you stopped, "
    "without repeating what you said."
)
INTERRUPTED = "The user interrupted you here and did not hear the rest."
TOO_EARLY = (
    "You began before the user had finished: what follows goes on with what they said before. "
    "Answer all of it."
)
STILL_THERE = "The user has said nothing for a while. Ask briefly whether they are still there."
# Stands for an image: no language model here sees, and one that is told so does not invent.
UNSEEN = "[The user shows an image here. You cannot see images; say so if it matters.]"

# Whoever talks over the first words of a reply had not finished their turn.
OPENING_MS = 1000
_INTERRUPTIONS = (PromptMessage("system", INTERRUPTED), PromptMessage("system", TOO_EARLY))


def heard_text(item: Item, playback: Playback, now_ms: float) -> str:
    """An item's text; of assistant audio only what has been heard, to the last whole word."""
    texts = (UNSEEN if p.kind is PartKind.INPUT_IMAGE else p.text for p in item.parts)
    text = " ".join(text for text in texts if text)
    track = playback.get(item.id)
    if track is None or item.role is not Role.ASSISTANT:
        return text.strip()
    if track.has_played(now_ms):
        return text.strip()
    return whole_words(text, track.heard_characters(now_ms))


def _interruption(
    item: Item, heard: str, playback: Playback, now_ms: float
) -> PromptMessage | None:
    """What to say of an interruption that kept the listener from some of what was written."""
    track = playback.get(item.id)
    if track is None or (track.cut_ms is None and track.stopped_at_ms is None):
        return None
    # A text that the client has cut shows no longer how much was written.
    is_cut = track.cut_ms is not None and not track.is_heard_out
    written = " ".join(part.text for part in item.parts if part.text)
    if (
        not is_cut
        and item.status is not ItemStatus.INCOMPLETE
        and len(heard) >= len(written.strip())
    ):
        return None
    interrupted, too_early = _INTERRUPTIONS
    return too_early if track.heard_ms(now_ms) < OPENING_MS else interrupted


def whole_words(text: str, characters: int) -> str:
    """The first `characters` of a text without the word that they cut."""
    if characters >= len(text):
        return text.strip()
    cut = text[: max(0, characters)]
    if cut and not text[characters].isspace() and not cut[-1].isspace():
        cut = cut[: max((i + 1 for i, c in enumerate(cut) if c.isspace()), default=0)]
    return cut.strip()


def build_prompt(
    instructions: str,
    items: Iterable[Item],
    playback: Playback,
    now_ms: float,
    closing: str | None = None,
) -> tuple[PromptMessage, ...]:
    """All messages of a prompt.

    Neighbouring messages of one role are joined: many chat templates want turns to alternate. An
    output stands right behind its call wherever it is in the conversation: an engine refuses a
    call with anything in between. Words and calls that follow each other are one message, as the
    model wrote them: so the prompt goes on where the last one and its answer ended.
    closing: a system message for this reply alone, never kept in the conversation.
    """
    listed = list(items)
    outputs = {
        item.call_id: item.output or ""
        for item in listed
        if item.kind is ItemKind.FUNCTION_CALL_OUTPUT and item.call_id is not None
    }
    said: list[PromptMessage] = []
    answer: int | None = None  # where the assistant's last message stands, if nothing came after it
    for item in listed:
        made = _messages_of(item, outputs, playback, now_ms)
        if item.kind is ItemKind.FUNCTION_CALL and made and answer is not None:
            call, output = made
            said[answer] = replace(said[answer], calls=(*said[answer].calls, *call.calls))
            said.append(output)
            continue
        if made or item.kind is ItemKind.FUNCTION_CALL_OUTPUT:
            answer = len(said) if _may_call(made) else None
        said += made
    messages = [PromptMessage("system", instructions)] if instructions else []
    for place, message in enumerate(said):
        # Only the user's own words interrupt; a noise that cut a reply is told of otherwise.
        if message not in _INTERRUPTIONS or _is_user_next(said, place):
            messages.append(message)
    if closing:
        messages.append(PromptMessage("system", closing))
    return tuple(_joined(messages))


def _is_user_next(said: list[PromptMessage], place: int) -> bool:
    """Whether nobody else speaks before the user; calls and their outputs are no speech."""
    later = (said[at] for at in range(place + 1, len(said)))
    spoken = (message for message in later if message.text and message.role != "tool")
    following = next(spoken, None)
    return following is not None and following.role == "user"


def _may_call(made: list[PromptMessage]) -> bool:
    """Whether calls behind this item belong to it: not where words were cut off."""
    return bool(made) and made[-1] not in _INTERRUPTIONS and made[0].role == "assistant"


def _messages_of(
    item: Item, outputs: dict[str, str], playback: Playback, now_ms: float
) -> list[PromptMessage]:
    match item.kind:
        case ItemKind.MESSAGE:
            text = heard_text(item, playback, now_ms)
            if not text:
                return []
            said = PromptMessage(item.role or Role.USER, text)
            cut = _interruption(item, text, playback, now_ms)
            return [said] if cut is None else [said, cut]
        case ItemKind.FUNCTION_CALL:
            if item.status is not ItemStatus.COMPLETED or item.call_id is None:
                return []  # a call that was cut short was never made
            call = PromptCall(item.call_id, item.name or "", item.arguments or "{}")
            output = outputs.get(item.call_id, NO_RESULT)
            return [
                PromptMessage("assistant", "", calls=(call,)),
                PromptMessage("tool", output, call_id=item.call_id),
            ]
        case ItemKind.FUNCTION_CALL_OUTPUT:
            return []  # stands behind its call


def _joined(messages: Iterable[PromptMessage]) -> Iterator[PromptMessage]:
    """Runs of one role become one message: each in one go, however many a client has made."""
    for _, run in groupby(messages, _run_of):
        first, *rest = run
        if rest:
            yield replace(first, text="\n".join(message.text for message in (first, *rest)))
        else:
            yield first


def _run_of(message: PromptMessage) -> object:
    """What neighbours that are joined have in common; other messages have nothing in common."""
    is_joined = message.role in ("user", "assistant") and not message.calls
    return message.role if is_joined else object()
