"""Conversation items as immutable snapshots; a change makes a new one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# What an item or a part costs in memory whatever it holds, counted as text.
OVERHEAD_CHARACTERS = 64


class ItemKind(StrEnum):
    MESSAGE = "message"
    FUNCTION_CALL = "function_call"
    FUNCTION_CALL_OUTPUT = "function_call_output"


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class ItemStatus(StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class PartKind(StrEnum):
    INPUT_TEXT = "input_text"
    INPUT_AUDIO = "input_audio"
    INPUT_IMAGE = "input_image"
    OUTPUT_TEXT = "output_text"
    OUTPUT_AUDIO = "output_audio"


@dataclass(frozen=True, slots=True)
class Part:
    """One content part.

    text: the text, or the transcript of an audio part (None: not known yet, or never).
    audio_handle: where the shell keeps the samples of an audio part.
    audio_ms: how long they are.
    image_url, image_detail: of an input_image.
    """

    kind: PartKind
    text: str | None = None
    audio_handle: str | None = None
    audio_ms: int = 0
    image_url: str | None = None
    image_detail: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """`id` is empty on an item that a client made without choosing one."""

    id: str
    kind: ItemKind
    status: ItemStatus = ItemStatus.COMPLETED
    role: Role | None = None
    parts: tuple[Part, ...] = ()
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None

    @property
    def size_characters(self) -> int:
        """All text that it holds, and what it costs without any; audio is kept elsewhere."""
        overhead = OVERHEAD_CHARACTERS * (1 + len(self.parts))
        parts = sum(len(part.text or "") + len(part.image_url or "") for part in self.parts)
        return overhead + parts + len(self.arguments or "") + len(self.output or "")


@dataclass(frozen=True, slots=True)
class ItemReference:
    """An item of the conversation, named in a response's own input."""

    id: str
