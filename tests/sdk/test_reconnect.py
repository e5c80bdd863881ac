"""The SDK's own way to reconnect, and a session that has waited for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.websocket_reconnection import ReconnectingEvent, ReconnectingOverrides

from pipelines.fakes.cascade import FakeCascade
from tests.live_server import PATIENCE_S, live_server
from tests.sdk.parley_process import KEY
from tests.sdk.runs import set_stage
from tests.sdk.scenarios import SCRIPTED, says
from tests.sdk.strict_events import faults
from tests.sdk.wire_log import WireLog
from tests.wire_invariants import check_order


async def ask(connection: AsyncRealtimeConnection, text: str) -> None:
    item: Any = says(text)
    await connection.conversation.item.create(item=item)
    await connection.response.create()


def test_a_lost_connection_goes_on_with_the_same_conversation(tmp_path: Path) -> None:
    async def talk(base_url: str, hang_up: Any) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []

        def come_back(event: ReconnectingEvent) -> ReconnectingOverrides:
            created = [event for event in seen if event["type"] == "session.created"]
            return {"extra_query": {"resume": created[-1]["parley"]["resume"]["token"]}}

        client = AsyncOpenAI(base_url=base_url, api_key=KEY)
        connecting = client.realtime.connect(
            model="parley",
            extra_query={"resume": "new"},
            on_reconnecting=come_back,
            initial_delay=0.05,
        )
        async with client, connecting as connection:
            await connection.session.update(
                session={"type": "realtime", "output_modalities": ["text"]}
            )
            await ask(connection, "One?")
            answers = 0
            async for event in connection:
                seen.append(event.to_dict(mode="json"))
                answers += event.type == "response.done"
                if event.type == "response.done" and answers == 1:
                    await asyncio.to_thread(hang_up)
                if event.type == "session.created" and answers == 1:
                    await ask(connection, "Two?")
                if answers == 2:
                    break
        return seen

    async def run() -> list[dict[str, Any]]:
        log = WireLog(tmp_path / "wire.jsonl")
        async with live_server(FakeCascade()) as server:
            with set_stage({SCRIPTED: server.port}, tmp_path) as stage:
                port = await asyncio.to_thread(stage.recorder.listen, log, server.port)
                async with asyncio.timeout(PATIENCE_S):
                    seen = await talk(f"http://127.0.0.1:{port}/v1", stage.recorder.hang_up)
                await asyncio.to_thread(stage.recorder.settle)
        for events in log.by_connection().values():
            check_order(events, is_whole=False)
            assert [fault for event in events for fault in faults(event)] == []
        return seen

    seen = asyncio.run(run())
    first, second = (event for event in seen if event["type"] == "session.created")
    assert first["session"]["id"] == second["session"]["id"]
    assert second["session"]["output_modalities"] == ["text"]
    answers = [event["response"] for event in seen if event["type"] == "response.done"]
    assert [answer["output"][0]["content"][0]["text"] for answer in answers] == [
        "You said: One?",
        "You said: Two?",
    ]
    after = seen[seen.index(second) :]
    users = [e["item"] for e in after if e["type"] == "conversation.item.added"]
    texts = [item["content"][0]["text"] for item in users if item["role"] == "user"]
    assert texts == ["One?", "Two?"], "the client is told again of what there was"
