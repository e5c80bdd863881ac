"""One response as the client sees it: created, items and parts opened, filled and closed, done.

The order of notices is that of the wire; concatenated deltas equal what the closing notices say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from realtime.session.conversation import ROOT
from realtime.session.effects import PlayReply
from realtime.session.items import Item, ItemKind, ItemStatus, Part, PartKind, Role
from realtime.session.ledger import Ledger, Stamp
from realtime.session.notices import (
    ArgumentsDelta,
    ArgumentsDone,
    AudioDone,
    ItemAdded,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartAddress,
    PartDone,
    ResponseCreated,
    ResponseDone,
    ResponseSnapshot,
    ResponseStatus,
    ResponseUsage,
    TextDelta,
    TextDone,
)
from realtime.session.settings import AudioFormat, Modality

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.playback import Track
    from realtime.session.reply import Reply

WORTH_CONTINUING_MS = 500  # less than a word or two is better left unsaid


@dataclass(frozen=True, slots=True)
class ResponseShape:
    """What the session and the client's overrides settled for one response."""

    modality: Modality
    voice: str
    output_format: AudioFormat
    max_output_tokens: int | None
    metadata: tuple[tuple[str, str], ...] | None
    out_of_band: bool


@dataclass(slots=True)
class _OpenCall:
    index: int  # output_index
    item_id: str
    told: int = 0  # characters of arguments sent
    is_done: bool = False


