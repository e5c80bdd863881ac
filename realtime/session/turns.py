"""Turns after their end: recognised, then committed as an item or discarded, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from realtime.session.deadlines import Due
from realtime.session.effects import (
    Abort,
    DropAudio,
    FileAudio,
    KeepAudio,
    Listen,
    Recognise,
    RecogniseHandle,
)
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.notices import (
    HeardSoFar,
    InputCommitted,
    ItemAdded,
    ItemDone,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.turn import Turn

if TYPE_CHECKING:
    from realtime.session.context import Context

TRANSCRIPT_LATE = "transcript_timeout"


class TurnListener(Protocol):
    """Who wants to know how turns and transcripts end."""

    def turn_committed(self, turn: Turn, version: tuple[int, int]) -> None:
        """`version` is the context's before the turn's own item came into it."""
        ...

    def turn_discarded(self, turn: Turn) -> None: ...

    def turn_dropped(self) -> None:
        """The client threw the turn under way away."""
        ...

    def turn_failed(self, turn: Turn, code: str, message: str) -> None: ...

    def turn_glimpsed(self, turn: Turn) -> None:
        """Some words of a turn that goes on are known."""
        ...

    def turn_heard(self, turn: Turn) -> None:
        """All that can be known of the turn's words so far is known: its text, or its failure."""
        ...

    def item_transcribed(self, item_id: str) -> None:
        """No text of this item is to come any more."""
        ...

    def item_failed(self, item_id: str, code: str, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _AwaitedText:
    """A recognition whose text belongs to a part of an item."""

    item_id: str
    content_index: int
    audio_ms: int


class Turns:
    """Numbers turns, has them recognised, and concludes them one after another."""

    def __init__(self, ctx: Context, listener: TurnListener) -> None:
        self.ctx = ctx
        self.listener = listener
        self._count = 0
        self._heard_by: dict[str, Turn] = {}  # recognitions of turns that are no items yet
        self._ended: list[Turn] = []  # waiting for their text or for the turn before
        self._items: dict[str, _AwaitedText] = {}  # by recognition
        self._missed: list[_AwaitedText] = []  # not heard out when the client was lost

    def open(self, start: int, onset: int) -> Turn:
        self._count += 1
        turn = Turn(self._count, self.ctx.ids.make("item"), start, onset)
        self.ctx.conversation.reserve(turn.item_id)
        self.ctx.emit(KeepAudio(turn.number, start))
        return turn

    @property
    def is_concluding(self) -> bool:
        """Whether an ended turn still waits for its text."""
        return bool(self._ended)

    @property
    def untranscribed(self) -> set[str]:
        """Items whose transcript is still to come."""
        return {awaited.item_id for awaited in self._items.values()}

    # ---- recognition ---------------------------------------------------------------------------

    def listen(self, turn: Turn, *, is_urgent: bool = False) -> None:
        """Hear the turn's audio as it comes."""
        ctx = self.ctx
        wanted = ctx.settings.transcription
        request = turn.recognition = ctx.ids.next_request("hear")
        turn.is_listening = True
        self._heard_by[request] = turn
        ctx.emit(
            Listen(
                request,
                turn.number,
                turn.unsettled_from,
                wanted.language if wanted else None,
                wanted.prompt if wanted else None,
                is_urgent,
            )
        )

    def resume(self, turn: Turn, since: int) -> None:
        """Speech goes on after a pause. What was heard before a long one is not heard again."""
        self.cancel_recognition(turn)
        pause = since - turn.quiet_since
        if pause >= self.ctx.policy.settling_pause_ms * SAMPLES_PER_MS:
            turn.settle(turn.quiet_since + pause // 2)
        turn.resume()

    def recognise(self, turn: Turn) -> None:
        """Hear the turn's audio up to now."""
        turn.text = turn.failure = None
        request = turn.recognition if turn.is_listening else None
        turn.is_listening = False
        turn.recognition = self._request_recognition(turn, self.ctx.position, request)
        self._heard_by[turn.recognition] = turn

    def cancel_recognition(self, turn: Turn) -> None:
        if turn.recognition is not None:
            self._heard_by.pop(turn.recognition, None)
            self.ctx.deadlines.disarm(Due.TRANSCRIPT, turn.recognition)
            self.ctx.abort(turn.recognition)
            turn.recognition = None
            turn.is_listening = False

    def _request_recognition(self, turn: Turn, end: int, request: str | None = None) -> str:
        ctx = self.ctx
        request = request or ctx.ids.next_request("hear")
        wanted = ctx.settings.transcription
        ctx.emit(
            Recognise(
                request,
                turn.number,
                turn.unsettled_from,
                end,
                wanted.language if wanted else None,
                wanted.prompt if wanted else None,
            )
        )
        self._arm_deadline(request, (end - turn.start) // SAMPLES_PER_MS)
        return request

    def recognise_item(
        self, item_id: str, content_index: int, audio_handle: str, audio_ms: int
    ) -> None:
        """Hear audio that the client put into an item."""
        ctx = self.ctx
        request = ctx.ids.next_request("hear")
        wanted = ctx.settings.transcription
        ctx.emit(
            RecogniseHandle(
                request,
                audio_handle,
                wanted.language if wanted else None,
                wanted.prompt if wanted else None,
            )
        )
        self._items[request] = _AwaitedText(item_id, content_index, audio_ms)
        self._arm_deadline(request, audio_ms)

    def _arm_deadline(self, request: str, audio_ms: int) -> None:
        allowed_ms = self.ctx.policy.transcript_deadline_ms + audio_ms
        self.ctx.deadlines.arm(Due.TRANSCRIPT, self.ctx.now_ms + allowed_ms, request)

    def glimpse(self, request: str, text: str) -> None:
        """Words of a turn that goes on; they end nothing."""
        turn = self._heard_by.get(request)
        if turn is not None:
            turn.glimpse = turn.whole_text(text)
            self.listener.turn_glimpsed(turn)
            self.show(turn)

    def show(self, turn: Turn) -> None:
        """Tell what is known of the words of a turn that was announced and has not ended."""
        if not turn.is_announced or turn.end or turn.heard_so_far == turn.shown:
            return
        turn.shown = turn.heard_so_far
        if self.ctx.settings.transcription is not None:
            self.ctx.show(HeardSoFar(turn.item_id, turn.shown))

    def hear(self, request: str, text: str) -> None:
        """A final transcript came; one that nobody waits for is dropped."""
        self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
        turn = self._heard_by.pop(request, None)
        if turn is not None:
            turn.recognition = None
            turn.is_listening = False
            turn.text = turn.whole_text(text)
            turn.transcript_ms = self.ctx.now_ms
            self.listener.turn_heard(turn)
            self.show(turn)
            self._conclude()
        elif request in self._items:
            awaited = self._items.pop(request)
            heard = text.strip()
            if self.ctx.conversation.set_transcript(awaited.item_id, awaited.content_index, heard):
                self._tell_transcript(awaited, heard)
            if awaited.item_id not in self.untranscribed:
                self.listener.item_transcribed(awaited.item_id)

    def fail(self, request: str, code: str, message: str) -> None:
        """A recognition failed or took too long."""
        self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
        turn = self._heard_by.pop(request, None)
        if turn is not None and turn.is_listening:
            turn.recognition = None  # its pause or its end asks again
            turn.is_listening = False
        elif turn is not None:
            turn.recognition = None
            turn.failure = (code, message)
            self.listener.turn_heard(turn)
            self._conclude()
        elif request in self._items:
            awaited = self._items.pop(request)
            self._tell_failure(awaited.item_id, awaited.content_index, code, message)
            self.listener.item_failed(awaited.item_id, code, message)

    def forget_item(self, item_id: str) -> None:
        """The item was deleted: nobody waits for its text."""
        requests = [name for name, awaited in self._items.items() if awaited.item_id == item_id]
        for request in requests:
            self._cancel_item_recognition(request)
        if requests:
            self.listener.item_transcribed(item_id)

    def _cancel_item_recognition(self, request: str) -> None:
        self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
        self.ctx.abort(request)
        del self._items[request]

    def expire(self, request: str) -> None:
        self.ctx.emit(Abort(request))
        self.fail(
            request,
            TRANSCRIPT_LATE,
            "The recogniser gave no transcript in time. The machine may be overloaded; say it "
            "again, or choose a smaller recogniser.",
        )

    # ---- endings -------------------------------------------------------------------------------

    def end(self, turn: Turn, position: int) -> None:
        """The turn is over; it becomes an item, or nothing, when its text is known."""
        turn.end = position
        turn.turn_end_ms = self.ctx.now_ms
        is_unheard = turn.recognition is None and turn.failure is None
        if turn.text is None and (is_unheard or turn.is_listening):
            self.recognise(turn)
        self._ended.append(turn)
        self._conclude()

    def drop(self, turn: Turn) -> None:
        """The turn never was."""
        self.cancel_recognition(turn)
        self.ctx.abort(turn.judge_request)
        self._discard(turn)

    def drop_all(self) -> None:
        """The client is gone: nothing that is not an item yet becomes one."""
        for turn in self._ended:
            self.drop(turn)
        self._ended.clear()
        self._missed += self._items.values()
        for request in list(self._items):
            self._cancel_item_recognition(request)

    def make_up(self) -> None:
        """The client is back: hear what it said, and was not heard out when it was lost."""
        missed, self._missed = self._missed, []
        for awaited in missed:
            item = self.ctx.conversation.get(awaited.item_id)
            if item is not None:
                handle = item.parts[awaited.content_index].audio_handle or item.id
                self.recognise_item(item.id, awaited.content_index, handle, awaited.audio_ms)

    def commit_manually(self, turn: Turn, position: int) -> None:
        """The client ended the turn: its item comes at once, its text when it is known."""
        self.cancel_recognition(turn)
        turn.unsettle()
        self.ctx.abort(turn.judge_request)
        turn.is_manual = True
        turn.end = position
        self._add_item(turn)
        request = self._request_recognition(turn, position)
        self._items[request] = _AwaitedText(turn.item_id, 0, turn.audio_ms)

    def _conclude(self) -> None:
        while self._ended:
            turn = self._ended[0]
            if turn.failure is None and turn.text is None:
                return
            del self._ended[0]
            if turn.failure is not None:
                self._add_item(turn)
                self._tell_failure(turn.item_id, 0, *turn.failure)
                self.listener.turn_failed(turn, *turn.failure)
            elif turn.text:
                version = self.ctx.context_version
                self._add_item(turn)
                self._tell_transcript(_AwaitedText(turn.item_id, 0, turn.audio_ms), turn.text)
                self.listener.turn_committed(turn, version)
            else:
                self._discard(turn)
                self.listener.turn_discarded(turn)

    def _discard(self, turn: Turn) -> None:
        self.ctx.conversation.release(turn.item_id)
        self.ctx.emit(DropAudio(turn.number))
        if turn.is_announced:
            self.ctx.show(HeardSoFar(turn.item_id, ""))

    def _add_item(self, turn: Turn) -> None:
        """The announced item comes into the conversation; on the wire without its text."""
        ctx = self.ctx
        item = Item(
            turn.item_id,
            ItemKind.MESSAGE,
            role=Role.USER,
            parts=(Part(PartKind.INPUT_AUDIO, audio_ms=turn.audio_ms),),
        )
        ctx.emit(FileAudio(turn.number, turn.end, turn.item_id))
        previous = ctx.conversation.insert(item)
        ctx.has_prompted = False
        ctx.tell(InputCommitted(item.id, previous))
        ctx.tell(ItemAdded(item, previous))
        ctx.tell(ItemDone(item, previous))
        if turn.text:
            ctx.conversation.set_transcript(item.id, 0, turn.text)

    def _tell_transcript(self, of: _AwaitedText, text: str) -> None:
        if self.ctx.settings.transcription is None:
            return
        if text:
            self.ctx.tell(TranscriptionDelta(of.item_id, of.content_index, text))
        self.ctx.tell(TranscriptionCompleted(of.item_id, of.content_index, text, of.audio_ms))

    def _tell_failure(self, item_id: str, content_index: int, code: str, message: str) -> None:
        if self.ctx.settings.transcription is not None:
            self.ctx.tell(TranscriptionFailed(item_id, content_index, code, message))
