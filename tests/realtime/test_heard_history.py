"""What the next prompt holds of a reply that was broken off, over a real socket.

Replies are words of one tone each, so that the time played names the words heard.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.writer import FakeWriter, words
from realtime.settings import Server, Settings
from tests.live_server import PATIENCE_S, live_server

TEXT = " ".join(f"word{number}" for number in range(1, 41))
UNPACED = Settings(server=Server(lead_ms=None))


class Client:
    """Types, listens and remembers the first reply's item and how much of its sound came."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.item_id = ""
        self.events: list[dict[str, Any]] = []

    async def send(self, kind: str, **members: object) -> None:
        await self.socket.send(json.dumps({"type": kind, **members}))

    async def hear(self, wanted: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            async for message in self.socket:
                event = json.loads(message)
                self.events.append(event)
                if event["type"] == "response.output_item.added" and not self.item_id:
                    self.item_id = event["item"]["id"]
                if event["type"] == wanted:
                    return event
        raise AssertionError(f"no {wanted} came")

    async def ask(self, **options: object) -> None:
        content = [{"type": "input_text", "text": "Count."}]
        item = {"type": "message", "role": "user", "content": content}
        await self.send("conversation.item.create", item=item)
        await self.send("response.create", response=options)


def remembered_after(
    act: Callable[[Client], Awaitable[None]], settings: Settings | None = None
) -> tuple[str, Client]:
    """The assistant's words in the prompt of a second question, after `act` on the first reply."""

    async def run() -> tuple[str, Client]:
        cascade = FakeCascade(writer=FakeWriter([words(TEXT), words("Well.")]))
        async with (
            live_server(cascade, settings) as server,
            connect(server.socket_url, compression=None, proxy=None) as socket,
        ):
            client = Client(socket)
            await client.ask()
            await act(client)
            await client.ask(output_modalities=["text"])
            await client.hear("response.done")
        messages = cascade.writer.requests[-1].messages
        return " ".join(m.text for m in messages if m.role == "assistant"), client

    return asyncio.run(run())


def heard_of(client: Client) -> str:
    kind = "response.output_audio_transcript.delta"
    return "".join(event["delta"] for event in client.events if event["type"] == kind)


def test_a_report_of_playback_decides_what_was_heard() -> None:
    async def act(client: Client) -> None:
        await client.hear("response.done")
        await client.send("parley.playback", item_id=client.item_id, played_ms=0)
        await client.send("parley.playback", item_id=client.item_id, played_ms=1_000_000)

    remembered, _ = remembered_after(act, UNPACED)
    assert remembered == TEXT, "all of it was played, however little time went by"


def test_without_a_report_the_clock_decides() -> None:
    async def act(client: Client) -> None:
        await client.hear("response.done")

    remembered, client = remembered_after(act, UNPACED)
    assert heard_of(client) == TEXT, "sent as fast as it is made"
    assert len(remembered) < len(TEXT) / 2, "but nobody can have heard it all by now"
    assert TEXT.startswith(remembered)


def test_a_truncation_cuts_audio_and_transcript_at_a_word() -> None:
    async def act(client: Client) -> None:
        await client.hear("response.done")
        await client.send(
            "conversation.item.truncate", item_id=client.item_id, content_index=0, audio_end_ms=1000
        )
        await client.hear("conversation.item.truncated")
        await client.send("conversation.item.retrieve", item_id=client.item_id)
        item = (await client.hear("conversation.item.retrieved"))["item"]
        (part,) = item["content"]
        shown.append((part["transcript"], len(part["audio"])))

    shown: list[tuple[str, int]] = []
    remembered, _ = remembered_after(act, UNPACED)
    ((transcript, audio_characters),) = shown
    assert remembered == transcript
    assert transcript and TEXT.startswith(f"{transcript} "), "whole words"
    assert audio_characters == 48 * 1000 * 4 // 3, "a second of 24 kHz PCM in base64"


def test_a_cancelled_reply_is_remembered_as_far_as_it_was_played() -> None:
    async def act(client: Client) -> None:
        for _ in range(40):
            await client.hear("response.output_audio.delta")
        await client.send("response.cancel")
        await client.hear("response.done")

    remembered, client = remembered_after(act)
    sent = heard_of(client)
    assert TEXT.startswith(sent) and len(sent) < len(TEXT)
    assert remembered and sent.startswith(remembered)


def test_the_end_of_a_response_tells_where_its_time_went() -> None:
    async def act(client: Client) -> None:
        done = await client.hear("response.done")
        latency_ms = done["parley"]["latency_ms"]
        times = list(latency_ms.values())
        assert times == sorted(times)
        assert list(latency_ms)[0] == "response_created"
        assert {"first_token", "first_text_to_voice", "first_audio_played"} <= latency_ms.keys()

    remembered_after(act, UNPACED)
