"""Lost sockets and returns over real ones: what a client sees that knows how to come back."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.writer import FakeWriter, words
from realtime.commands.wire_client import Pcm
from realtime.session.prompt import RECONNECTED
from realtime.settings import Server, Settings
from tests.live_server import PATIENCE_S, LiveServer, live_server, silence, tone

NUMBERS = "one two three four five six seven eight"
KEY = "a-key-of-sixteen-characters"


class Client:
    """A client that keeps what it is told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []

    async def until(self, kind: str) -> dict[str, Any]:
        """The next event of this kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self.events.append(json.loads(await self.socket.recv()))
                if self.events[-1]["type"] == kind:
                    return self.events[-1]

    async def send(self, **event: Any) -> None:
        await self.socket.send(json.dumps(event))

    async def append(self, pcm: Pcm) -> None:
        audio = base64.b64encode(pcm.tobytes()).decode()
        await self.send(type="input_audio_buffer.append", audio=audio)

    async def type(self, text: str) -> None:
        item = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        await self.send(type="conversation.item.create", item=item)
        await self.send(type="response.create")

    @property
    def token(self) -> str:
        return self.events[0]["parley"]["resume"]["token"]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [e["item"] for e in self.events if e["type"] == "conversation.item.added"]

    @property
    def transcript(self) -> str:
        kind = "response.output_audio_transcript.delta"
        return "".join(e["delta"] for e in self.events if e["type"] == kind)

    def die(self) -> None:
        """As a killed process: no closing handshake."""
        self.socket.transport.abort()


async def dial(server: LiveServer, resume: str | None, **options: Any) -> Client:
    """A client that has been greeted. Raises InvalidStatus."""
    url = server.socket_url if resume is None else f"{server.socket_url}?resume={resume}"
    socket = await connect(url, compression=None, proxy=None, close_timeout=1, **options)
    client = Client(socket)
    await client.until("session.created")
    return client


async def refusal(server: LiveServer, resume: str, **options: Any) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as caught:
        await dial(server, resume, **options)
    response = caught.value.response
    return response.status_code, json.loads(response.body or b"")["error"]


async def settled(server: LiveServer, sessions: int, parked: int) -> None:
    registry = server.app.registry
    async with asyncio.timeout(PATIENCE_S):
        while (registry.count, registry.parked) != (sessions, parked):
            await asyncio.sleep(0.005)


def counting(ms_per_word: float = 300.0) -> FakeCascade:
    """Counts; asked to go on, it does so behind what it is told it has said."""

    def script(request: Any) -> Any:
        said = " ".join(m.text for m in request.messages if m.role == "assistant").split()
        goes_on = request.messages[-1].text == RECONNECTED
        return words(" ".join(NUMBERS.split()[len(said) if goes_on else 0 :]))

    return FakeCascade(writer=FakeWriter(script), speaker=FakeSpeaker(ms_per_word=ms_per_word))


def serve(
    talk: Callable[[LiveServer], Awaitable[None]],
    cascade: FakeCascade | None = None,
    **settings: Any,
) -> None:
    """Run a script of clients; nothing of them is left at the end."""

    async def run() -> None:
        stages = cascade or counting()
        async with live_server(stages, Settings(server=Server(drain_ms=100, **settings))) as server:
            await talk(server)
            await server.app.drain()
            assert server.app.registry.count == 0 == stages.active

    asyncio.run(run())


def test_a_reply_that_a_lost_socket_cut_short_is_heard_to_its_end() -> None:
    async def talk(server: LiveServer) -> None:
        first = await dial(server, "new")
        session = {
            "type": "realtime",
            "audio": {"input": {"turn_detection": {"type": "server_vad"}}},
        }
        await first.send(type="session.update", session=session)
        await first.append(silence(200))
        await first.append(tone(700))
        await first.append(silence(1200))
        for _ in range(30):  # frames of 40 ms, sent as they are heard
            await first.until("response.output_audio.delta")
        first.die()
        await settled(server, 1, 1)
        assert server.app.registry.open_requests == 0
        second = await dial(server, first.token)
        await second.until("response.done")
        created = second.events[0]
        assert created["session"]["id"] == first.events[0]["session"]["id"]
        detection = created["session"]["audio"]["input"]["turn_detection"]
        assert detection["type"] == "server_vad"
        assert second.token != first.token
        user, broken, rest = second.items
        assert [item["role"] for item in (user, broken, rest)] == ["user", "assistant", "assistant"]
        heard = broken["content"][0]["transcript"].split()
        assert broken["status"] == "incomplete" and 1 <= len(heard) < 8
        assert heard + second.transcript.split() == NUMBERS.split()
        await second.send(type="conversation.item.retrieve", item_id=broken["id"])
        event = await second.until("conversation.item.retrieved")
        audio = base64.b64decode(event["item"]["content"][0]["audio"])
        assert abs(len(audio) / 48 - 300 * len(heard)) < 300
        ids = [event["event_id"] for event in (*first.events, *second.events)]
        assert len(ids) == len(set(ids))

    serve(talk)


def test_a_wrong_a_used_and_an_expired_token_are_not_found() -> None:
    async def talk(server: LiveServer) -> None:
        status, error = await refusal(server, "nobody-has-given-this-out")
        assert (status, error["code"], error["param"]) == (404, "session_not_found", "resume")
        assert error["type"] == "invalid_request_error" and "resume=new" in error["message"]
        first = await dial(server, "new")
        first.die()
        await settled(server, 1, 1)
        second = await dial(server, first.token)
        assert (await refusal(server, first.token))[0] == 404
        second.die()
        await settled(server, 0, 0)  # the time runs out
        assert (await refusal(server, second.token))[0] == 404

    serve(talk, resume_ms=300)


def test_a_token_opens_nothing_without_a_key() -> None:
    headers = {"Authorization": f"Bearer {KEY}"}

    async def talk(server: LiveServer) -> None:
        first = await dial(server, "new", additional_headers=headers)
        first.die()
        await settled(server, 1, 1)
        status, error = await refusal(server, first.token)
        assert (status, error["code"]) == (401, "invalid_api_key")
        second = await dial(server, first.token, additional_headers=headers)
        assert second.events[0]["session"]["id"] == first.events[0]["session"]["id"]

    serve(talk, keys=(KEY,))


def test_a_close_with_1000_is_final_and_one_with_1001_is_not() -> None:
    async def talk(server: LiveServer) -> None:
        reloading = await dial(server, "new")
        await reloading.socket.close(1001)
        await settled(server, 1, 1)
        back = await dial(server, reloading.token)
        await back.socket.close()
        await settled(server, 0, 0)
        assert (await refusal(server, back.token))[0] == 404

    serve(talk)


def test_a_new_socket_closes_the_old_one_that_still_lives() -> None:
    async def talk(server: LiveServer) -> None:
        first = await dial(server, "new")
        await first.type("Count.")
        await first.until("response.output_audio.delta")
        second = await dial(server, first.token)
        with pytest.raises(ConnectionClosed):
            await first.until("never")
        assert first.socket.close_code == 4001
        await settled(server, 1, 0)
        await second.until("response.done")
        assert not [e for e in first.events if e["type"] == "response.done"]

    serve(talk, counting(ms_per_word=100))


def test_of_many_clients_with_one_token_exactly_one_goes_on() -> None:
    async def talk(server: LiveServer) -> None:
        first = await dial(server, "new")
        first.die()
        await settled(server, 1, 1)
        tries = [dial(server, first.token) for _ in range(8)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        (winner,) = [one for one in outcomes if isinstance(one, Client)]
        lost = [one for one in outcomes if isinstance(one, InvalidStatus)]
        assert [one.response.status_code for one in lost] == [404] * 7
        await winner.type("Count.")
        await winner.until("response.done")
        assert server.app.registry.count == 1

    serve(talk, counting(ms_per_word=100))


@pytest.mark.parametrize("resume", [None, ""])
def test_who_knows_nothing_of_it_sees_nothing_of_it(resume: str | None) -> None:
    async def talk(server: LiveServer) -> None:
        client = await dial(server, resume)
        assert set(client.events[0]) == {"event_id", "type", "session"}
        client.die()
        await settled(server, 0, 0)

    serve(talk)


def test_where_it_is_off_nobody_gets_a_token() -> None:
    async def talk(server: LiveServer) -> None:
        client = await dial(server, "new")
        assert "parley" not in client.events[0]
        client.die()
        await settled(server, 0, 0)

    serve(talk, resume_ms=0)


def test_fifty_sockets_die_in_turn_and_the_session_lives() -> None:
    async def talk(server: LiveServer) -> None:
        client = await dial(server, "new")
        await client.type("Count.")
        await client.until("response.created")
        tasks = len(asyncio.all_tasks())
        for number in range(50):
            client.die()
            if number % 2:  # else it takes over, as if the old one lived
                await settled(server, 1, 1)
            client = await dial(server, client.token)
        async with asyncio.timeout(PATIENCE_S):
            while len(asyncio.all_tasks()) > tasks + 6:  # the present socket's own
                await asyncio.sleep(0.01)
        await client.until("response.done")
        assert [item["role"] for item in client.items][0] == "user"

    serve(talk)


class Network:
    """A hop between client and server that can fall silent without a word."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._flows = asyncio.Event()
        self._flows.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        finally:
            far_writer.close()
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(4096):
            await self._flows.wait()
            sink.write(data)
        sink.write_eof()  # each side learns of the other's end, as over any hop

    def die(self) -> None:
        self._flows.clear()

    def end(self) -> None:
        self._flows.set()


def test_a_network_that_fell_silent_was_heard_until_then() -> None:
    """The server speaks into the dead network for 1.6 s; its socket takes everything."""

    async def talk(server: LiveServer) -> None:
        network = Network(server.port)
        hop = await asyncio.start_server(network.carry, "127.0.0.1", 0)
        async with hop:
            near = replace(server, port=hop.sockets[0].getsockname()[1])
            first = await dial(near, "new")

            async def microphone() -> None:
                for _ in range(600):
                    await first.append(silence(20))
                    await asyncio.sleep(0.02)

            speaking = asyncio.create_task(microphone())
            await first.type("Count.")
            for _ in range(40):
                await first.until("response.output_audio.delta")
            network.die()
            await asyncio.sleep(1.6)
            speaking.cancel()
            second = await dial(server, first.token)
            await second.until("response.done")
            broken = second.items[1]
            heard = broken["content"][0]["transcript"].split()
            assert 4 <= len(heard) <= 6, "40 frames are 1.6 s, 120 ms of them not played yet"
            assert heard + second.transcript.split() == NUMBERS.split()
            network.end()
            with pytest.raises(ConnectionClosed):
                await first.until("never")
            assert first.socket.close_code == 4001

    serve(talk)
