"""Conversation items, as clients write them."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainValidator

from realtime.protocol.content_schema import (
    ReadPart,
    read_assistant_part,
    read_system_part,
    read_user_part,
)
from realtime.protocol.item_view import item_view
from realtime.protocol.json_text import MOST_BYTES_PER_CHARACTER, compact
from realtime.protocol.messages import ItemAudio
from realtime.protocol.problems import Invalid, Problem, invalid
from realtime.protocol.wire_model import WireModel, object_of, tagged, word_of
from realtime.session.items import Item, ItemKind, ItemReference, Role

ROOT = "root"  # as `previous_item_id`: before the first item; so no item may be called that
MAX_ID_CHARACTERS = 128  # ids are echoed in every event that concerns their item
MAX_NAME_CHARACTERS = 128  # as of the tools that can be called
# Items are sent back whole, and well-known clients refuse messages above 8 MiB.
MAX_ITEM_BYTES = 7 * 2**20
MAX_PARTS = 1000  # far more than anybody writes; every part costs memory, even an empty one

_NO_MCP = "MCP items have no use here: MCP servers are not called by this server."
_ITEM_HINTS = {
    "mcp_approval_request": _NO_MCP,
    "mcp_approval_response": _NO_MCP,
    "mcp_list_tools": _NO_MCP,
    "mcp_call": _NO_MCP,
    "item_reference": "References are for the input of 'response.create'.",
}


def check_id(value: str) -> str:
    if value == ROOT:
        raise Invalid(_reserved_id)
    return value


def _reserved_id(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': '{ROOT}' stands for the conversation's beginning.")


ItemId = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS)]
NewItemId = Annotated[ItemId, AfterValidator(check_id)]


_PARTS = Field(max_length=MAX_PARTS, fail_fast=True)


class ItemSchema(WireModel):
    """`status` and `object` are accepted because SDKs send back items as they got them."""

    id: NewItemId | None = None
    object: Literal["realtime.item"] | None = None
    type: str
    status: Literal["in_progress", "completed", "incomplete"] | None = None

    @abstractmethod
    def item(self) -> Item: ...

    def audio(self) -> tuple[ItemAudio, ...]:
        return ()


class MessageSchema(ItemSchema):
    role: str
    content: list[ReadPart]

    def item(self) -> Item:
        parts = tuple(read.part for read in self.content)
        return Item(self.id or "", ItemKind.MESSAGE, role=Role(self.role), parts=parts)

    def audio(self) -> tuple[ItemAudio, ...]:
        return tuple(
            ItemAudio(index, read.audio, read.part.audio_handle)
            for index, read in enumerate(self.content)
            if read.audio is not None and read.part.audio_handle is not None
        )


class UserMessageSchema(MessageSchema):
    content: Annotated[list[Annotated[ReadPart, PlainValidator(read_user_part)]], _PARTS]


class SystemMessageSchema(MessageSchema):
    content: Annotated[list[Annotated[ReadPart, PlainValidator(read_system_part)]], _PARTS]


class AssistantMessageSchema(MessageSchema):
    content: Annotated[list[Annotated[ReadPart, PlainValidator(read_assistant_part)]], _PARTS]


class FunctionCallSchema(ItemSchema):
    call_id: ItemId | None = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    arguments: str

    def item(self) -> Item:
        return Item(
            self.id or "",
            ItemKind.FUNCTION_CALL,
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments,
        )


class FunctionCallOutputSchema(ItemSchema):
    call_id: ItemId
    output: str

    def item(self) -> Item:
        return Item(
            self.id or "",
            ItemKind.FUNCTION_CALL_OUTPUT,
            call_id=self.call_id,
            output=self.output,
        )


class ItemReferenceSchema(WireModel):
    type: Literal["item_reference"]
    id: ItemId


_MESSAGES: dict[str, type[ItemSchema]] = {
    "user": UserMessageSchema,
    "assistant": AssistantMessageSchema,
    "system": SystemMessageSchema,
}
_OTHERS: dict[str, type[ItemSchema]] = {
    "function_call": FunctionCallSchema,
    "function_call_output": FunctionCallOutputSchema,
}


def read_new_item(value: object) -> ItemSchema:
    """An item of `conversation.item.create`. Raises Invalid or ValidationError."""
    read = read_item(value)
    # An upper bound tells most items at once.
    if read.item().size_characters * MOST_BYTES_PER_CHARACTER > MAX_ITEM_BYTES:
        size_bytes = len(compact(item_view(read.item())))
        if size_bytes > MAX_ITEM_BYTES:
            raise Invalid(partial(_too_large, size_bytes=size_bytes))
    return read


def _too_large(path: str, size_bytes: int) -> Problem:
    return invalid(
        path,
        f"Invalid '{path}': its text and images are {size_bytes} bytes of JSON, of which one event "
        f"carries {MAX_ITEM_BYTES}. Send smaller images, or several items.",
    )


def read_item(value: object) -> ItemSchema:
    """An item, wherever it may stand. Raises Invalid or ValidationError."""
    word = word_of(object_of(value), "type", ("message", *_OTHERS), _ITEM_HINTS)
    if word == "message":
        return tagged(value, "role", _MESSAGES)
    return tagged(value, "type", _OTHERS)


def read_input(value: object) -> ItemSchema | ItemReference:
    """An entry of a response's own input: an item, or a reference to one."""
    if object_of(value).get("type") == "item_reference":
        return ItemReference(ItemReferenceSchema.model_validate(value).id)
    return read_item(value)


NewItem = Annotated[ItemSchema, PlainValidator(read_new_item)]
InputEntry = Annotated[ItemSchema | ItemReference, PlainValidator(read_input)]
