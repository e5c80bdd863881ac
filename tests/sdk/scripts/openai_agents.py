"""Drives RealtimeRunner and RealtimeSession of the Python package `openai-agents`."""
# It runs in an environment of its own, which the type checker does not see.
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession
from agents.realtime.events import RealtimeSessionEvent
from agents.realtime.model_inputs import RealtimeModelSendInterrupt, RealtimeModelSendRawMessage
from steps import SCENARIO_TIMEOUT_S, Story, read_scenarios


@function_tool
def get_weather(city: str) -> str:
    """How the weather is in a city."""
    return f"sunny in {city}"


async def send(session: RealtimeSession, event: dict[str, Any]) -> None:
    rest = {name: value for name, value in event.items() if name != "type"}
    message: Any = {"type": event["type"], "other_data": rest}
    await session.model.send_event(RealtimeModelSendRawMessage(message=message))


async def read_until(
    events: AsyncIterator[RealtimeSessionEvent], kinds: list[str], story: Story
) -> None:
    waiting = set(kinds)
    while waiting:
        event = await anext(events)
        if event.type != "raw_model_event":
            story.tell(sdk=event.type, error=str(getattr(event, "error", "")))
        elif event.data.type == "raw_server_event":
            story.saw(event.data.data)
            waiting.discard(event.data.data["type"])


async def follow(session: RealtimeSession, story: Story) -> None:
    events = aiter(session)
    for step in story.steps:
        match step:
            case {"send": event}:
                await send(session, story.filled(event))
            case {"message": text}:
                await session.send_message(text)
            case {"audio": audio}:
                await session.send_audio(base64.b64decode(audio))
            case {"interrupt": True}:
                # Bare `session.interrupt()` leaves the cancelling to the server's own detection.
                stop = RealtimeModelSendInterrupt(force_response_cancel=True)
                await session.model.send_event(stop)
            case {"until": kinds}:
                await read_until(events, kinds, story)
            case {"pause_ms": pause_ms}:
                await asyncio.sleep(pause_ms / 1000)
            case _:
                raise ValueError(f"no step for this SDK: {step}")


async def play(scenario: dict[str, Any]) -> None:
    story = Story(scenario)
    try:
        async with asyncio.timeout(SCENARIO_TIMEOUT_S):
            tools = [get_weather] if scenario["has_tool"] else []
            agent = RealtimeAgent(name="Guide", instructions="Be kind.", tools=tools)
            session = await RealtimeRunner(agent).run(
                model_config={
                    "url": scenario["socket_url"],
                    "api_key": scenario["key"],
                    "initial_model_settings": scenario["session"],
                }
            )
            async with session:
                await follow(session, story)
                history = [item.model_dump(mode="json") for item in session._history]
        story.tell(history=history)
        story.tell(done=True)
    except Exception:
        story.failed()


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        for scenario in read_scenarios():
            group.create_task(play(scenario))


asyncio.run(main())
