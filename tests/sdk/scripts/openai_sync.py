"""Drives the synchronous client of the Python package `openai` through scenarios."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openai import OpenAI
from openai.resources.realtime.realtime import RealtimeConnection
from steps import Story, read_scenarios


def send(connection: RealtimeConnection, event: dict[str, Any]) -> None:
    """With the SDK's own method, which is called as the event is: `connection.response.create`."""
    method: Any = connection
    for name in event["type"].split("."):
        method = getattr(method, name)
    method(**{name: value for name, value in event.items() if name != "type"})


def read_until(connection: RealtimeConnection, kinds: list[str], story: Story) -> None:
    waiting = set(kinds)
    while waiting:
        event = connection.recv()
        story.saw(event.to_dict(mode="json"))
        waiting.discard(event.type)


def follow(connection: RealtimeConnection, story: Story) -> None:
    for step in story.steps:
        match step:
            case {"send": event}:
                send(connection, story.filled(event))
            case {"audio": audio}:
                connection.input_audio_buffer.append(audio=audio)
            case {"until": kinds}:
                read_until(connection, kinds, story)
            case {"pause_ms": pause_ms}:
                time.sleep(pause_ms / 1000)
            case _:
                raise ValueError(f"no step for this SDK: {step}")


def play(scenario: dict[str, Any]) -> None:
    story = Story(scenario)
    try:
        client = OpenAI(base_url=scenario["http_url"], api_key=scenario["key"])
        if request := scenario["client_secret"]:
            secret = client.realtime.client_secrets.create(**request)
            story.tell(secret=secret.to_dict(mode="json"))
            client = client.with_options(api_key=secret.value)
        with client, client.realtime.connect(**scenario["connect"]) as connection:
            follow(connection, story)
        story.tell(done=True)
    except Exception:
        story.failed()


scenarios = read_scenarios()
with ThreadPoolExecutor(max_workers=len(scenarios)) as threads:
    list(threads.map(play, scenarios))
