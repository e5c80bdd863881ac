"""Makes the speeches of a batch, a few at a time, and sends each as soon as it is made."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any, cast

from pydantic import ValidationError

from pipelines.ports import Cascade
from pipelines.types import StageError
from realtime.http.faults import first_fault
from realtime.http.outlet import ClientGone, Outlet
from realtime.http.speech.answer import STREAM_HEADERS, refusal_of
from realtime.http.speech.making import make_file, open_file
from realtime.http.speech.order import OrderDesk
from realtime.http.speech.refusal import error_in, refuse_problem
from realtime.http.speech.schema import (
    MAX_ITEM_CHARACTERS,
    MAX_NAME_CHARACTERS,
    BatchItem,
    with_defaults,
)
from realtime.http.stopping import unless_stopped
from realtime.protocol.json_text import compact
from realtime.protocol.problems import dotted, invalid, wrong_type

LEAST_AT_ONCE = 2  # while one file is encoded and sent, the voice has something to do
MOST_AT_ONCE = 8
SHARE_OF_SLOTS = 4  # a batch leaves three of four to whoever talks


async def answer_batch(
    cascade: Cascade,
    desk: OrderDesk,
    items: list[Any],
    defaults: dict[str, Any],
    request_id: str,
    outlet: Outlet,
) -> None:
    """One line of JSON for every item, in the order in which they are finished.

    items, defaults: as they were sent. Each item is refused by itself if it is at fault.
    """
    await outlet.begin("application/x-ndjson", STREAM_HEADERS)
    batch = _Batch(cascade, desk, items, defaults, request_id, outlet)
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(len(items), _at_once(cascade))):
                tasks.create_task(batch.work())
    except* ClientGone:
        raise ClientGone from None
    await outlet.end()


def _at_once(cascade: Cascade) -> int:
    slots = max((stage.slots or 0 for stage in cascade.stats), default=0)
    return min(MOST_AT_ONCE, max(LEAST_AT_ONCE, slots // SHARE_OF_SLOTS))


class _Batch:
    """What the workers of one batch share: who takes which item, and the way out."""

    def __init__(
        self,
        cascade: Cascade,
        desk: OrderDesk,
        items: list[Any],
        defaults: dict[str, Any],
        request_id: str,
        outlet: Outlet,
    ) -> None:
        self._cascade = cascade
        self._desk = desk
        self._items: Iterator[tuple[int, Any]] = enumerate(items)
        self._defaults = defaults
        self._request_id = request_id
        self._outlet = outlet
        self._line_lock = asyncio.Lock()

    async def work(self) -> None:
        """Take items until none is left."""
        for index, item in self._items:
            name = _name_of(item)
            try:
                async with unless_stopped(self._outlet.visit):
                    result = await self._make(index, item)
            except ClientGone:
                raise
            except Exception as error:
                refused = refusal_of(error, f"{self._request_id}-{index}")
                result = {"error": error_in(refused)}
            await self._send({"index": index, "id": name, **result})

    async def _make(self, index: int, item: Any) -> dict[str, Any]:
        root = dotted(("items", index))
        body = _read_item(item, self._defaults, index)
        order = await self._desk.take(
            body, f"{self._request_id}-{index}", root=f"{root}.", is_file=True
        )
        with open_file() as file:
            try:
                made = await make_file(self._cascade, order, file)
            except StageError as error:
                raise order.blame(error) from error

            def read() -> str:
                file.seek(0)
                return base64.b64encode(file.read()).decode()

            audio = await asyncio.to_thread(read)
        return {
            "audio": audio,
            "format": order.format,
            "duration_s": round(made.duration_s, 3),
            "usage": made.usage,
        }

    async def _send(self, result: dict[str, Any]) -> None:
        line = await asyncio.to_thread(lambda: f"{compact(result)}\n".encode())
        async with self._line_lock:
            await self._outlet.write(line)


def _read_item(item: Any, defaults: dict[str, Any], index: int) -> BatchItem:
    """Raises Refused, which names the item's field."""
    root = dotted(("items", index))
    if not isinstance(item, dict):
        raise refuse_problem(wrong_type(root, "an object", item))
    fields = with_defaults(cast("dict[str, Any]", item), defaults)
    try:
        body = BatchItem.model_validate(fields)
    except ValidationError as error:
        raise refuse_problem(first_fault(error, BatchItem, ("items", index))) from None
    if len(body.input) > MAX_ITEM_CHARACTERS:
        why = f"expected at most {MAX_ITEM_CHARACTERS} characters in an item of a batch"
        raise refuse_problem(invalid(f"{root}.input", f"Invalid '{root}.input': {why}."))
    return body


def _name_of(item: Any) -> str | None:
    """The `id` that a client recognises its item by, even if the rest of it is at fault."""
    name = cast("dict[str, Any]", item).get("id") if isinstance(item, dict) else None
    return name if isinstance(name, str) and len(name) <= MAX_NAME_CHARACTERS else None
