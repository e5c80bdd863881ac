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


def test_the_foot_says_what_is_not_saved(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url)
    page.keep_settings({"turnDetection": {"type": "server_vad"}})
    page.page.locator("#open-settings").click()
    form = page.page.locator("dialog#settings[open]")
    status, silence = form.locator(".settings-status"), form.get_by_label("Silence, ms")

    def fill(label: str, value: str) -> str:
        form.get_by_label(label).fill(value)
        page.page.keyboard.press("Tab")
        return status.inner_text()

    assert fill("Threshold", "0.6") == "Saved."
    assert fill("Silence, ms", "99999999") == "Not saved: Silence, ms. All else is saved."
    assert silence.get_attribute("aria-invalid") == "true"
    assert fill("Threshold", "0.7") == "Not saved: Silence, ms. All else is saved."
    kept = json.loads(page.page.evaluate("() => localStorage.getItem('parley.settings')"))
    assert kept["turnDetection"]["threshold"] == 0.7
    assert kept["turnDetection"]["silence_duration_ms"] is None
    assert fill("Silence, ms", "") == "Saved."  # as it was: nothing to store
    assert silence.get_attribute("aria-invalid") == "false"
    assert form.get_by_label("Recogniser").get_attribute("placeholder") == "the server's own"


@pytest.mark.parametrize("fragment", ["settings=", "settings=%%%", "settings=bnVsbA", "key=%"])
def test_a_broken_link_changes_nothing(talk: OpenTalk, scripted_url: str, fragment: str) -> None:
    page = talk(scripted_url, f"/#{fragment}")
    page.start()
    page.wire.wait("session.updated")
