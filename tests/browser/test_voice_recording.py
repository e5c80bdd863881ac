"""A voice that is recorded for a copy is not heard by the conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.talk import Talk

pytestmark = pytest.mark.browser

VOICES = {"data": [{"id": "tone", "name": "tone", "kind": "configured"}], "can_copy": True}


def test_the_conversation_does_not_hear_a_voice_that_is_recorded(
    talk: Callable[..., Talk], scripted_url: str
) -> None:
    page = talk(scripted_url)

    def answer(route: Any) -> None:  # as a server does whose voice copies
        route.fulfill(content_type="application/json", body=json.dumps(VOICES))

    page.page.route("**/v1/audio/voices", answer)
    page.start()
    for was_muted in (False, True):
        if was_muted:
            page.page.locator("#mute").click()
        page.page.locator("#open-settings").click()
        form = page.page.locator("dialog#settings[open]")
        form.locator("details.voice-adding").evaluate("(details) => { details.open = true; }")
        form.get_by_role("button", name="Record", exact=True).click()
        stop = form.get_by_role("button", name="Stop recording")
        stop.wait_for()
        assert page.page.evaluate("() => parley.isMuted")
        stop.click()
        stop.wait_for(state="hidden")
        assert page.page.evaluate("() => parley.isMuted") is was_muted
        form.get_by_role("button", name="Close").click()
