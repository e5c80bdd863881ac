"""Settings stay, travel in a link without the key, and reach the server."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.browser.talk import Talk

pytestmark = pytest.mark.browser

OpenTalk = Callable[..., Talk]
KEY = "a-key-for-nobody-else"
INSTRUCTIONS = "Speak as a pirate would."


def test_settings_are_made_in_the_form_kept_and_told_to_the_server(
    talk: OpenTalk, scripted_url: str
) -> None:
    page = talk(scripted_url)
    page.page.locator("#open-settings").click()
    form = page.page.locator("dialog#settings[open]")
    form.get_by_label("Instructions").fill(INSTRUCTIONS)
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Escape")
    page.page.reload()
    kept = json.loads(page.page.evaluate("() => localStorage.getItem('parley.settings')"))
    assert kept["instructions"] == INSTRUCTIONS
    page.page.locator("#open-settings").click()
    assert form.get_by_label("Instructions").input_value() == INSTRUCTIONS
    page.page.keyboard.press("Escape")
    page.start()
    page.wire.wait("session.updated", lambda e: e["session"]["instructions"] == INSTRUCTIONS)


def test_a_link_carries_settings_without_the_key(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url)
    page.keep_settings({"instructions": INSTRUCTIONS, "key": KEY, "codec": "pcm"})
    link = page.page.evaluate(
        """async () => {
          const { SettingsStore } = await import('/page/settings-store.js');
          return new SettingsStore().link();
        }"""
    )
    fragment = link.split("#")[1]
    assert link.startswith(scripted_url) and KEY not in link
    other = talk(scripted_url, f"/#{fragment}")
    kept = json.loads(other.page.evaluate("() => localStorage.getItem('parley.settings')"))
    assert kept["instructions"] == INSTRUCTIONS and kept["codec"] == "pcm" and not kept["key"]
    assert fragment not in other.page.url
    other.start()
    other.wire.wait("session.updated", lambda e: e["session"]["instructions"] == INSTRUCTIONS)
    assert other.page.evaluate("() => parley.codec") == "pcm"


@pytest.mark.parametrize("fragment", ["settings=", "settings=%%%", "settings=bnVsbA", "key=%"])
def test_a_broken_link_changes_nothing(talk: OpenTalk, scripted_url: str, fragment: str) -> None:
    page = talk(scripted_url, f"/#{fragment}")
    page.start()
    page.wire.wait("session.updated")
