"""Speech over HTTP with the Higgs voice: a tiny model from files, in a process of its own."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from realtime.settings import Settings
from realtime.stages import create_cascade
from tests.realtime.http.speech_server import House, SpeechServer, fault, on_routes

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

PATIENCE_S = 90.0  # two cores, and a process that loads torch
TEXT = "Good day to you, and a fair wind. We sail at noon."


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pipelines.higgs.codec.config import tiny_codec_config
    from pipelines.higgs.codec.weights import random_codec
    from pipelines.higgs.synthetic.models import tiny_config, write_checkpoint

    folder = tmp_path_factory.mktemp("higgs")
    sizes = tiny_codec_config()
    codec = random_codec(sizes).state_dict()
    write_checkpoint(folder, tiny_config() | sizes.section(), seed=3, typical_rows=20, codec=codec)
    return folder


def on_higgs(
    checkpoint: Path,
    test: Callable[[SpeechServer], Coroutine[Any, Any, None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.realtime.http.speech_server.PATIENCE_S", PATIENCE_S)
    speaker = {"kind": "higgs", "model": str(checkpoint), "device": "cpu", "slots": 2}
    roles: dict[str, Any] = {
        role: {"kind": "scripted"} for role in ("detector", "judge", "recogniser", "writer")
    }
    stages = {**roles, "speaker": {**speaker, "positions": 600}}
    on_routes(test, House(create_cascade(Settings.model_validate({"stages": stages}))))


def recording(seconds: float) -> str:
    """Base64 of a FLAC file."""
    rng = np.random.default_rng(5)
    file = io.BytesIO()
    samples = 0.1 * rng.standard_normal(int(seconds * 16_000))
    soundfile.write(file, samples.astype(np.float32), 16_000, format="FLAC")
    return base64.b64encode(file.getvalue()).decode()


def test_a_seed_decides_the_sound_and_a_bad_recording_is_told(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(server: SpeechServer) -> None:
        ways: list[dict[str, Any]] = [{"stream": True}, {"stream": False}, {"stream": True}]
        spoken = [
            (await server.speak(input=TEXT, response_format="pcm", seed=7, **way)).content
            for way in ways
        ]
        assert len(spoken[0]) > 24_000
        assert spoken[0] == spoken[1] == spoken[2]
        other = await server.speak(input=TEXT, response_format="pcm", seed=8)
        assert other.content != spoken[0]
        short = await server.speak(input=TEXT, response_format="pcm", seed=7, max_new_tokens=10)
        assert 0 < len(short.content) < len(spoken[0])

        own = {"data": recording(2.0), "text": "words"}
        copied = await server.speak(input=TEXT, response_format="pcm", seed=7, references=[own])
        assert copied.status_code == 200
        assert copied.content != spoken[0]
        words = base64.b64encode(b"This is no sound. " * 100).decode()
        for data in (words, recording(0.1), recording(600.0), own["data"][:400]):
            answer = await server.speak(input=TEXT, references=[{"data": data}])
            seen = fault(answer)
            assert (seen[0], seen[2]) == (400, "references[0].data"), answer.text
        answer = await server.speak(input=TEXT, ref_audio=words, response_format="wav")
        assert fault(answer) == (400, "voice_sample_refused", "ref_audio")

    on_higgs(checkpoint, ask, monkeypatch)
