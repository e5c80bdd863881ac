"""What the command line refuses before it begins, and what it says then."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.ports import Progress
from pipelines.weights.catalogue import ModelFile
from realtime.cli import main
from realtime.commands import models, serve
from realtime.commands.errors import CommandError
from realtime.commands.microphone import open_headset
from realtime.commands.say import FORMATS
from realtime.settings import Settings


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out.strip(), captured.err.strip()


@pytest.mark.parametrize("folder", [".", "missing"])
def test_an_empty_store_is_not_verified(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    store = tmp_path / folder
    monkeypatch.setenv("PARLEY_MODELS", str(store))
    assert run(capsys, "models", "verify") == (
        1,
        "",
        f"parley: no model lies in the store {store}: run `parley models fetch embedded`",
    )


def test_a_store_with_one_file_lacks_the_rest_of_its_group(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path))
    (tmp_path / "vad").mkdir()
    (tmp_path / "vad" / "silero_vad.onnx").write_bytes(b"cut short")
    code, said, _ = run(capsys, "models", "verify")
    assert code == 1
    assert "silero_vad.onnx has 9 bytes" in said
    assert "smart-turn-v3.2-cpu.onnx is missing" in said and "tiny.en" not in said


def test_where_the_answer_goes_is_looked_at_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "folder.wav").mkdir()
    for out, problem in [
        (tmp_path / "none" / "x.wav", f"there is no folder {tmp_path / 'none'}: make it first"),
        (tmp_path / "x.mp3", "its name must end in .wav"),
        (tmp_path / "folder.wav", "it is a folder"),
    ]:
        code, _, said = run(capsys, "talk", "--text", "hello", "--out", str(out))
        assert (code, said) == (2, f"parley: --out {out}: {problem}")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    code, _, said = run(capsys, "talk", "--text", text)
    assert (code, said) == (2, "parley: --text is empty: write what to say")


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("ws://[::1", "ws://127.0.0.1:8000/v1/realtime"),
        ("ws://host:port/v1/realtime", "ws://127.0.0.1:8000/v1/realtime"),
        ("http://host:8151/page", "ws://host:8151/v1/realtime"),
        ("host:8151", "ws://host:8151/v1/realtime"),
    ],
)
def test_an_address_that_is_none_is_refused_with_what_may_be_meant(
    capsys: pytest.CaptureFixture[str], url: str, hint: str
) -> None:
    code, _, said = run(capsys, "talk", "--text", "hello", "--url", url)
    assert (code, said) == (2, f"parley: {url} is no address of a server; write it as {hint}")


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"parley {importlib.metadata.version('parley')}\n"


def test_every_format_that_can_be_written_is_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["say", "--help"])
    said = capsys.readouterr().out
    assert [suffix for suffix in FORMATS if suffix not in said] == []


def test_a_missing_sound_library_is_installed_from_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with (
        pytest.raises(CommandError, match=r"\.venv/bin/pip install -e '\.\[microphone\]'"),
        open_headset(24_000),
    ):
        pass


def check(capsys: pytest.CaptureFixture[str], folder: Path, text: str) -> tuple[int, str]:
    """What `parley check` says of scripted stages and this much more."""
    stages = ("detector", "judge", "recogniser", "writer")
    lines = [f"  {stage}: {{kind: scripted}}" for stage in stages]
    path = folder / "config.yaml"
    path.write_text("\n".join(["stages:", *lines, text]), encoding="utf-8")
    code, said, _ = run(capsys, "check", str(path))
    return code, said


def test_check_takes_the_key_of_the_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "  speaker: {kind: scripted}\nserver: {host: 0.0.0.0, port: 0}\n"
    monkeypatch.delenv("PARLEY_KEY", raising=False)
    code, said = check(capsys, tmp_path, text)
    assert code == 1 and "there are no keys" in said
    monkeypatch.setenv("PARLEY_KEY", "a-key-of-sixteen-characters")
    code, said = check(capsys, tmp_path, text)
    assert code == 0 and "1 key" in said


def test_check_refuses_a_record_folder_that_cannot_be_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    text = "  speaker: {{kind: scripted}}\nserver: {{port: 0, record_dir: {}}}\n"
    code, said = check(capsys, tmp_path, text.format(tmp_path / "file" / "records"))
    assert code == 1 and f"cannot be made: {tmp_path / 'file'} is no folder" in said
    code, said = check(capsys, tmp_path, text.format(tmp_path / "new" / "records"))
    assert code == 0 and "can be written" in said
    assert not (tmp_path / "new").exists()


def test_check_notes_a_voice_that_is_not_here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = "  speaker: {{kind: piper}}\nserver: {{port: 0}}\nsession: {{voice: {}}}\n"
    _, said = check(capsys, tmp_path, text.format("alloy"))
    assert "note session.voice is 'alloy', which is not here: joe speaks" in said
    _, said = check(capsys, tmp_path, text.format("joe"))
    assert "note" not in said


def test_a_remote_writer_needs_no_language_model_in_the_store(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "store"))
    fetched: list[str] = []

    def remember(files: Sequence[ModelFile], progress: Progress) -> None:
        fetched.extend(file.path for file in files)

    monkeypatch.setattr(models, "fetch_files", remember)
    config = tmp_path / "remote.yaml"
    config.write_text(
        "stages:\n  writer: {kind: openai, url: 'http://127.0.0.1:1/v1', model: m}\n", "utf-8"
    )
    code, said, _ = run(capsys, "models", "fetch", "--config", str(config))
    assert code == 0 and said.startswith(f"{len(fetched)} files fetched")
    assert any(path.startswith("asr/") for path in fetched)
    assert not any(path.startswith("llm/") for path in fetched)


def test_a_configuration_may_be_named_as_fetch_names_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "mine.yaml"
    names = ("detector", "judge", "recogniser", "writer", "speaker")
    stages = ", ".join(f"{name}: {{kind: scripted}}" for name in names)
    config.write_text(f"server: {{port: 0}}\nstages: {{{stages}}}\n", "utf-8")
    served: list[Settings] = []
    monkeypatch.setattr(serve, "serve", lambda settings: served.append(settings) or 0)
    for given in ((str(config),), ("--config", str(config))):
        code, said, _ = run(capsys, "check", *given)
        assert code == 0 and "port: 0 of" in said
        assert run(capsys, "serve", *given)[0] == 0
    assert [settings.server.port for settings in served] == [0, 0]
    for verb in ("check", "serve"):
        code, _, said = run(capsys, verb, str(config), "--config", str(config))
        assert code == 2
        assert said == "parley: give the configuration once: CONFIG or --config CONFIG"


def test_a_configuration_in_the_place_of_a_group_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain = tmp_path / "my settings"
    plain.touch()
    for name, quoted in (("mine.yaml", "mine.yaml"), (str(plain), f"'{plain}'")):
        code, _, said = run(capsys, "models", "fetch", name)
        assert code == 2
        assert said == (
            f"parley: {name} is no group but a configuration: run "
            f"`parley models fetch --config {quoted}`"
        )
    code, _, said = run(capsys, "models", "fetch", "embeded")
    assert code == 2 and "no model group 'embeded'" in said
