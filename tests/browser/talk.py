"""What a user does with the page, and sees of it."""

from __future__ import annotations

import base64
import time
from typing import Any

from playwright.sync_api import Locator

from tests.browser.sound import RATE_HZ, Recording, read_recording
from tests.browser.stage import PATIENCE_MS, Visit
from tests.browser.wire import POLL_MS
from tests.spoken import Pcm

READ_RECORDING = """async () => {
  const bytes = new Uint8Array(await parley.recording().arrayBuffer());
  let letters = '';
  for (let at = 0; at < bytes.length; at += 32768) {
    letters += String.fromCharCode(...bytes.subarray(at, at + 32768));
  }
  return btoa(letters);
}"""


class Talk:
    """One page. Every wait is for a condition, and bounded by PATIENCE_MS."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.page = visit.page
        self.wire = visit.wire

    def start(self) -> None:
        """Presses the one big button, and waits until the server listens."""
        self.page.locator("#talk").click()
        self.wait_state("listening")

    def keep_settings(self, values: dict[str, Any]) -> None:
        """As an earlier visit left them."""
        store = "(v) => localStorage.setItem('parley.settings', JSON.stringify(v))"
        self.page.evaluate(store, values)
        self.page.reload()

    def reload(self) -> None:
        """As a script does, which takes the user's gesture along; a press of F5 does not."""
        with self.page.expect_navigation():
            self.page.evaluate("() => { location.reload(); }")

    def stop(self) -> None:
        self.page.locator("#talk").click()
        self.wait_state("closed", "idle")

    def wait_state(self, *states: str) -> None:
        """Until the page shows one of these states."""
        wanted = ", ".join(f'#state[data-state="{state}"]' for state in states)
        self.page.locator(wanted).wait_for()

    def wait_closed(self) -> None:
        """Until none of the page's sockets is open."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not all(socket.is_closed() for socket in self.wire.sockets):
            assert time.monotonic() < deadline, "a conversation goes on"
            self.page.wait_for_timeout(POLL_MS)

    def say_aloud(self, pcm: Pcm) -> None:
        """Begins to speak into the fed microphone; it ends by itself."""
        arguments = [base64.b64encode(pcm.tobytes()).decode(), RATE_HZ]
        self.page.evaluate("([sound, rate]) => { testMicrophone.say(sound, rate); }", arguments)

    def type_text(self, text: str) -> None:
        self.page.locator("#say-text").fill(text)
        self.page.locator("#say-text").press("Enter")

    def bubbles(self, role: str) -> Locator:
        """The messages of one side, in order, but for those that have nothing to show yet."""
        return self.page.locator(
            f'#conversation li[data-role="{role}"][data-kind="message"]:not(.is-waiting)'
        )

    def wait_bubble(self, role: str, number: int = 0) -> Locator:
        """That message of that side, once it has words."""
        bubble = self.bubbles(role).nth(number)
        bubble.locator(".word").first.wait_for()
        return bubble

    def wait_said(self, role: str, words: str) -> Locator:
        """The message of that side that has these words, once it has them."""
        bubble = self.bubbles(role).filter(has_text=words).first
        bubble.wait_for()
        return bubble

    def wait_that(self, condition: str, argument: Any = None) -> None:
        """Until the JavaScript `condition`, of `argument`, holds in the page."""
        self.page.wait_for_function(condition, arg=argument, timeout=PATIENCE_MS)

    def wait_heard(self, item_id: str) -> None:
        """Until the item is whole, and its last word is being heard."""
        self.wire.wait("response.output_item.done", lambda event: event["item"]["id"] == item_id)
        self.wait_that(
            """(id) => { const item = parley.items.find((item) => item.id === id);
            return item && item.text.length > 0 && item.heard >= item.text.length; }""",
            item_id,
        )

    def items(self) -> list[dict[str, Any]]:
        """As the public module has them."""
        return self.page.evaluate("() => parley.toJSON().items")

    def recording(self) -> Recording:
        """Both sides so far."""
        return read_recording(base64.b64decode(self.page.evaluate(READ_RECORDING)))

    def problem(self) -> str:
        """What the page explains, once it does."""
        self.page.locator("#problem").filter(has_text=".").wait_for()
        return self.page.locator("#problem").inner_text()

    def retrieve(self, item_id: str) -> dict[str, Any]:
        """An item as the server's history has it now."""
        known = len(self.wire.received)
        self.page.evaluate(
            "(id) => parley.send({type: 'conversation.item.retrieve', item_id: id})", item_id
        )
        kind = "conversation.item.retrieved"
        return self.wire.wait(kind, lambda e: e["item"]["id"] == item_id, after=known)["item"]


def words_of(item: dict[str, Any]) -> str:
    """The text or transcript of a wire item."""
    parts = item["content"]
    return "".join(part.get("transcript") or part.get("text") or "" for part in parts)
