"""libopus from the system, from the wheel of `av`, and from nowhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from realtime.protocol import opus_library
from realtime.protocol.decode import decode, decode_session
from realtime.protocol.opus_library import HOW_TO_INSTALL, OpusMissing, has_opus, load_opuslib
from realtime.protocol.problems import Problem
from realtime.session.events import ClientRefused, ClientResponseCreate, ClientSessionUpdate

# Another process: opuslib binds its library when it is imported, and keeps it.
ROUND_TRIP = """
import json, sys
import numpy as np
from realtime.protocol import opus_library
{patch}
from realtime.protocol.opus import OpusDecoder, OpusEncoder
encoder, decoder = OpusEncoder(48000), OpusDecoder(16000)
tone = (9000 * np.sin(np.arange(1920) * 2 * np.pi * 440 / 48000)).astype(np.int16)
lengths = [len(decoder.decode(encoder.encode(tone))) for _ in range(10)]
loudest = int(np.abs(decoder.decode(encoder.encode(tone))).max())
import opuslib.api
print(json.dumps([opuslib.api.libopus._name, lengths, loudest, "av" in sys.modules]))
"""
ROOT = Path(__file__).resolve().parents[3]


def round_trip(patch: str) -> str:
    """The library that a fresh process uses after the patch; it must work."""
    script = ROUND_TRIP.format(patch=patch)
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    name, lengths, loudest, has_imported_av = json.loads(done.stdout)
    assert lengths == [640] * 10
    assert 6000 < loudest < 12_000
    assert not has_imported_av
    return name


def test_it_works_here_wherever_the_library_is_from() -> None:
    assert has_opus()
    assert round_trip("")


def test_without_the_systems_library_that_of_the_wheel_is_used() -> None:
    name = round_trip("opus_library._of_the_system = lambda: iter(())")
    assert "opus" in Path(name).name
    assert Path(name).parent.name in ("av.libs", ".dylibs")


def test_the_systems_library_goes_first(tmp_path: Path) -> None:
    of_the_wheel = next(opus_library._of_the_wheel())
    of_the_system = tmp_path / "libopus.so.0"
    shutil.copy(of_the_wheel, of_the_system)
    assert round_trip(f"opus_library._of_the_system = lambda: iter([{str(of_the_system)!r}])") == (
        str(of_the_system)
    )


def test_a_broken_library_is_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "libopus.so.0"
    broken.write_bytes(b"not a library")
    name = round_trip(f"opus_library._of_the_system = lambda: iter([{str(broken)!r}])")
    assert name == next(opus_library._of_the_wheel())


@pytest.fixture(params=["library", "package"])
def no_opus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without libopus, or one without opuslib."""
    monkeypatch.setattr(opus_library, "_loaded", [])
    if request.param == "package":
        monkeypatch.setitem(sys.modules, "opuslib", None)
    else:
        monkeypatch.setattr(opus_library, "_of_the_system", lambda: iter(()))
        monkeypatch.setattr(opus_library, "_of_the_wheel", lambda: iter(()))


def update(audio: dict[str, Any]) -> str:
    session = {"type": "realtime", "audio": audio}
    return json.dumps({"type": "session.update", "event_id": "e_1", "session": session})


@pytest.mark.usefixtures("no_opus")
def test_without_any_opus_is_refused_with_what_to_install() -> None:
    with pytest.raises(OpusMissing, match="libopus0"):
        load_opuslib()
    wanted = {"format": {"type": "audio/opus"}}
    create = {
        "type": "response.create",
        "event_id": "e_1",
        "response": {"audio": {"output": wanted}},
    }
    for message, param in (
        (update({"input": wanted}), "session.audio.input.format.type"),
        (update({"output": wanted}), "session.audio.output.format.type"),
        (json.dumps(create), "response.audio.output.format.type"),
    ):
        answer = decode(message)
        assert isinstance(answer, ClientRefused)
        assert (answer.event_id, answer.code, answer.param) == ("e_1", "invalid_value", param)
        assert answer.message == (
            "Invalid value: 'audio/opus'. Supported values are: 'audio/pcm', 'audio/pcmu', and "
            f"'audio/pcma'. {HOW_TO_INSTALL}"
        )
    problem = decode_session({"type": "realtime", "audio": {"input": wanted}})
    assert isinstance(problem, Problem)
    assert HOW_TO_INSTALL in problem.message


@pytest.mark.usefixtures("no_opus")
def test_without_any_opus_nothing_else_suffers() -> None:
    for kind in ("audio/pcm", "audio/pcmu", "audio/pcma"):
        chosen = {"format": {"type": kind}}
        message = decode(update({"input": chosen, "output": chosen}))
        assert isinstance(message, ClientSessionUpdate)
    assert isinstance(decode('{"type":"response.create"}'), ClientResponseCreate)


def test_it_is_found_once_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus_library, "_loaded", [])
    with monkeypatch.context() as without:
        without.setattr(opus_library, "_of_the_system", lambda: iter(()))
        without.setattr(opus_library, "_of_the_wheel", lambda: iter(()))
        assert not has_opus()
    assert has_opus()
