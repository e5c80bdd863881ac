"""The default conversation: items in the order in which they started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from realtime.session.items import ItemKind, ItemStatus, PartKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from realtime.session.items import Item

ROOT = "root"  # the wire's name for the place before the first item


class Conversation:
    """Items by id and in order. `version` rises with every change that a prompt could show.

    size_characters: of all items together.
    """

    __slots__ = ("_items", "_order", "_previous", "_reserved", "size_characters", "version")

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._order: list[str] = []
        self._previous: dict[str, str | None] = {}
        self._reserved: set[str] = set()
        self.size_characters = 0
        self.version = 0

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return (self._items[item_id] for item_id in self._order)

    def get(self, item_id: str) -> Item | None:
        return self._items.get(item_id)

    @property
    def end(self) -> str:
        """The place behind the last item, as `insert` takes it."""
        return self._order[-1] if self._order else ROOT

    def reserve(self, item_id: str) -> None:
        """The id was announced, or is still being written to: no other item may bear it."""
        self._reserved.add(item_id)

    def release(self, item_id: str) -> None:
        self._reserved.discard(item_id)

    def is_taken(self, item_id: str) -> bool:
        return item_id in self._items or item_id in self._reserved

    def insert(self, item: Item, after: str | None = None) -> str | None:
        """Add an item and return the id of the one before it.

        after: None appends, ROOT puts first, else an id that must be present.
        """
        if after is None:
            place = len(self._order)
        elif after == ROOT:
            place = 0
        else:
            place = self._order.index(after) + 1
        previous = self._order[place - 1] if place else None
        self._order.insert(place, item.id)
        self._items[item.id] = item
        self.size_characters += item.size_characters
        self._previous[item.id] = previous
        self._reserved.discard(item.id)
        self.version += 1
        return previous

    def announced_previous(self, item_id: str) -> str | None:
        """The id told when the item was added; if that one is gone, who stands there now."""
        told = self._previous.get(item_id)
        if told is None or told in self._items:
            return told
        place = self._order.index(item_id)
        return self._order[place - 1] if place else None

    def update(self, item: Item, is_growth: bool = False) -> bool:
        """Replace an item's snapshot. False: it was deleted meanwhile, and stays so.

        is_growth: a reply in progress got longer, which makes no draft stale.
        """
        before = self._items.get(item.id)
        if before is None:
            return False
        self.size_characters += item.size_characters - before.size_characters
        self._items[item.id] = item
        if not is_growth:
            self.version += 1
        return True

    def remove(self, item_id: str) -> None:
        item = self._items.pop(item_id)
        if item.status is ItemStatus.IN_PROGRESS:
            self.reserve(item_id)
        self.size_characters -= item.size_characters
        self._order.remove(item_id)
        self._previous.pop(item_id, None)
        self.version += 1

    def set_transcript(self, item_id: str, content_index: int, text: str) -> bool:
        """Fill in what was heard in an item's audio part. False: the item is gone."""
        item = self._items.get(item_id)
        if item is None:
            return False
        parts = list(item.parts)
        parts[content_index] = replace(parts[content_index], text=text)
        return self.update(replace(item, parts=tuple(parts)))

    def call_ids(self) -> set[str]:
        """Calls that an output may answer."""
        return {
            item.call_id
            for item in self._items.values()
            if item.kind is ItemKind.FUNCTION_CALL and item.call_id is not None
        }

    def is_answered(self, call_id: str) -> bool:
        return any(
            item.kind is ItemKind.FUNCTION_CALL_OUTPUT and item.call_id == call_id
            for item in self._items.values()
        )

    def has_assistant_audio(self) -> bool:
        return any(
            item.role is Role.ASSISTANT and any(p.kind is PartKind.OUTPUT_AUDIO for p in item.parts)
            for item in self._items.values()
        )
