"""The server with the Higgs voice in a process of its own: a tiny model, from files."""

from __future__ import annotations

import asyncio
import base64
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from realtime.commands.wire_client import WireClient, open_client
from realtime.settings import Settings
from realtime.stages import create_cascade
from tests.live_server import live_server
from tests.wire_invariants import check_order

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

PATIENCE_S = 90.0  # two cores, and a process that loads torch


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pipelines.higgs.codec.config import tiny_codec_config
    from pipelines.higgs.codec.weights import random_codec
    from pipelines.higgs.synthetic.models import tiny_config, write_checkpoint

    folder = tmp_path_factory.mktemp("higgs")
    sizes = tiny_codec_config()
    codec = random_codec(sizes).state_dict()
    content = tiny_config() | sizes.section()
    # Short replies: each is played to its end, in real time.
    write_checkpoint(folder, content, seed=3, typical_rows=20, codec=codec)
    return folder


def settings(checkpoint: Path, **speaker: Any) -> Settings:
    scripted = {"kind": "scripted"}
    voice = {"kind": "higgs", "model": str(checkpoint), "device": "cpu", "slots": 2, **speaker}
    roles = dict.fromkeys(("detector", "judge", "recogniser", "writer"), scripted)
    return Settings.model_validate({"stages": {**roles, "speaker": {**voice, "positions": 600}}})


async def ask(client: WireClient, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    await client.send("conversation.item.create", item=item)
    await client.send("response.create")


async def events_until(client: WireClient, last: str) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for _, event in client.received():
            seen.append(event)
            if event["type"] == last:
                break
    return seen


def audio_s(events: list[dict[str, Any]]) -> float:
    deltas = [e["delta"] for e in events if e["type"] == "response.output_audio.delta"]
    return len(b"".join(map(base64.b64decode, deltas))) / 2 / 24_000


def test_a_reply_is_spoken_and_the_next_one_after_a_cancel(checkpoint: Path) -> None:
    async def run() -> None:
        cascade = create_cascade(settings(checkpoint))
        async with live_server(cascade) as server, open_client(server.socket_url) as client:
            await ask(client, "Good day to you.")
            first = await events_until(client, "response.done")
            await ask(client, "Tell me a long story, with many words, that goes on and on.")
            begun = await events_until(client, "response.output_audio.delta")
            await client.send("response.cancel")
            cut = await events_until(client, "response.done")
            await ask(client, "And now?")
            last = await events_until(client, "response.done")
            check_order(first + begun + cut + last)
            statuses = [seen[-1]["response"]["status"] for seen in (first, cut, last)]
            assert statuses == ["completed", "cancelled", "completed"]
            assert audio_s(first) > 0.3 and audio_s(last) > 0.3
        assert cascade.active == 0

    asyncio.run(run())


def test_a_voice_with_a_sample_speaks(checkpoint: Path, tmp_path: Path) -> None:
    import soundfile

    tone = np.sin(np.arange(24_000) * 0.05).astype(np.float32) * 0.3
    soundfile.write(tmp_path / "anna.wav", tone, 24_000)
    sample = {"audio": str(tmp_path / "anna.wav"), "transcript": "A tone."}

    async def run() -> None:
        cascade = create_cascade(settings(checkpoint, voices={"anna": sample}))
        async with live_server(cascade) as server, open_client(server.socket_url) as client:
            await ask(client, "Good day.")
            events = await events_until(client, "response.done")
            assert cascade.voices == ("anna",)
            assert audio_s(events) > 0.3

    asyncio.run(run())


@pytest.mark.parametrize("process", ["worker", "inline"])
def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path, process: str) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["Other"]}', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")

    async def run() -> None:
        cascade = create_cascade(settings(tmp_path, process=process))
        with pytest.raises(Exception, match=str(tmp_path)):
            await cascade.start(lambda _: None)
        await cascade.close()

    asyncio.run(run())
