"""Keys from the environment, limits and certificates in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime.settings import Limits, Server
from realtime.settings_file import SettingsError, load_settings

KEY, OTHER_KEY = "a-key-of-sixteen-characters", "another-long-enough-key"


def write(folder: Path, text: str) -> Path:
    path = folder / "parley.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def mistake(path: Path, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(path, environment or {})
    return str(caught.value).removeprefix(f"{path}")


def test_keys_of_the_environment_join_those_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, f"server: {{keys: [{KEY}], keys_env: OUR_KEYS}}\n")
    settings = load_settings(path, {"OUR_KEYS": f" {OTHER_KEY} , ,third-key-of-16-letters,"})
    assert settings.server.keys == (KEY, OTHER_KEY, "third-key-of-16-letters")


@pytest.mark.parametrize("value", [None, "", " , "])
def test_a_server_that_should_have_keys_does_not_start_without(
    tmp_path: Path, value: str | None
) -> None:
    path = write(tmp_path, "server: {keys_env: OUR_KEYS}\n")
    environment = {} if value is None else {"OUR_KEYS": value}
    assert mistake(path, environment).startswith(
        "server.keys_env names OUR_KEYS, which holds no key: put one or more there"
    )


def test_a_short_key_of_the_environment_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {keys_env: OUR_KEYS}\n")
    said = mistake(path, {"OUR_KEYS": f"{KEY},hunter2"})
    assert said == "OUR_KEYS: a key needs 16 or more ASCII characters"


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    assert mistake(write(tmp_path, "server:\n  tls_certificate: chain.pem\n")) == (
        ":1: 'server': tls_certificate and tls_key go together: give both or none"
    )
    text = "server: {tls_certificate: chain.pem, tls_key: key.pem}\n"
    server = load_settings(write(tmp_path, text), {}).server
    assert server.has_tls and not Server().has_tls


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ("session_minutes: 0", "1 or more"),
        ("sessions_per_key: 0", "1 or more"),
        ("events_per_second: 1", "10 or more"),
        ("message_mib: 16", "22 or more"),
        ("tools: 129", "128 or less"),
    ],
)
def test_limits_have_limits(tmp_path: Path, setting: str, allowed: str) -> None:
    name, value = setting.split(": ")
    assert mistake(write(tmp_path, f"limits:\n  {setting}\n")) == (
        f":2: 'limits.{name}' is {value}; allowed: {allowed}"
    )


def test_every_limit_is_explained() -> None:
    described = Limits.__doc__ or ""
    for name in Limits.model_fields:
        assert f"    {name}: " in described, name
