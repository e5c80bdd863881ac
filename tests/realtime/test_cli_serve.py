"""The server as a process: it starts, is talked to, drains and exits."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from realtime.cli import main
from realtime.commands.wire_client import WIRE_RATE_HZ

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30


class Running:
    """A server process with scripted stages; llm_url: of a writer that takes the place of one."""

    def __init__(
        self, folder: Path, llm_url: str = "", drain_ms: int = 5000, max_sessions: int = 16
    ) -> None:
        config = folder / "config.yaml"
        scripted = (ROOT / "configs" / "scripted.yaml").read_text(encoding="utf-8")
        server = f"{{record_dir: {folder}, drain_ms: {drain_ms}, max_sessions: {max_sessions}}}"
        config.write_text(f"{scripted}\nserver: {server}\n", encoding="utf-8")
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "realtime.cli", "serve", str(config), "--port", "0"],
            cwd=ROOT,
            env={**os.environ, "PARLEY_KEY": "", "PARLEY_LLM_URL": llm_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        self.url = self.read_until(r"ready at (http://\S+)")[1]

    def read_until(self, pattern: str) -> re.Match[str]:
        """Read what it says, until it says this."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"the server ended: {''.join(self.said)}")

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws") + "/v1/realtime"

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, "".join(self.said) + rest

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    try:
        yield running
    finally:
        running.kill()


