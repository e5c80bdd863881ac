"""Voices of one's own in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime.settings import Speech
from realtime.settings_file import SettingsError, load_settings


def load(folder: Path, text: str) -> Speech:
    path = folder / "parley.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, {}).speech


def test_nothing_is_fetched_or_read_unless_it_is_written_down() -> None:
    speech = Speech()
    assert not speech.remote_references and speech.reference_folders == ()
    assert speech.reference_ports == (80, 443)


def test_uploaded_voices_lie_in_the_user_s_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Speech().voices_folder == tmp_path / ".local" / "share" / "parley" / "voices"
    assert load(tmp_path, "speech: {voices_dir: ~/v}\n").voices_folder == tmp_path / "v"
    written = load(tmp_path, "speech: {reference_folders: [~/r, /srv/r]}\n")
    assert written.reference_folders == (tmp_path / "r", Path("/srv/r"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reference_folders: [voices]", "'speech.reference_folders': voices is no absolute path"),
        ("reference_ports: []", "'speech.reference_ports'"),
        ("reference_ports: [0]", "'speech.reference_ports"),
        ("remote_references: perhaps", "'speech.remote_references' is 'perhaps'; allowed: true"),
        ("voice_dir: x", "'speech.voice_dir' is no setting; did you mean 'voices_dir'?"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"speech:\n  {text}\n")
    assert why in str(caught.value)
