"""Malformed events over a real socket: one documented error each, and no other effect at all."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.writer import FakeWriter, Say, Script, Stall, words
from pipelines.types import WriteRequest
from tests.live_server import MAX_MESSAGE_BYTES, PATIENCE_S, LiveServer, live_server
from tests.realtime.malformed_case import Case, Moment
from tests.realtime.malformed_events import GROUPS

AT_ONCE = 10
INNER_KEYS = {"type", "code", "message", "param", "event_id"}
USER_ITEM = {
    "id": "item_user",
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "hello"}],
}
CALL_ITEM = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
OUTPUT_ITEM = {"type": "function_call_output", "call_id": "call_1", "output": "1"}


def reply(request: WriteRequest) -> Script:
    is_asked = any(message.role == "user" for message in request.messages)
    return words("Good day.") if is_asked else [Say("I was "), Stall()]


@dataclass(slots=True)
class Visitor:
    """A client that remembers what it was told."""

    socket: ClientConnection
    kind: str
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        """The next event of this type."""
        while True:
            self.seen.append(json.loads(await self.socket.recv()))
            if self.seen[-1]["type"] == kind:
                return self.seen[-1]

    async def create(self, **item: Any) -> dict[str, Any]:
        await self.send("conversation.item.create", item=item)
        return await self.until("conversation.item.done")

    async def settings(self) -> dict[str, Any]:
        """The session's echo, unchanged: whatever was sent before has had its answer then."""
        await self.send("session.update", session={"type": self.kind})
        return (await self.until("session.updated"))["session"]

    async def items(self) -> list[dict[str, Any]]:
        """Every item of the conversation as it is now, from the first to the last."""
        added = [event for event in self.seen if event["type"] == "conversation.item.added"]
        gone = {e["item_id"] for e in self.seen if e["type"] == "conversation.item.deleted"}
        items: list[dict[str, Any]] = []
        for event in added:
            if event["item"]["id"] not in gone:
                await self.send("conversation.item.retrieve", item_id=event["item"]["id"])
                items.append((await self.until("conversation.item.retrieved"))["item"])
        return items

    async def live_through(self, moment: Moment) -> dict[str, str]:
        """Bring the connection to a moment; the ids that the table's frames name."""
        names: dict[str, str] = {}
        match moment:
            case Moment.TALKED:
                await self.create(**USER_ITEM)
                await self.send("response.create")
                done = await self.until("response.done")
                names["$SPOKEN"] = done["response"]["output"][0]["id"]
            case Moment.ANSWERING:
                await self.send("response.create", response={"output_modalities": ["text"]})
                names["$RUNNING"] = (await self.until("response.created"))["response"]["id"]
                await self.until("response.output_text.delta")
            case Moment.CALLED:
                await self.create(**CALL_ITEM)
                await self.create(**OUTPUT_ITEM)
            case Moment.DELETED:
                await self.create(**{**USER_ITEM, "id": "item_gone"})
                await self.send("conversation.item.delete", item_id="item_gone")
                await self.until("conversation.item.deleted")
            case Moment.FRESH | Moment.TRANSCRIBING:
                pass
        return names


@asynccontextmanager
async def visit(server: LiveServer, moment: Moment) -> AsyncIterator[Visitor]:
    is_deaf = moment is Moment.TRANSCRIBING
    url = server.socket_url + ("?intent=transcription" if is_deaf else "")
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(url, compression=None, proxy=None, max_size=None) as socket,
    ):
        visitor = Visitor(socket, "transcription" if is_deaf else "realtime")
        await visitor.until("session.created")
        yield visitor


async def check(case: Case, visitor: Visitor) -> None:
    names = await visitor.live_through(case.moment)
    session, items = await visitor.settings(), await visitor.items()
    frame, says = case.frame(), case.says
    for name, value in names.items():
        frame = frame.replace(name, value) if isinstance(frame, str) else frame
        says = says.replace(name, value)
    before = len(visitor.seen)
    await visitor.socket.send(frame)
    assert await visitor.settings() == session
    error, *others = visitor.seen[before:-1]
    assert not others, "more than one answer"
    assert set(error) == {"type", "event_id", "error"} and error["type"] == "error"
    inner = error["error"]
    assert set(inner) == INNER_KEYS
    assert inner["type"] == "invalid_request_error"
    assert (inner["code"], inner["param"]) == (case.code, case.param or None)
    assert says in inner["message"] and len(inner["message"]) < 1000
    assert inner["event_id"] == case.event_id
    assert await visitor.items() == items
    tail = items[-1]["id"] if items else None
    added = await visitor.create(type="message", role="user", content=[])
    assert added["previous_item_id"] == tail


async def stand(case: Case, server: LiveServer, at_once: asyncio.Semaphore) -> None:
    async with at_once, visit(server, case.moment) as visitor:
        try:
            await check(case, visitor)
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {error}\n{visitor.seen[-3:]}") from error


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_malformed_gets_its_error_and_does_nothing(
    group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with live_server(FakeCascade(writer=FakeWriter(reply))) as server:
            at_once = asyncio.Semaphore(AT_ONCE)
            async with asyncio.TaskGroup() as group_of_visits:
                for case in GROUPS[group]:
                    group_of_visits.create_task(stand(case, server, at_once))

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    loud = [r for r in caplog.records if r.exc_info or r.levelno >= logging.WARNING]
    assert not loud, [record.getMessage() for record in loud]


def test_sixty_ways_and_more() -> None:
    assert sum(len(cases) for cases in GROUPS.values()) >= 60


@pytest.mark.parametrize(
    ("frame", "close_code"),
    [(b'{"type":"\xff"}', 1007), (b"x" * (MAX_MESSAGE_BYTES + 1), 1009)],
)
def test_what_is_no_message_at_all_ends_its_own_connection_alone(
    frame: bytes, close_code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Text that is not UTF-8, and a message beyond every event, as RFC 6455 wants it."""

    async def run() -> None:
        cascade = FakeCascade(writer=FakeWriter(reply))
        async with live_server(cascade) as server, visit(server, Moment.FRESH) as other:
            with pytest.raises(ConnectionClosed) as closed:
                async with visit(server, Moment.FRESH) as visitor:
                    await visitor.socket.send(frame, text=True)
                    await visitor.until("error")
            assert closed.value.rcvd is not None and closed.value.rcvd.code == close_code
            assert await other.settings()
            async with asyncio.timeout(PATIENCE_S):
                while server.app.registry.count > 1 or server.app.registry.open_requests:
                    await asyncio.sleep(0.01)

    asyncio.run(run())
    # The server below logs broken UTF-8 as an error of its own.
    ours = [r for r in caplog.records if not r.name.startswith("uvicorn")]
    assert not [r for r in ours if r.exc_info or r.levelno >= logging.WARNING]