def write_speech(path: Path) -> Path:
    """Half a second of sound between silences: enough for a detector that hears loudness."""
    phase = np.arange(WIRE_RATE_HZ // 2) * 2 * np.pi * 200 / WIRE_RATE_HZ
    sound = (np.sin(phase) * 12_000).astype("<i2")
    silence = np.zeros(WIRE_RATE_HZ // 5, "<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, WIRE_RATE_HZ, 0, "NONE", ""))
        file.writeframes(np.concatenate([silence, sound, silence]).tobytes())
    return path


def test_a_conversation_from_the_command_line(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speech, heard = write_speech(tmp_path / "speech.wav"), tmp_path / "heard.wav"
    code = main(["talk", str(speech), "--url", server.socket_url, "--out", str(heard)])
    said = capsys.readouterr().out
    assert code == 0
    assert "you:   hello\nreply: You said: hello\n" in said
    steps = re.search(r"turn 1 \(ms\): speech end \+0, speech_stopped \+\d+, committed", said)
    assert steps, said
    with wave.open(str(heard)) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.abs(pcm).max() > 1000

    (record,) = tmp_path.glob("*.jsonl")
    assert main(["replay", str(record)]) == 0
    assert "the same effects" in capsys.readouterr().out


def test_a_typed_question_is_answered_too(
    server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["talk", "--text", "good day", "--url", server.socket_url]) == 0
    assert "reply: You said: good day" in capsys.readouterr().out


def test_a_recording_waits_for_the_answer_to_the_text(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speech = write_speech(tmp_path / "speech.wav")
    text = "good day to you and to all of yours"  # long enough to be cut off
    code = main(["talk", str(speech), "--text", text, "--url", server.socket_url])
    said = capsys.readouterr().out
    assert code == 0
    answer = f"reply: You said: {text}\n"  # whole: nothing follows it as [cancelled] would
    assert said.startswith(f"you:   {text}\n{answer}you:   hello\nreply: You said: hello\n"), said


def test_a_reply_that_failed_fails_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Running(tmp_path, llm_url="http://127.0.0.1:1/v1")
    try:
        code = main(["talk", "--text", "good day", "--url", running.socket_url])
    finally:
        running.kill()
    assert code == 1
    assert "[failed: " in capsys.readouterr().out


def test_a_refused_session_is_told_once_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Running(tmp_path, max_sessions=1)
    heard = tmp_path / "heard.wav"

    async def talk_while_it_is_full() -> int:
        async with connect(running.socket_url) as socket:
            await socket.recv()
            arguments = ["talk", "--text", "good day", "--url", running.socket_url]
            return await asyncio.to_thread(main, [*arguments, "--out", str(heard)])

    try:
        code = asyncio.run(talk_while_it_is_full())
    finally:
        running.kill()
    said = capsys.readouterr()
    assert code == 1
    assert said.out in ("", "you:   good day\n")  # typed before the refusal comes
    [line] = said.err.splitlines()
    assert line.startswith("parley: ") and line.endswith(".") and "1 " in line, line
    assert not heard.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly(server: Running, number: signal.Signals) -> None:
    with urllib.request.urlopen(f"{server.url}/health", timeout=PATIENCE_S) as answer:
        body = json.load(answer)
    assert (body["status"], body["sessions"]) == ("ready", 0)
    code, said = server.stop(number)
    assert code == 0, said
    assert "Traceback" not in said
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{server.url}/health", timeout=PATIENCE_S)


def test_a_second_interrupt_ends_what_the_first_lets_people_finish(tmp_path: Path) -> None:
    drain_ms = 600_000

    async def interrupt_twice(running: Running) -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(running.socket_url, proxy=None, compression=None) as socket,
        ):
            content = [{"type": "input_text", "text": "and so on " * 500}]  # minutes of speech
            item = {"type": "message", "role": "user", "content": content}
            await socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
            await socket.send(json.dumps({"type": "response.create"}))
            await until(socket, "response.output_audio.delta")
            running.process.send_signal(signal.SIGINT)
            running.read_until("Stopping: 1 conversation may finish what is being said; again: now")
            await until(socket, "response.output_audio.delta")  # it goes on
            running.process.send_signal(signal.SIGINT)
            await until(socket, "response.done")
            with pytest.raises(ConnectionClosed):
                await until(socket, "a farewell beyond the last event")
            assert socket.close_code == 1001

    running = Running(tmp_path, drain_ms=drain_ms)
    try:
        asyncio.run(interrupt_twice(running))
        rest, _ = running.process.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    assert running.process.returncode == 0, rest
    assert "Traceback" not in "".join(running.said) + rest


def test_a_stop_finishes_a_speech_that_is_being_made(tmp_path: Path) -> None:
    running = Running(tmp_path, drain_ms=600_000)
    words = 2000  # more than a connection holds: it is under way as long as it is not read
    body = {"input": "word " * words, "response_format": "pcm"}
    asked = urllib.request.Request(
        f"{running.url}/v1/audio/speech",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            first = answer.read(1)
            running.process.send_signal(signal.SIGTERM)
            running.read_until("Stopping: 1 audio request may be answered; again: now")
            until_stopping(running)
            with pytest.raises(urllib.error.HTTPError, match="503"):
                urllib.request.urlopen(asked, timeout=PATIENCE_S)
            speech = first + answer.read()
        rest, _ = running.process.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    assert running.process.returncode == 0, rest
    assert len(speech) >= words * 2 * WIRE_RATE_HZ // 10  # a tenth of a second a word, at least
    assert "Traceback" not in rest


def until_stopping(running: Running) -> None:
    """The server looks for a stop some times a second."""
    while True:
        try:
            urllib.request.urlopen(f"{running.url}/health/ready", timeout=PATIENCE_S).close()
        except urllib.error.HTTPError as error:
            assert (error.code, json.load(error)["status"]) == (503, "stopping")
            return


async def until(socket: ClientConnection, kind: str) -> None:
    """Read events until one of this type. Raises ConnectionClosed."""
    while json.loads(await socket.recv())["type"] != kind:
        pass


@pytest.mark.models
@pytest.mark.parametrize("moment", ["No keys: ", "language model: loading"])
def test_an_interrupt_ends_the_server_while_it_loads(moment: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "realtime.cli", "serve", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "PARLEY_KEY": "", "PARLEY_LLM_URL": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = next(line for line in process.stdout if line.startswith(moment))
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said + rest
    assert "Traceback" not in rest and "ready at" not in rest


def test_a_missing_model_ends_the_start_with_its_remedy(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "realtime.cli", "serve", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "PARLEY_KEY": "", "PARLEY_MODELS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("parley: The model file ")
    assert ended.stderr.endswith("is missing: run `parley models fetch embedded`.\n")
