"""Two hundred clients that come and go as they like: nothing of them stays."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import threading

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pipelines.fakes.cascade import FakeCascade
from realtime.commands.wire_client import Pcm
from tests.live_server import PATIENCE_S, LiveServer, live_server, silence, tone

CLIENTS = 200
AT_ONCE = 10
SEED = 7  # every run sees the same clients
GARBAGE = ('{"type":', "[]", '{"type":"nonsense"}', '{"type":"input_audio_buffer.append"}')
# A client that reads no more never sees the answer to its close.
CLOSE_TIMEOUT_S = 0.1


def append(pcm: Pcm) -> str:
    audio = base64.b64encode(pcm.tobytes()).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


async def hear_until(socket: ClientConnection, wanted: str) -> None:
    async for message in socket:
        if json.loads(message)["type"] == wanted:
            return


async def behave(socket: ClientConnection, chance: random.Random) -> None:
    """Go through a spoken turn, up to a random point."""
    steps = chance.randint(0, 6)
    if steps > 0:
        await hear_until(socket, "session.created")
    if steps > 1:
        await socket.send(chance.choice(GARBAGE))
    if steps > 2:
        await socket.send(append(silence(200)))
        await socket.send(append(tone(chance.randint(40, 800))))
    if steps > 3:
        await socket.send(append(silence(1500)))
        await socket.send('{"type":"response.create"}')
    if steps > 4:
        await hear_until(socket, "response.created")
    if steps > 5:
        await hear_until(socket, "response.output_audio.delta")


async def visit(server: LiveServer, number: int) -> None:
    chance = random.Random(SEED * 1000 + number)
    try:
        async with asyncio.timeout(PATIENCE_S):
            socket = await connect(
                server.socket_url, compression=None, proxy=None, close_timeout=CLOSE_TIMEOUT_S
            )
            try:
                await behave(socket, chance)
            finally:
                if chance.random() < 0.5:
                    socket.transport.abort()  # as a killed process: no closing handshake
                await socket.close()
    except ConnectionClosed:
        pass


async def settled(server: LiveServer, cascade: FakeCascade) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        while server.app.registry.count or server.app.registry.open_requests or cascade.active:
            await asyncio.sleep(0.01)
    return True


def test_nothing_stays_of_two_hundred_clients() -> None:
    async def run() -> None:
        cascade = FakeCascade()
        async with live_server(cascade) as server:
            await visit(server, 0)
            assert await settled(server, cascade)
            tasks, threads = len(asyncio.all_tasks()), threading.active_count()
            for first in range(0, CLIENTS, AT_ONCE):
                async with asyncio.TaskGroup() as group:
                    for number in range(first, first + AT_ONCE):
                        group.create_task(visit(server, number))
            assert await settled(server, cascade)
            async with asyncio.timeout(PATIENCE_S):
                while len(asyncio.all_tasks()) > tasks:
                    await asyncio.sleep(0.01)
            assert threading.active_count() <= threads

    asyncio.run(run())
