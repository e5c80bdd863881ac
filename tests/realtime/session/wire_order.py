"""Watches a session's notices and fails on the first that a client must not get in this order."""

from __future__ import annotations

from dataclasses import dataclass, field

from realtime.session import notices as n
from realtime.session.items import Item, ItemKind, ItemStatus
from realtime.session.notices import Detail, Notice, ResponseStatus
from realtime.session.settings import Modality


@dataclass(slots=True)
class _Output:
    item_id: str
    kind: ItemKind
    text: str = ""
    modality: Modality | None = None  # of the part, once it is open
    is_audio_done: bool = False
    final_text: str | None = None
    is_part_done: bool = False
    done: Item | None = None


@dataclass(slots=True)
class _Response:
    is_default: bool
    outputs: list[_Output] = field(default_factory=list[_Output])


class WireOrder:
    """`order` mirrors the conversation as a client would build it from the notices alone."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.running: dict[str, _Response] = {}
        self.over: set[str] = set()
        self._announced: dict[str, int] = {}  # items of speech under way: where it started
        self._committed: tuple[str, str | None] | None = None
        self._previous: dict[str, str | None] = {}
        self.undone: set[str] = set()
        self._truncated: set[str] = set()
        self._transcribed: set[tuple[str, int]] = set()
        self._expected_item: str | None = None  # an output item must be added to the conversation
        self._has_begun = False
        self._shown: n.ShownState | None = None

    def take(self, notice: Notice) -> None:
        assert self._has_begun or isinstance(notice, n.SessionCreated), notice
        self._has_begun = True
        if self._expected_item is not None:
            assert isinstance(notice, n.ItemAdded) and notice.item.id == self._expected_item
            self._expected_item = None
        match notice:
            case n.SessionCreated():
                self._announced.clear()  # a client that came back begins anew
                self._shown = None
            case n.SpeechStarted() | n.SpeechStopped() | n.InputCommitted() | n.InputCleared():
                self._take_input(notice)
            case n.ItemAdded() | n.ItemDone() | n.ItemDeleted():
                self._take_item(notice)
            case n.TranscriptionDelta() | n.TranscriptionCompleted() | n.TranscriptionFailed():
                key = (notice.item_id, notice.content_index)
                assert notice.item_id in self._previous and key not in self._transcribed, notice
                if not isinstance(notice, n.TranscriptionDelta):
                    self._transcribed.add(key)
            case n.ItemRetrieved(item):
                assert item.id in self.order
            case n.ItemTruncated(item_id):
                assert item_id in self.order
                self._truncated.add(item_id)
            case n.ResponseCreated() | n.ResponseDone():
                self._take_response(notice)
            case n.OutputItemAdded() | n.OutputItemDone() | n.ArgumentsDelta() | n.ArgumentsDone():
                self._take_output(notice)
            case n.PartAdded() | n.PartDone() | n.TextDelta() | n.TextDone() | n.AudioDone():
                self._take_part(notice)
            case _:
                pass

    def take_detail(self, detail: Detail) -> None:
        assert self._has_begun, detail
        match detail:
            case n.StateShown(state):
                assert state is not self._shown, f"{state} is shown twice"
                self._shown = state
            case n.HeardSoFar(item_id, transcript):
                assert item_id not in self._previous, "words half heard of an item"
                assert item_id in self._announced or not transcript, "of no speech under way"

    def take_conversation(self, items: tuple[tuple[Item, str | None], ...]) -> None:
        """What a client that came back finds is what the one before it had."""
        assert [item.id for item, _ in items] == self.order
        assert [previous for _, previous in items] == [None, *self.order[:-1]]
        assert all(item.status is not ItemStatus.IN_PROGRESS for item, _ in items)

    def take_audio(self, response_id: str, item_id: str, output_index: int) -> None:
        """A frame of audio goes to the client."""
        output = self.running[response_id].outputs[output_index]
        assert output.item_id == item_id and output.modality is Modality.AUDIO
        assert not output.is_audio_done, f"audio of {item_id} after its end"

    # ---- kinds of notices ----------------------------------------------------------------------

    def _take_input(
        self, notice: n.SpeechStarted | n.SpeechStopped | n.InputCommitted | n.InputCleared
    ) -> None:
        match notice:
            case n.SpeechStarted(item_id, start_ms):
                assert not self._announced, "one turn at a time"
                assert item_id not in self._previous and start_ms >= 0
                self._announced[item_id] = start_ms
            case n.SpeechStopped(item_id, end_ms):
                assert end_ms >= self._announced.pop(item_id)
            case n.InputCommitted(item_id, previous):
                self._announced.pop(item_id, None)
                assert self._committed is None
                self._committed = (item_id, previous)
            case n.InputCleared():
                self._announced.clear()

    def _take_item(self, notice: n.ItemAdded | n.ItemDone | n.ItemDeleted) -> None:
        match notice:
            case n.ItemAdded(item, previous):
                assert item.id not in self.order and item.id
                assert previous is None or previous in self.order, notice
                if self._committed is not None:
                    assert self._committed == (item.id, previous)
                    self._committed = None
                place = 0 if previous is None else self.order.index(previous) + 1
                self.order.insert(place, item.id)
                self._previous[item.id] = previous
                self.undone.add(item.id)
            case n.ItemDone(item, previous):
                assert item.id in self.undone, f"{item.id} is done twice or never began"
                assert item.status is not ItemStatus.IN_PROGRESS
                self.undone.remove(item.id)
                told = self._previous[item.id]
                assert previous is None or previous in self.order, notice
                assert previous == told or told not in self.order, notice
                self._check_output(item)
            case n.ItemDeleted(item_id):
                self.order.remove(item_id)
                self.undone.discard(item_id)
                self._transcribed = {key for key in self._transcribed if key[0] != item_id}

    def _check_output(self, item: Item) -> None:
        """An item of a response is told alike as its output and as the conversation's."""
        for response in self.running.values():
            for output in response.outputs:
                if output.item_id == item.id and item.id not in self._truncated:
                    assert output.done == item, (output.done, item)

    def _take_response(self, notice: n.ResponseCreated | n.ResponseDone) -> None:
        response = notice.response
        match notice:
            case n.ResponseCreated():
                is_default = response.conversation_id is not None
                assert response.id not in self.running and response.id not in self.over
                assert response.status is ResponseStatus.IN_PROGRESS and not response.output
                if is_default:
                    assert not any(other.is_default for other in self.running.values()), (
                        "two responses in the default conversation"
                    )
                self.running[response.id] = _Response(is_default)
            case n.ResponseDone():
                outputs = self.running.pop(response.id).outputs
                self.over.add(response.id)
                assert response.status is not ResponseStatus.IN_PROGRESS
                assert response.usage is not None
                assert tuple(output.done for output in outputs) == response.output
                assert not self.undone & {output.item_id for output in outputs}

    def _take_output(
        self, notice: n.OutputItemAdded | n.OutputItemDone | n.ArgumentsDelta | n.ArgumentsDone
    ) -> None:
        response = self.running[notice.response_id]
        if isinstance(notice, n.OutputItemAdded):
            item = notice.item
            assert notice.output_index == len(response.outputs), "output indexes have a gap"
            assert item.status is ItemStatus.IN_PROGRESS
            response.outputs.append(_Output(item.id, item.kind))
            self._expected_item = item.id if response.is_default else None
            return
        output = response.outputs[notice.output_index]
        assert output.done is None
        match notice:
            case n.ArgumentsDelta(item_id=item_id, delta=delta):
                assert output.kind is ItemKind.FUNCTION_CALL and item_id == output.item_id
                assert output.final_text is None and delta
                output.text += delta
            case n.ArgumentsDone(item_id=item_id, arguments=arguments):
                assert output.kind is ItemKind.FUNCTION_CALL and item_id == output.item_id
                assert output.final_text is None and arguments == output.text
                output.final_text = arguments
            case n.OutputItemDone(item=item):
                assert item.id == output.item_id and item.status is not ItemStatus.IN_PROGRESS
                assert output.final_text is not None
                if output.kind is ItemKind.MESSAGE:
                    assert output.is_part_done and item.parts[0].text == output.text
                else:
                    assert item.arguments == output.text
                output.done = item

    def _take_part(
        self, notice: n.PartAdded | n.PartDone | n.TextDelta | n.TextDone | n.AudioDone
    ) -> None:
        at = notice.at
        output = self.running[at.response_id].outputs[at.output_index]
        assert output.item_id == at.item_id and at.content_index == 0
        assert output.kind is ItemKind.MESSAGE and output.done is None
        if isinstance(notice, n.PartAdded):
            assert output.modality is None
            output.modality = notice.modality
            return
        assert output.modality is not None and not output.is_part_done
        match notice:
            case n.TextDelta(modality=modality, delta=delta):
                assert modality is output.modality and delta and output.final_text is None
                output.text += delta
            case n.AudioDone():
                assert output.modality is Modality.AUDIO and not output.is_audio_done
                output.is_audio_done = True
            case n.TextDone(modality=modality, text=text):
                assert modality is output.modality and text == output.text
                assert output.is_audio_done or modality is Modality.TEXT
                output.final_text = text
            case n.PartDone(text=text):
                assert text == output.final_text
                output.is_part_done = True
