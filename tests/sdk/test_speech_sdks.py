"""The official SDKs speak and transcribe over HTTP, plain and streamed."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from tests.sdk.parley_process import KEY, ROOT, parley_process
from tests.sdk.sdks import HERE, PACKAGES, node

TIMEOUT_S = 60.0
WORDS = 60
WORD_MS = 300  # of the scripted voice
RATE_HZ = 24_000
SDKS = {
    "python": (sys.executable, str(HERE / "scripts" / "openai_speech.py")),
    "node": (node(), str(HERE / "node" / "speech.mjs")),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each SDK says of one and the same server."""
    folder = tmp_path_factory.mktemp("speech")
    settings = yaml.safe_load((ROOT / "configs" / "scripted.yaml").read_text())
    settings["server"] = {"keys": [KEY]}
    settings["speech"] = {"voices_dir": str(folder / "voices")}
    recording = folder / "said.wav"
    moments = np.arange(16_000) / 16_000
    soundfile.write(recording, 0.3 * np.sin(2 * np.pi * 220 * moments), 16_000)
    if not PACKAGES.exists():
        pytest.fail("the SDKs for Node are not installed: `make sdks`")
    with parley_process(settings, folder) as port:
        url = f"http://127.0.0.1:{port}/v1"
        return {name: run([*command, url, KEY, str(recording)]) for name, command in SDKS.items()}


def run(command: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("sdk", SDKS)
def test_speech_comes_whole_and_streamed(told: dict[str, dict[str, Any]], sdk: str) -> None:
    wav = io.BytesIO(base64.b64decode(told[sdk]["wav"]))
    samples, rate_hz = soundfile.read(wav, dtype="float32")
    assert rate_hz == RATE_HZ
    expected = WORDS * WORD_MS * RATE_HZ // 1000
    assert len(samples) == expected
    assert np.abs(samples).max() > 0.1
    assert told[sdk]["pcm"]["bytes"] == 2 * expected
    assert told[sdk]["pcm"]["pieces"] > 1


@pytest.mark.parametrize("sdk", SDKS)
def test_a_refusal_is_an_error_of_the_sdk(told: dict[str, dict[str, Any]], sdk: str) -> None:
    assert told[sdk]["refused"]["status"] == 400
    assert told[sdk]["refused"]["param"] == "speed"
    assert told[sdk]["refused"]["code"]


@pytest.mark.parametrize("sdk", SDKS)
def test_transcriptions_come_plain_and_streamed(told: dict[str, dict[str, Any]], sdk: str) -> None:
    text = told[sdk]["text"]
    assert text
    types = [kind for kind, _ in told[sdk]["events"]]
    assert types[-1] == "transcript.text.done" and "transcript.text.delta" in types
    assert told[sdk]["events"][-1][1] == text
    deltas = "".join(part for kind, part in told[sdk]["events"] if kind.endswith("delta"))
    assert deltas.strip() == text.strip()
