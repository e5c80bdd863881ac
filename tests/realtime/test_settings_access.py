"""Keys from the environment, limits and certificates in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from realtime.access.gate import Gate
from realtime.access.keyring import KeyRing
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


@pytest.mark.parametrize(
    ("value", "named"),
    [(None, "a variable that is not set and"), ("", "OUR_KEYS, which"), (" , ", "OUR_KEYS, which")],
)
def test_a_server_that_should_have_keys_does_not_start_without(
    tmp_path: Path, value: str | None, named: str
) -> None:
    path = write(tmp_path, "server: {keys_env: OUR_KEYS}\n")
    environment = {} if value is None else {"OUR_KEYS": value}
    assert mistake(path, environment).startswith(
        f"server.keys_env names {named} holds no key: put one or more there"
    )


@pytest.mark.parametrize(
    "text",
    [
        "server: {keys: hunter2}",
        "server: {keys: [{a: hunter2}]}",
        "server: {keys: {a: hunter2}}",
        "server: {keys_env: [hunter2]}",
        "server: {keys_env: hunter2}",
        "server: [{keys: hunter2}]",
        "[{server: {keys: [hunter2]}}]",
        "stages: {writer: {kind: openai, url: 'http://h/v1', model: m, key: [hunter2]}}",
        "stages: {writer: [{key: hunter2}]}",
    ],
)
def test_no_mistake_shows_a_key(tmp_path: Path, text: str) -> None:
    said = mistake(write(tmp_path, text))
    assert "hunter2" not in said and said


def test_a_forgotten_list_of_keys_is_named(tmp_path: Path) -> None:
    said = mistake(write(tmp_path, f"server:\n  keys: {KEY}\n"))
    assert said == ":2: 'server.keys' is wrong (not shown); allowed: a list"


@pytest.mark.parametrize("sign", ["/", "=", ",", " ", "\u00e9", '"', "(", "\n"])
def test_a_key_that_cannot_be_a_subprotocol_is_refused(sign: str) -> None:
    with pytest.raises(ValidationError, match="of letters, digits and .* openssl rand -hex 24"):
        Server(keys=(f"{KEY}{sign}{KEY}",))


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example",
        "http://localhost:3000",
        "http://[::1]:3000",
        "capacitor://localhost",
        "chrome-extension://abcdefghijklmnop",
        "ms-appx-web://my.app",
    ],
)
def test_a_configured_origin_may_come_in(origin: str) -> None:
    gate = Gate(KeyRing((KEY,)), Server(origins=(origin,)).origins, loopback=False)
    shown = {"authorization": f"Bearer {KEY}", "host": "voice.example", "origin": origin}
    assert gate.admit(shown, ()).key == 0


@pytest.mark.parametrize(
    ("origin", "problem"),
    [
        ("*", "is no web origin; write it as https://example.org"),
        ("null", "is no web origin"),
        ("https://*.example", "is no web origin"),
        ("app.example", "is no web origin"),
        ("file://", "is no web origin"),
        ("https://app.example/", "is no web origin"),
        ("https://app.example?a", "is no web origin"),
        ("https://app.example#a", "is no web origin"),
        ("https://me@app.example", "is no web origin"),
        ("https://app.example:port", "is no web origin"),
        ("HTTPS://App.example", "in lower case: 'https://app.example'"),
        ("https://app.example:443", "leave out the port .*: 'https://app.example'"),
    ],
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Server(origins=(origin,))


def test_a_short_key_of_the_environment_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {keys_env: OUR_KEYS}\n")
    said = mistake(path, {"OUR_KEYS": f"{KEY},hunter2"})
    assert said.startswith("OUR_KEYS: a key needs 16 or more characters, of letters, digits and ")
    assert "hunter2" not in said


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