@dataclass(slots=True)
class Response:
    """A response under way. `lane` and `epoch` name where its audio goes."""

    id: str
    shape: ResponseShape
    lane: str
    epoch: int
    ledger: Ledger
    reply: Reply | None = None
    waits_for: set[str] = field(default_factory=set[str])  # items whose transcript is due
    status: ResponseStatus = ResponseStatus.IN_PROGRESS
    _output: list[Item] = field(default_factory=list[Item])
    _message: PartAddress | None = None
    _told: int = 0  # characters of the message sent
    _calls: list[_OpenCall] = field(default_factory=list[_OpenCall])
    _track: Track | None = None
    _after: str | None = None  # where its next item goes in the conversation

    @property
    def is_done(self) -> bool:
        return self.status is not ResponseStatus.IN_PROGRESS

    @property
    def has_words(self) -> bool:
        return self.reply is not None and self.reply.has_words

    def is_worth_continuing(self, ctx: Context) -> bool:
        """Whether enough of it is unheard."""
        if self.reply is None:
            return False
        heard_ms = self._track.heard_ms(ctx.now_ms) if self._track else 0.0
        unheard_ms = self.reply.produced_samples * 1000 / self.reply.rate_hz - heard_ms
        return self.reply.ending is None or unheard_ms >= WORTH_CONTINUING_MS

    def unheard(self, heard: str) -> str | None:
        """What was written beyond the words that were heard, so that it can be said as it stands;
        of a text that was never finished, up to the end of its last sentence.

        None: there is nothing, or it went with a call, which must not be made twice.
        """
        if self.reply is None or self.reply.calls:
            return None
        rest = self.reply.text.strip()[len(heard) :].strip()
        if not self.reply.is_whole:
            rest = rest[: max(rest.rfind(mark) for mark in ".!?") + 1]
        return rest or None

    # ---- beginning -----------------------------------------------------------------------------

    def take(self, ctx: Context, reply: Reply) -> None:
        """The reply answers what the conversation holds now, and its items stand behind that:
        what is said before the first of them is there waits for an answer of its own."""
        self.reply = reply
        self._after = ctx.conversation.end

    def create(self, ctx: Context) -> None:
        self.ledger.stamp(Stamp.CREATED, ctx.now_ms)
        ctx.tell(ResponseCreated(self._snapshot(ctx, ResponseStatus.IN_PROGRESS)))

    def advance(self, ctx: Context) -> None:
        """Tell whatever the reply has made since: open items, send text and calls.

        The text of spoken replies goes with its audio (`leave`).
        """
        reply = self.reply
        if reply is None or self.is_done:
            return
        if self.shape.modality is Modality.TEXT:
            if reply.text:
                self._open_message(ctx)
                self._tell_text(ctx, len(reply.text))
        elif reply.produced_samples:
            self._open_message(ctx)
            if self._track is not None:
                self._track.marks = reply.marks
        self.advance_calls(ctx)

    def leave(self, ctx: Context, samples: int) -> None:
        """A frame up to `samples` is about to leave: its text goes before it."""
        reply = self.reply
        if reply is None or self._message is None or self.is_done:
            return
        self.ledger.stamp(Stamp.FIRST_SENT, ctx.now_ms)
        fresh = samples - reply.sent_samples
        reply.sent_samples = max(reply.sent_samples, samples)
        if fresh > 0 and self._track is not None:
            ctx.playback.send(self._track, fresh, ctx.now_ms)
            self.ledger.stamp(Stamp.FIRST_PLAYED, self._track.spans[0][0])
        self._tell_text(ctx, reply.characters_leaving(samples))

    def fade(self, ctx: Context, samples: int) -> None:
        """The last frame before a silence, faded, leaves with the cut or the hold itself."""
        if self.reply is not None:
            self.reply.sent_samples += samples
        if self._track is not None:
            ctx.playback.send(self._track, samples, ctx.now_ms)
            self._track.padding_ms += self.shape.output_format.padding_ms

    # ---- ending --------------------------------------------------------------------------------

    def finish(
        self,
        ctx: Context,
        status: ResponseStatus,
        reason: str | None = None,
        code: str | None = None,
        message: str | None = None,
    ) -> None:
        """Close what is open and tell `done`. What was cut short shows only what was sent."""
        reply = self.reply
        is_whole = status is ResponseStatus.COMPLETED
        has_ended = status in (ResponseStatus.COMPLETED, ResponseStatus.INCOMPLETE)
        if reply is not None:
            self.ledger.stamp(Stamp.FIRST_TEXT, reply.first_text_ms)
            self.ledger.stamp(Stamp.VOICED, reply.voiced_ms)
            self.ledger.stamp(Stamp.FIRST_AUDIO, reply.first_audio_ms)
            if has_ended:
                self.advance_calls(ctx)
                if reply.text.strip():
                    self._open_message(ctx)
                    self._tell_text(ctx, len(reply.text))
        self._close_message(ctx, is_whole)
        for call, open_call in zip(reply.calls if reply else (), self._calls, strict=False):
            if not open_call.is_done:
                self._close_call(ctx, open_call, call.call_id, call.name, is_whole)
        self.ledger.stamp(Stamp.DONE, ctx.now_ms)
        self.status = status
        snapshot = self._snapshot(ctx, status, reason, code, message)
        ctx.tell(ResponseDone(snapshot, self.ledger.since_speech_ms))

    def conclude(self, ctx: Context) -> None:
        """The generation has ended and everything has left: say how."""
        ending = self.reply.ending if self.reply else None
        if ending is None:
            self.finish(ctx, ResponseStatus.COMPLETED)
        elif ending.has_failed:
            self.fail(ctx, ending.code, ending.message)
        elif ending.reason == "length":
            self.finish(ctx, ResponseStatus.INCOMPLETE, "max_output_tokens")
        elif ending.reason == "content_filter":
            self.finish(ctx, ResponseStatus.INCOMPLETE, "content_filter")
        else:
            self.finish(ctx, ResponseStatus.COMPLETED)

    def fail(self, ctx: Context, code: str, message: str) -> None:
        ctx.report_failure(code, message)
        self.finish(ctx, ResponseStatus.FAILED, code=code, message=message)

    @property
    def message_item_id(self) -> str | None:
        return self._message.item_id if self._message else None

    # ---- the message ---------------------------------------------------------------------------

    def _open_message(self, ctx: Context) -> None:
        if self._message is not None or self.reply is None:
            return
        item = Item(
            ctx.ids.make("item"),
            ItemKind.MESSAGE,
            ItemStatus.IN_PROGRESS,
            Role.ASSISTANT,
        )
        at = self._message = PartAddress(self.id, item.id, len(self._output), 0)
        self._add_item(ctx, item)
        ctx.tell(PartAdded(at, self.shape.modality))
        # An item in progress can be retrieved: it shows its part from the start.
        self._update_item(ctx, self._message_item(ItemStatus.IN_PROGRESS))
        if self.shape.modality is Modality.AUDIO:
            if not self.shape.out_of_band:
                wire = self.shape.output_format
                self._track = ctx.playback.open(item.id, wire.rate_hz, wire.padding_ms)
            ctx.emit(
                PlayReply(
                    self.reply.request,
                    self.lane,
                    self.epoch,
                    self.id,
                    item.id,
                    at.output_index,
                    at.content_index,
                )
            )

    def _tell_text(self, ctx: Context, characters: int) -> None:
        if self.reply is None or self._message is None or characters <= self._told:
            return
        delta = self.reply.text[self._told : characters]
        self._told += len(delta)
        if delta:
            ctx.tell(TextDelta(self._message, self.shape.modality, delta))
            self._update_item(ctx, self._message_item(ItemStatus.IN_PROGRESS))

    def _close_message(self, ctx: Context, is_whole: bool) -> None:
        at = self._message
        if at is None or self.reply is None:
            return
        text = self.reply.text[: self._told]
        if self.shape.modality is Modality.AUDIO:
            ctx.tell(AudioDone(at))
        ctx.tell(TextDone(at, self.shape.modality, text))
        ctx.tell(PartDone(at, self.shape.modality, text))
        if self._track is not None:
            self._track.is_complete = True
        status = ItemStatus.COMPLETED if is_whole else ItemStatus.INCOMPLETE
        self._finish_item(ctx, at.output_index, self._message_item(status))

    def _message_item(self, status: ItemStatus) -> Item:
        at = self._message
        assert at is not None and self.reply is not None
        spoken = self.shape.modality is Modality.AUDIO
        part = Part(
            PartKind.OUTPUT_AUDIO if spoken else PartKind.OUTPUT_TEXT,
            self.reply.text[: self._told],
            audio_ms=self.reply.sent_samples * 1000 // self.reply.rate_hz if spoken else 0,
        )
        return Item(at.item_id, ItemKind.MESSAGE, status, Role.ASSISTANT, (part,))

    # ---- calls ---------------------------------------------------------------------------------

    def advance_calls(self, ctx: Context) -> None:
        """Tell what is new of the calls; a call is complete when the next one or the end comes."""
        reply = self.reply
        if reply is None or self.is_done:
            return
        if reply.calls and not self._calls and reply.text.strip():
            self._open_message(ctx)  # the words before a call come first, though not spoken yet
        for place, call in enumerate(reply.calls):
            if place == len(self._calls):
                if not call.call_id or call.call_id in ctx.conversation.call_ids():
                    call.call_id = ctx.ids.make("call")  # models may number their calls anew
                item = Item(
                    ctx.ids.make("item"),
                    ItemKind.FUNCTION_CALL,
                    ItemStatus.IN_PROGRESS,
                    call_id=call.call_id,
                    name=call.name,
                    arguments="",
                )
                self._calls.append(_OpenCall(len(self._output), item.id))
                self._add_item(ctx, item)
            open_call = self._calls[place]
            delta = call.arguments[open_call.told :]
            if delta:
                open_call.told += len(delta)
                ctx.tell(
                    ArgumentsDelta(self.id, open_call.item_id, open_call.index, call.call_id, delta)
                )
            if not open_call.is_done and (reply.is_whole or place + 1 < len(reply.calls)):
                self._close_call(ctx, open_call, call.call_id, call.name, is_whole=True)

    def _close_call(
        self, ctx: Context, open_call: _OpenCall, call_id: str, name: str, is_whole: bool
    ) -> None:
        assert self.reply is not None
        open_call.is_done = True
        arguments = self.reply.calls[self._calls.index(open_call)].arguments[: open_call.told]
        status = ItemStatus.COMPLETED if is_whole else ItemStatus.INCOMPLETE
        ctx.tell(
            ArgumentsDone(self.id, open_call.item_id, open_call.index, call_id, name, arguments)
        )
        item = Item(
            open_call.item_id,
            ItemKind.FUNCTION_CALL,
            status,
            call_id=call_id,
            name=name,
            arguments=arguments,
        )
        self._finish_item(ctx, open_call.index, item)
        if is_whole and not self.shape.out_of_band:
            ctx.expect_tool(call_id)

    # ---- items ---------------------------------------------------------------------------------

    def _add_item(self, ctx: Context, item: Item) -> None:
        ctx.tell(OutputItemAdded(self.id, len(self._output), item))
        self._output.append(item)
        if not self.shape.out_of_band:
            after = self._after
            if after != ROOT and (after is None or after not in ctx.conversation):
                after = None  # deleted meanwhile: at the end, then
            previous = ctx.conversation.insert(item, after)
            self._after = item.id
            ctx.tell(ItemAdded(item, previous))

    def _update_item(self, ctx: Context, item: Item) -> None:
        if not self.shape.out_of_band:
            ctx.replace_reply_item(item)

    def _finish_item(self, ctx: Context, index: int, item: Item) -> None:
        self._output[index] = item
        ctx.tell(OutputItemDone(self.id, index, item))
        if self.shape.out_of_band:
            return
        if item.id in ctx.conversation:
            previous = ctx.conversation.announced_previous(item.id)
            ctx.replace_reply_item(item)
            ctx.tell(ItemDone(item, previous))
        else:
            ctx.conversation.release(item.id)

    def _snapshot(
        self,
        ctx: Context,
        status: ResponseStatus,
        reason: str | None = None,
        code: str | None = None,
        message: str | None = None,
    ) -> ResponseSnapshot:
        shape = self.shape
        snapshot = ResponseSnapshot(
            id=self.id,
            status=status,
            output=tuple(self._output),
            conversation_id=None if shape.out_of_band else ctx.conversation_id,
            modality=shape.modality,
            voice=shape.voice,
            output_format=shape.output_format,
            max_output_tokens=shape.max_output_tokens,
            metadata=shape.metadata,
            reason=reason,
            error_code=code,
            error_message=message,
        )
        if status is ResponseStatus.IN_PROGRESS:
            return snapshot
        return replace(snapshot, usage=self.reply.usage if self.reply else ResponseUsage())
