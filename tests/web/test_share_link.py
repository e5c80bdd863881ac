"""Links that carry the page's settings, run outside a browser."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.web.page_scripts import defaults, run

NAMES = "encodeSettings, decodeSettings, keyOf, withoutSettings"
KEY = "a-key-that-nobody-else-has"


def shared() -> dict[str, Any]:
    """The defaults of what a link carries."""
    return {
        name: value for name, value in defaults().items() if name not in ("key", "microphoneId")
    }


def encode(values: dict[str, Any]) -> str:
    return run("share-link.js", NAMES, "return encodeSettings(values);", values=values)


def decode(fragment: object) -> Any:
    return run("share-link.js", NAMES, "return decodeSettings(fragment);", fragment=fragment)


def coded(told: object) -> str:
    text = told if isinstance(told, bytes) else json.dumps(told).encode()
    return "#settings=" + base64.urlsafe_b64encode(text).decode().rstrip("=")


def test_settings_come_back_as_they_went() -> None:
    values = {
        "voice": "joe",
        "instructions": "Sprich wie ein Pirat. 海賊のように 🏴‍☠️ & = # +",
        "turnDetection": {
            "type": "server_vad",
            "threshold": 0.65,
            "silence_duration_ms": 700,
            "prefix_padding_ms": 0,
            "eagerness": "low",
        },
        "model": "some/model:1",
        "transcriptionModel": "whisper-1",
        "language": "pt-BR",
        "codec": "pcm",
        "leadMs": 240,
    }
    fragment = encode({**defaults(), **values})
    assert fragment.isascii() and set("&=+ /").isdisjoint(fragment.removeprefix("#settings="))
    assert decode(fragment) == values


def test_a_link_holds_neither_the_key_nor_the_microphone() -> None:
    values = {**defaults(), "voice": "joe", "key": KEY, "microphoneId": "the-device"}
    fragment = encode(values)
    payload = fragment.removeprefix("#settings=")
    text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
    assert json.loads(text) == {"voice": "joe"}  # and nothing that is as it was at first
    assert decode(fragment) == {**shared(), "voice": "joe"}


def test_a_key_that_somebody_puts_into_a_link_is_not_taken() -> None:
    assert decode(coded({"key": KEY, "microphoneId": "x", "codec": "opus"})) == {
        **shared(),
        "codec": "opus",
    }


@pytest.mark.parametrize(
    "fragment",
    [
        None,
        17,
        "",
        "#",
        "#settings",
        "#settings=",
        "#settings=@@@",
        "#settings=a",
        "#settings=%00%ff",
        "#other=1",
        "#settings=" + "A" * 700_000,
        coded(b"{not json"),
        coded(b'{"voice": "\xff\xfe"}'),
        coded(None),
        coded("text"),
        coded([1, 2]),
        coded(3),
    ],
)
def test_garbage_carries_no_settings(fragment: object) -> None:
    assert decode(fragment) is None


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"voice": 3, "instructions": None, "codec": "mp3", "leadMs": "120"},
        {"turnDetection": None},
        {"turnDetection": "server_vad"},
        {"turnDetection": {"type": "none", "threshold": 2, "silence_duration_ms": 1.5}},
        {"turnDetection": {"eagerness": ["low"], "prefix_padding_ms": -1}},
        {"instructions": "x" * 100_001, "language": "<script>", "leadMs": 1e9},
        {"__proto__": {"voice": "joe"}, "constructor": "x", "unknown": 1},
    ],
)
def test_what_a_link_has_wrong_stays_at_its_default(told: dict[str, Any]) -> None:
    assert decode(coded(told)) == shared()


def test_what_is_right_beside_it_is_taken() -> None:
    told = {"voice": 3, "turnDetection": {"type": "server_vad", "threshold": 9}}
    taken = decode(coded(told))
    assert taken["turnDetection"] == {**shared()["turnDetection"], "type": "server_vad"}


@pytest.mark.parametrize(
    ("fragment", "key"),
    [
        ("", None),
        ("#key=", None),
        ("#other=1", None),
        ("#key=a-key", "a-key"),
        ("#other=1&key=a-key&more=2", "a-key"),
        ("#key=a+key+with+signs!#$'*^_`|~", "a+key+with+signs!#$'*^_`|~"),
        ("#key=a%26key%25", "a&key%"),
        ("#key=100%-sure", "100%-sure"),
    ],
)
def test_the_key_of_the_address_is_taken_as_it_stands(fragment: str, key: str | None) -> None:
    assert run("share-link.js", NAMES, "return keyOf(fragment);", fragment=fragment) == key


@pytest.mark.parametrize(
    ("fragment", "left"),
    [
        ("", ""),
        ("#key=a&settings=b", ""),
        ("#key=a&other=1", "#other=1"),
        ("#section", "#section"),
    ],
)
def test_what_is_taken_leaves_the_address(fragment: str, left: str) -> None:
    body = "return withoutSettings(fragment);"
    assert run("share-link.js", NAMES, body, fragment=fragment) == left
