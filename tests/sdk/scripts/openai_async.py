"""Drives the asynchronous client of the Python package `openai` through scenarios."""

from __future__ import annotations

import asyncio
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from steps import SCENARIO_TIMEOUT_S, Story, read_scenarios


async def send(connection: AsyncRealtimeConnection, event: dict[str, Any]) -> None:
    """With the SDK's own method, which is called as the event is: `connection.response.create`."""
    method: Any = connection
    for name in event["type"].split("."):
        method = getattr(method, name)
    await method(**{name: value for name, value in event.items() if name != "type"})


async def read_until(connection: AsyncRealtimeConnection, kinds: list[str], story: Story) -> None:
    waiting = set(kinds)
    while waiting:
        event = await connection.recv()
        story.saw(event.to_dict(mode="json"))
        waiting.discard(event.type)


async def follow(connection: AsyncRealtimeConnection, story: Story) -> None:
    for step in story.steps:
        match step:
            case {"send": event}:
                await send(connection, story.filled(event))
            case {"audio": audio}:
                await connection.input_audio_buffer.append(audio=audio)
            case {"until": kinds}:
                await read_until(connection, kinds, story)
            case {"pause_ms": pause_ms}:
                await asyncio.sleep(pause_ms / 1000)
            case _:
                raise ValueError(f"no step for this SDK: {step}")


async def play(scenario: dict[str, Any]) -> None:
    story = Story(scenario)
    try:
        async with asyncio.timeout(SCENARIO_TIMEOUT_S):
            client = AsyncOpenAI(base_url=scenario["http_url"], api_key=scenario["key"])
            if request := scenario["client_secret"]:
                secret = await client.realtime.client_secrets.create(**request)
                story.tell(secret=secret.to_dict(mode="json"))
                client = client.with_options(api_key=secret.value)
            async with client, client.realtime.connect(**scenario["connect"]) as connection:
                await follow(connection, story)
        story.tell(done=True)
    except Exception:
        story.failed()


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        for scenario in read_scenarios():
            group.create_task(play(scenario))


asyncio.run(main())
