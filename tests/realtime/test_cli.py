"""The command line: exit codes, and one line instead of a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from realtime.cli import main
from realtime.commands import serve, talk
from realtime.commands.talk import TalkOptions
from realtime.settings import Settings


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.err.strip() or captured.out.strip()


def test_no_command_and_an_unknown_one_are_used_wrongly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in ([], ["sing"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "serve" in capsys.readouterr().err


def test_a_wrong_configuration_ends_with_its_mistakes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("server:\n  prot: 1\n", encoding="utf-8")
    for command in ("serve", "check"):
        code, said = run(capsys, command, str(path))
        assert code == 2
        assert said.startswith(f"{path}:2: 'server.prot' is no setting; did you mean 'port'?")


def test_a_taken_port_is_named_before_anything_loads(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run(capsys, "serve", "--port", str(port))
    assert code == 1
    assert said == (
        f"parley: port {port} of 127.0.0.1 is taken: stop the other program or use --port"
    )


def test_a_port_out_of_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, "serve", "--port", "70000")
    assert code == 2
    assert said == "parley: --port: 70000; allowed: 65535 or less"


def test_an_open_address_needs_keys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARLEY_KEY", raising=False)
    code, said = run(capsys, "serve", "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert "there are no keys" in said
    monkeypatch.setenv("PARLEY_KEY", "short")
    code, said = run(capsys, "serve", "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert said.startswith("parley: $PARLEY_KEY: a key needs 16 or more characters, of letters")


def test_the_key_of_the_environment_is_freed_from_the_line_end_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_KEY", " a-key-of-sixteen-characters\r\n")
    served: list[Settings] = []
    talked: list[TalkOptions] = []
    monkeypatch.setattr(serve, "serve", lambda settings: served.append(settings) or 0)
    monkeypatch.setattr(talk, "talk", lambda options: talked.append(options) or 0)
    assert main(["serve"]) == main(["talk", "--text", "hello"]) == 0
    assert served[0].server.keys == (talked[0].key,) == ("a-key-of-sixteen-characters",)
    monkeypatch.setenv("PARLEY_KEY", " \n")
    assert main(["serve"]) == main(["talk", "--text", "hello"]) == 0
    assert (served[1].server.keys, talked[1].key) == ((), None)


def test_numpy_is_loaded_after_its_threads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = "import sys, realtime.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    threads: list[str | None] = []
    monkeypatch.setattr(
        serve, "serve", lambda _: threads.append(os.environ.get("OPENBLAS_NUM_THREADS")) or 0
    )
    assert main(["serve"]) == 0
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    assert main(["serve"]) == 0
    assert threads == ["1", "4"]


def test_a_strange_host_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    # 203.0.113.0/24 is set aside for documentation: it is no address of any machine.
    key = "a-key-of-sixteen-characters"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_KEY", key)
        code, said = run(capsys, "serve", "--host", "203.0.113.1", "--port", "0")
    assert code == 1
    assert said == "parley: 203.0.113.1 is no address of this machine: use --host 127.0.0.1"


def test_talk_without_a_server_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"ws://127.0.0.1:{port}/v1/realtime"
    code, said = run(capsys, "talk", "--text", "hello", "--url", url)
    assert code == 1
    assert said.startswith(f"parley: no server answers at {url}")
    assert said.endswith("make serve")


def test_talk_needs_something_to_say(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, said = run(capsys, "talk")
    assert (code, said) == (2, "parley: nothing to say: give a sound file, --mic or --text")
    code, said = run(capsys, "talk", str(tmp_path / "no.wav"), "--mic")
    assert (code, said) == (2, "parley: give a sound file or --mic, not both")


def test_talk_names_a_file_that_is_no_sound(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "text.wav"
    path.write_text("no sound", encoding="utf-8")
    code, said = run(capsys, "talk", str(path))
    assert code == 1
    assert said.startswith(f"parley: {path} is no sound file")


def test_talk_names_a_file_that_is_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "none.wav"
    assert run(capsys, "talk", str(path)) == (2, f"parley: {path}: there is no such file")


def test_talk_names_an_address_that_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "silence.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(1600))
    code, said = run(capsys, "talk", str(path), "--url", "ftp://127.0.0.1:1/")
    assert code == 2
    assert said.endswith("write it as ws://127.0.0.1:1/v1/realtime")


def test_replay_names_a_file_that_is_no_record(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, said = run(capsys, "replay", str(tmp_path / "none.jsonl"))
    assert code == 1
    assert said.endswith("cannot be read: No such file or directory")
    path = tmp_path / "other.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    code, said = run(capsys, "replay", str(path))
    assert code == 1
    assert "is not a record of a session" in said


def test_models_are_listed_with_their_state(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
    code, said = run(capsys, "models", "list")
    assert code == 0
    assert f"model store: {tmp_path}" in said
    assert "embedded  missing       2.3 MB  vad/silero_vad.onnx" in said
    code, said = run(capsys, "models", "fetch", "huge")
    assert code == 2
    assert said.startswith("parley: There is no model group 'huge'")
    code, said = run(capsys, "models", "fetch")
    assert code == 2
    code, said = run(capsys, "models", "verify", "embedded")
    assert code == 1
    assert "is missing: run `parley models fetch embedded`" in said


def test_check_finds_what_stands_in_the_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = tmp_path / "config.yaml"
        path.write_text(
            f"server: {{port: {port}}}\nstages:\n  writer:\n    kind: openai\n"
            "    url: http://127.0.0.1:1/v1\n    model: m\n",
            encoding="utf-8",
        )
        code, said = run(capsys, "check", str(path))
    assert code == 1
    models, address, writer = said.splitlines()
    assert models.startswith("NO  models: missing or damaged: vad/silero_vad.onnx")
    assert models.endswith("run `parley models fetch embedded`")
    assert address.startswith(f"NO  port: port {port} of 127.0.0.1 is taken")
    assert writer.startswith("NO  writer: http://127.0.0.1:1/v1 does not answer")
