"""Turns after their end: recognised, then committed as an item or discarded, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from realtime.session.deadlines import Due
from realtime.session.effects import (
    Abort,
    DropAudio,
    FileAudio,
    KeepAudio,
    Recognise,
    RecogniseHandle,
)
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.notices import (
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

    def turn_failed(self, turn: Turn, code: str, message: str) -> None: ...

    def turn_heard(self, turn: Turn) -> None:
        """The text of the turn so far is known."""
        ...

    def item_transcribed(self, item_id: str) -> None: ...

    def item_failed(self, item_id: str, code: str, message: str) -> None: ...


class Turns:
    """Numbers turns, has them recognised, and concludes them one after another."""

    def __init__(self, ctx: Context, listener: TurnListener) -> None:
        self.ctx = ctx
        self.listener = listener
        self._count = 0
        self._heard_by: dict[str, Turn] = {}  # recognitions of turns that are no items yet
        self._ended: list[Turn] = []  # waiting for their text or for the turn before
        self._failed: dict[int, tuple[str, str]] = {}
        self._items: dict[str, tuple[str, int]] = {}  # (item, audio ms) by recognition

    def open(self, start: int, onset: int) -> Turn:
        self._count += 1
        turn = Turn(self._count, self.ctx.ids.make("item"), start, onset)
        self.ctx.emit(KeepAudio(turn.number, start))
        return turn

    @property
    def is_concluding(self) -> bool:
        """Whether an ended turn still waits for its text."""
        return bool(self._ended)

    def is_untranscribed(self, item_id: str) -> bool:
        return any(item_id == awaited for awaited, _ in self._items.values())

    @property
    def untranscribed(self) -> set[str]:
        """Items whose transcript is still to come."""
        return {item_id for item_id, _ in self._items.values()}

    # ---- recognition ---------------------------------------------------------------------------

    def recognise(self, turn: Turn) -> None:
        """Hear the turn's audio up to now; an older recognition of it is pointless."""
        self.cancel_recognition(turn)
        ctx = self.ctx
        turn.recognition = self._request_recognition(turn, ctx.position)
        self._heard_by[turn.recognition] = turn

    def cancel_recognition(self, turn: Turn) -> None:
        if turn.recognition is not None:
            self._heard_by.pop(turn.recognition, None)
            self.ctx.deadlines.disarm(Due.TRANSCRIPT, turn.recognition)
            self.ctx.abort(turn.recognition)
            turn.recognition = None

    def _request_recognition(self, turn: Turn, end: int) -> str:
        ctx = self.ctx
        request = ctx.ids.next_request("hear")
        wanted = ctx.settings.transcription
        ctx.emit(
            Recognise(
                request,
                turn.number,
                turn.start,
                end,
                wanted.language if wanted else None,
                wanted.prompt if wanted else None,
            )
        )
        self._arm_deadline(request, (end - turn.start) // SAMPLES_PER_MS)
        return request

    def recognise_item(self, item_id: str, audio_handle: str, audio_ms: int) -> None:
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
        self._items[request] = (item_id, audio_ms)
        self._arm_deadline(request, audio_ms)

    def _arm_deadline(self, request: str, audio_ms: int) -> None:
        allowed_ms = self.ctx.policy.transcript_deadline_ms + audio_ms
        self.ctx.deadlines.arm(Due.TRANSCRIPT, self.ctx.now_ms + allowed_ms, request)

    def hear(self, request: str, text: str) -> None:
        """A final transcript came; one that nobody waits for is dropped."""
        self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
        turn = self._heard_by.pop(request, None)
        if turn is not None:
            turn.recognition = None
            turn.text = text.strip()
            turn.transcript_ms = self.ctx.now_ms
            self.listener.turn_heard(turn)
            self._conclude()
        elif request in self._items:
            item_id, audio_ms = self._items.pop(request)
            if self.ctx.conversation.set_transcript(item_id, text.strip()):
                self._tell_transcript(item_id, text.strip(), audio_ms)
            self.listener.item_transcribed(item_id)

    def fail(self, request: str, code: str, message: str) -> None:
        """A recognition failed or took too long."""
        self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
        turn = self._heard_by.pop(request, None)
        if turn is not None:
            turn.recognition = None
            self._failed[turn.number] = (code, message)
            self._conclude()
        elif request in self._items:
            item_id, _ = self._items.pop(request)
            self._tell_failure(item_id, code, message)
            self.listener.item_failed(item_id, code, message)

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
        if turn.text is None and turn.recognition is None and turn.number not in self._failed:
            self.recognise(turn)
        self._ended.append(turn)
        self._conclude()

    def drop(self, turn: Turn) -> None:
        """The turn never was."""
        self.cancel_recognition(turn)
        self.ctx.abort(turn.judge_request)
        self._failed.pop(turn.number, None)
        self.ctx.emit(DropAudio(turn.number))

    def drop_all(self) -> None:
        """The client is gone: nothing that is not an item yet becomes one."""
        for turn in self._ended:
            self.drop(turn)
        self._ended.clear()
        for request in list(self._items):
            self.ctx.deadlines.disarm(Due.TRANSCRIPT, request)
            self.ctx.abort(request)
        self._items.clear()

    def commit_manually(self, turn: Turn, position: int) -> None:
        """The client ended the turn: its item comes at once, its text when it is known."""
        self.cancel_recognition(turn)
        self.ctx.abort(turn.judge_request)
        turn.is_manual = True
        turn.end = position
        self._add_item(turn)
        request = self._request_recognition(turn, position)
        self._items[request] = (turn.item_id, (position - turn.start) // SAMPLES_PER_MS)

    def _conclude(self) -> None:
        while self._ended:
            turn = self._ended[0]
            failure = self._failed.pop(turn.number, None)
            if failure is None and turn.text is None:
                return
            del self._ended[0]
            if failure is not None:
                self._add_item(turn)
                self._tell_failure(turn.item_id, *failure)
                self.listener.turn_failed(turn, *failure)
            elif turn.text:
                version = self.ctx.context_version
                self._add_item(turn)
                self._tell_transcript(
                    turn.item_id, turn.text, (turn.end - turn.start) // SAMPLES_PER_MS
                )
                self.listener.turn_committed(turn, version)
            else:
                self.ctx.emit(DropAudio(turn.number))
                self.listener.turn_discarded(turn)

    def _add_item(self, turn: Turn) -> None:
        """The announced item comes into the conversation; on the wire without its text."""
        ctx = self.ctx
        audio_ms = (turn.end - turn.start) // SAMPLES_PER_MS
        item = Item(
            turn.item_id,
            ItemKind.MESSAGE,
            role=Role.USER,
            parts=(Part(PartKind.INPUT_AUDIO, audio_ms=audio_ms),),
        )
        ctx.emit(FileAudio(turn.number, turn.end, turn.item_id))
        previous = ctx.conversation.insert(item)
        ctx.user_was_active = True
        ctx.tell(InputCommitted(item.id, previous))
        ctx.tell(ItemAdded(item, previous))
        ctx.tell(ItemDone(item, previous))
        if turn.text:
            ctx.conversation.set_transcript(item.id, turn.text)

    def _tell_transcript(self, item_id: str, text: str, audio_ms: int) -> None:
        if self.ctx.settings.transcription is None:
            return
        if text:
            self.ctx.tell(TranscriptionDelta(item_id, 0, text))
        self.ctx.tell(TranscriptionCompleted(item_id, 0, text, audio_ms))

    def _tell_failure(self, item_id: str, code: str, message: str) -> None:
        if self.ctx.settings.transcription is not None:
            self.ctx.tell(TranscriptionFailed(item_id, 0, code, message))
