"""Configuration files: what is right loads, and every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime.settings import Settings
from realtime.settings_file import SettingsError, load_settings
from realtime.stage_settings import OpenAIWriter

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def write(folder: Path, text: str) -> Path:
    path = folder / "parley.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(folder: Path, text: str) -> list[str]:
    path = write(folder, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {})
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_the_embedded_file_states_the_defaults() -> None:
    assert load_settings(CONFIGS / "embedded.yaml", {}) == Settings() == load_settings(None, {})


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_file_loads(path: Path) -> None:
    load_settings(path, {})


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "# nothing yet\n"), {}) == Settings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server:\n  port: eighty\n", ":2: 'server.port' is 'eighty'; allowed: a whole number"),
        ("server:\n  port: 70000\n", ":2: 'server.port' is 70000; allowed: 65535 or less"),
        ("server:\n  lead_ms: 1\n", ":2: 'server.lead_ms' is 1; allowed: 40 or more"),
        ("server:\n\n  prot: 1\n", ":3: 'server.prot' is no setting; did you mean 'port'?"),
        ("sever: {}\n", ":1: 'sever' is no setting; did you mean 'server'?"),
        (
            "session:\n  turn_detection:\n    type: vad\n",
            ":3: 'session.turn_detection.type' is 'vad'; allowed: 'semantic_vad', 'server_vad'",
        ),
        (
            "session:\n  turn_detection:\n    type: semantic_vad\n    eagernes: low\n",
            ":4: 'session.turn_detection.eagernes' is no setting; did you mean 'eagerness'? "
            "known here: create_response, eagerness, interrupt_response, type",
        ),
        (
            "stages:\n  recogniser:\n    kind: whisper\n    model: huge\n",
            ":4: 'stages.recogniser.model' is 'huge'; allowed: 'base' or 'tiny.en'",
        ),
        (
            "stages:\n  writer:\n    kind: openai\n    url: localhost\n    model: x\n",
            ":4: 'stages.writer.url': not an http(s) URL",
        ),
        (
            "stages:\n  writer:\n    kind: openai\n    url: http://h/v1\n",
            ":2: 'stages.writer.model' is missing",
        ),
        ("stages:\n  writer: {kind: gpt}\n", ":2: 'stages.writer.kind' is 'gpt'; allowed: 'llama'"),
        ("stages:\n  writer: {model: x}\n", ":2: 'stages.writer' needs 'kind'"),
        ("server:\n  keys: [short]\n", ":2: 'server.keys': a key needs 16 or more"),
        ("server:\n  origins: ['*']\n", ":2: 'server.origins': '*' is no web origin"),
        ("session:\n  drafts: perhaps\n", ":2: 'session.drafts' is 'perhaps'; allowed: true or"),
        (
            "reply:\n  filler_after_ms: soon\n",
            ":2: 'reply.filler_after_ms': 'soon' is no time; write milliseconds, auto or null",
        ),
        ("reply:\n  filler_after_ms: -1\n", ":2: 'reply.filler_after_ms': -1 is no time"),
        ("reply:\n  apology: 7\n", ":2: 'reply.apology' is 7; allowed: text"),
        ("server: {port: 1}\nserver: {port: 2}\n", ":2: 'server' is set twice"),
        ("server: [1\nport: 2\n", ":2: not valid YAML: "),
        ("server:\n\t- x\n", ":2: not valid YAML: found character"),
        ("a: !!python/object/apply:os.getcwd []\n", ":1: not valid YAML: could not determine"),
        ("a: &loop [*loop]\n", ":1: an alias of its own parent"),
        ("- a\n", ":1: 'the file' is ['a']; allowed: a section with settings"),
        ("server: null\n", ":1: 'server' is null; allowed: a section with settings of its own"),
        ("server:\n  port: null\n", ":2: 'server.port' is null; allowed: a whole number"),
        ("session:\n  voice: true\n", ":2: 'session.voice' is true; allowed: text"),
        ("stages:\n  writer:\n    kind: null\n", ":3: 'stages.writer.kind' is null; allowed: '"),
        ("1: 2\n", ":1: '1' is 1; allowed: text as the name of a setting"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    found = mistakes(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith("parley.yaml" + expected)


def test_all_mistakes_are_told_at_once_in_the_files_order(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path, "server:\n  port: x\nsession:\n  voise: a\nstages:\n  judge: {kind: y}\n"
    )
    assert [line.split(":")[1] for line in found] == ["2", "4", "6"]


def test_a_long_wrong_value_is_shortened(tmp_path: Path) -> None:
    assert len(mistakes(tmp_path, f"server: {{port: {'x' * 10_000}}}\n")[0]) < 200


def test_a_long_text_is_refused_in_plain_words(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, f"session: {{instructions: {'x' * 100_001}}}\n")
    assert found.endswith("; allowed: at most 100000 characters")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.yaml: cannot be read: No such file"):
        load_settings(tmp_path / "missing.yaml", {})
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load_settings(tmp_path, {})
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    with pytest.raises(SettingsError, match=r"latin\.yaml: not UTF-8 text \(byte 3\)"):
        load_settings(tmp_path / "latin.yaml", {})


def test_the_environment_replaces_the_writer_of_any_configuration() -> None:
    environment = {"PARLEY_LLM_URL": "http://127.0.0.1:9/v1/", "PARLEY_LLM_KEY": "k"}
    writer = load_settings(CONFIGS / "embedded.yaml", environment).stages.writer
    assert isinstance(writer, OpenAIWriter)
    assert (writer.url, writer.model, writer.key) == ("http://127.0.0.1:9/v1", "default", "k")
    named = load_settings(None, {**environment, "PARLEY_LLM_MODEL": "m"}).stages.writer
    assert isinstance(named, OpenAIWriter)
    assert named.model == "m"


def test_mistakes_in_the_environment_name_the_variable() -> None:
    with pytest.raises(SettingsError, match="PARLEY_LLM_URL is 'nowhere': not an http"):
        load_settings(None, {"PARLEY_LLM_URL": "nowhere"})
    with pytest.raises(SettingsError, match="PARLEY_LLM_KEY is set, but PARLEY_LLM_URL is not"):
        load_settings(None, {"PARLEY_LLM_KEY": "k"})


def test_drafts_are_off_with_a_remote_writer_unless_wanted(tmp_path: Path) -> None:
    remote = "stages: {writer: {kind: openai, url: 'http://h/v1', model: m}}\n"
    assert Settings().drafts
    assert not load_settings(write(tmp_path, remote), {}).drafts
    assert load_settings(write(tmp_path, remote + "session: {drafts: true}\n"), {}).drafts


def test_fillers_are_said_for_a_remote_writer_unless_the_file_says_otherwise(
    tmp_path: Path,
) -> None:
    remote = "stages: {writer: {kind: openai, url: 'http://h/v1', model: m}}\n"
    assert Settings().filler_after_ms is None
    assert load_settings(write(tmp_path, remote), {}).filler_after_ms == 2000
    silent = remote + "reply: {filler_after_ms: null}\n"
    assert load_settings(write(tmp_path, silent), {}).filler_after_ms is None
    always = load_settings(write(tmp_path, "reply: {filler_after_ms: 900, fillers: [Hm.]}\n"), {})
    assert (always.filler_after_ms, always.reply.fillers) == (900, ("Hm.",))
