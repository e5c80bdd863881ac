"""The client events: one model each, and what each becomes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, PlainValidator

from realtime.protocol.audio_bytes import AudioBytes
from realtime.protocol.item_schema import MAX_ID_CHARACTERS, ItemId, ItemSchema, NewItem
from realtime.protocol.messages import (
    POSITION_UNKNOWN,
    AppendAudio,
    ClientMessage,
    CreateItemWithAudio,
    Ping,
)
from realtime.protocol.problems import Invalid, Problem, invalid
from realtime.protocol.response_schema import ResponseSchema
from realtime.protocol.session_schema import read_session
from realtime.protocol.wire_model import Count, WireModel
from realtime.session.events import (
    ClientClear,
    ClientCommit,
    ClientItemCreate,
    ClientItemDelete,
    ClientItemRetrieve,
    ClientItemTruncate,
    ClientResponseCancel,
    ClientResponseCreate,
    ClientSessionUpdate,
    PlaybackReported,
)
from realtime.session.settings import ResponseOptions, SettingsPatch

MAX_EVENT_ID_CHARACTERS = 512  # the wire's limit; errors echo it
MAX_PING_ID_CHARACTERS = 64  # the answer echoes it: a number or a UUID is enough


# A session is sent back whole: well-known clients refuse messages above 8 MiB, and of a character
# an escape of twelve bytes may become.
MAX_UPDATE_CHARACTERS = 2**19
MAX_RESPONSE_CHARACTERS = 8 * 2**20  # its input may hold images, which are not sent back


class EventSchema(WireModel):
    """max_characters: of the event's JSON, where its parts have no limits of their own."""

    max_characters: ClassVar[int | None] = None

    type: str
    event_id: Annotated[str, Field(max_length=MAX_EVENT_ID_CHARACTERS)] | None = None

    @abstractmethod
    def message(self) -> ClientMessage: ...


class SessionUpdateSchema(EventSchema):
    max_characters: ClassVar[int | None] = MAX_UPDATE_CHARACTERS

    session: Annotated[SettingsPatch, PlainValidator(read_session)]

    def message(self) -> ClientMessage:
        return ClientSessionUpdate(self.event_id, self.session)


class AppendSchema(EventSchema):
    audio: AudioBytes

    def message(self) -> ClientMessage:
        return AppendAudio(self.event_id, self.audio)


class CommitSchema(EventSchema):
    def message(self) -> ClientMessage:
        return ClientCommit(self.event_id, POSITION_UNKNOWN)


class ClearSchema(EventSchema):
    def message(self) -> ClientMessage:
        return ClientClear(self.event_id, POSITION_UNKNOWN)


class ItemCreateSchema(EventSchema):
    previous_item_id: Annotated[str, Field(max_length=MAX_ID_CHARACTERS)] | None = None
    item: NewItem

    def message(self) -> ClientMessage:
        # SDKs write "append" in three ways: no key, null and "".
        event = ClientItemCreate(self.event_id, self.item.item(), self.previous_item_id or None)
        audio = self.item.audio()
        return CreateItemWithAudio(event, audio) if audio else event


class ItemRetrieveSchema(EventSchema):
    item_id: ItemId

    def message(self) -> ClientMessage:
        return ClientItemRetrieve(self.event_id, self.item_id)


class ItemTruncateSchema(EventSchema):
    item_id: ItemId
    content_index: Count
    audio_end_ms: Count

    def message(self) -> ClientMessage:
        return ClientItemTruncate(
            self.event_id, self.item_id, self.content_index, self.audio_end_ms
        )


class PlaybackSchema(EventSchema):
    """Parley's own: how much of an item's audio the client has played so far."""

    item_id: ItemId
    played_ms: Count

    def message(self) -> ClientMessage:
        return PlaybackReported(self.item_id, self.played_ms)


class PingSchema(EventSchema):
    """Parley's own: answered at once, for the round trip and for a line that may be dead."""

    id: Annotated[str, Field(max_length=MAX_PING_ID_CHARACTERS)] | None = None

    def message(self) -> ClientMessage:
        return Ping(self.id)


class ItemDeleteSchema(EventSchema):
    item_id: ItemId

    def message(self) -> ClientMessage:
        return ClientItemDelete(self.event_id, self.item_id)


def check_no_audio(response: ResponseSchema) -> ResponseSchema:
    for index, entry in enumerate(response.input or ()):
        if isinstance(entry, ItemSchema) and entry.audio():
            part_index = entry.audio()[0].part_index
            raise Invalid(_audio_in_input, at=("input", index, "content", part_index, "audio"))
    return response


def _audio_in_input(path: str) -> Problem:
    return invalid(
        path,
        f"Invalid '{path}': a response's own input takes no inline audio. Create the item with "
        "'conversation.item.create' and name it here as an 'item_reference'.",
    )


class ResponseCreateSchema(EventSchema):
    max_characters: ClassVar[int | None] = MAX_RESPONSE_CHARACTERS

    response: Annotated[ResponseSchema, AfterValidator(check_no_audio)] | None = None

    def message(self) -> ClientMessage:
        options = self.response.options() if self.response else ResponseOptions()
        return ClientResponseCreate(self.event_id, options)


class ResponseCancelSchema(EventSchema):
    response_id: Annotated[str, Field(max_length=MAX_ID_CHARACTERS)] | None = None

    def message(self) -> ClientMessage:
        return ClientResponseCancel(self.event_id, self.response_id or None)


EVENT_SCHEMAS: dict[str, type[EventSchema]] = {
    "session.update": SessionUpdateSchema,
    "input_audio_buffer.append": AppendSchema,
    "input_audio_buffer.commit": CommitSchema,
    "input_audio_buffer.clear": ClearSchema,
    "conversation.item.create": ItemCreateSchema,
    "conversation.item.retrieve": ItemRetrieveSchema,
    "conversation.item.truncate": ItemTruncateSchema,
    "conversation.item.delete": ItemDeleteSchema,
    "response.create": ResponseCreateSchema,
    "response.cancel": ResponseCancelSchema,
    "parley.playback": PlaybackSchema,
    "parley.ping": PingSchema,
}
