"""Clients of the socket of speech that come and go as they like: nothing of them stays."""

from __future__ import annotations

import asyncio
import random

from websockets.exceptions import ConnectionClosed

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from tests.realtime.http.speech_socket_server import (
    PATIENCE_S,
    SpeechClient,
    speech_client,
    speech_server,
)

CLIENTS = 80
AT_ONCE = 8
MOST_STEPS = 12
SEED = 11  # every run sees the same clients
ACTS = (
    "append",
    "append",
    "append",
    "long",
    "flush",
    "cancel",
    "done",
    "hear",
    "config",
    "garbage",
)


async def behave(client: SpeechClient, chance: random.Random) -> None:
    """A few steps at random, and then all that is owed: an end for every `input.done`."""
    for _ in range(chance.randint(0, MOST_STEPS)):
        match chance.choice(ACTS):
            case "append":
                await client.append(chance.choice(("One", " two,", " three. ", "done", "\n", "")))
            case "long":
                await client.append("word " * 500)
            case "config":
                await client.say("session.config", speed=chance.choice((1.0, 2.0, 9.0)))
            case "garbage":
                await client.connection.send(chance.choice(("{", "[]", '{"type": "nonsense"}')))
            case "hear":
                await client.append("Five words to be heard.")
                await client.say("input.flush")
                await client.until("audio")
            case act:
                await client.say(f"input.{act}")
    if chance.random() < 0.5:
        await client.say("input.cancel")
        await client.say("session.config", model="last")
        await client.append("The end.")
        await client.say("input.done")
        while True:
            told = await client.until("session.updated")
            if told["config"]["model"] == "last":
                break
        assert (await client.until("audio.done"))["status"] == "completed"


async def visit(url: str, number: int) -> None:
    chance = random.Random(SEED * 1000 + number)
    try:
        async with speech_client(url, close_timeout=0.1) as client:
            await behave(client, chance)
            if chance.random() < 0.5:
                client.connection.transport.abort()  # as a killed process
    except ConnectionClosed:
        pass


def test_nothing_stays_of_eighty_clients() -> None:
    async def run() -> None:
        cascade = FakeCascade(speaker=FakeSpeaker(ms_per_word=40, real_time_factor=0.02))
        async with speech_server(cascade) as url:
            await visit(url, 0)
            tasks = 0
            for first in range(1, CLIENTS, AT_ONCE):
                async with asyncio.TaskGroup() as group:
                    for number in range(first, first + AT_ONCE):
                        group.create_task(visit(url, number))
                async with asyncio.timeout(PATIENCE_S):
                    while cascade.active or (tasks and len(asyncio.all_tasks()) > tasks):
                        await asyncio.sleep(0.005)
                tasks = tasks or len(asyncio.all_tasks())

    asyncio.run(run())
