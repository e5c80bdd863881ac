"""What stands in the way is explained in plain words, and what can be mended mends itself."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stage import Visit
from tests.browser.talk import Talk
from tests.sdk.parley_process import KEY, running_parley

pytestmark = pytest.mark.browser

OpenTalk = Callable[..., Talk]
# The browser says these itself whenever a server refuses or is gone; no page can keep it from that.
REFUSED = r"Failed to load resource: the server responded with a status of (40\d|503)"
NO_HANDSHAKE = r"WebSocket connection to .* failed"
GONE = r"net::ERR_CONNECTION_(REFUSED|RESET)"


@contextmanager
def serving(settings: dict[str, Any], folder: Path, **server: Any) -> Iterator[str]:
    merged = {**settings, "server": {**settings["server"], **server}}
    with running_parley(merged, folder) as running:
        yield f"http://127.0.0.1:{running.port}"


def test_a_denied_microphone_is_explained_and_typing_goes_on(
    talk: OpenTalk, scripted_url: str
) -> None:
    page = talk(scripted_url, may_listen=False, is_fed=False)
    page.page.locator("#talk").click()
    words = page.problem().lower()
    assert "microphone" in words
    page.page.locator("#problem button", has_text="Type instead").click()
    assert page.page.evaluate("() => document.activeElement.id") == "say-text"
    page.type_text("Hello there")
    page.wait_said("assistant", "You said: Hello there")


@pytest.mark.parametrize("name", ["NotFoundError", "NotReadableError", "OverconstrainedError"])
def test_a_microphone_that_cannot_be_had_is_explained(
    talk: OpenTalk, scripted_url: str, name: str
) -> None:
    page = talk(scripted_url)
    page.page.evaluate(
        """(name) => { navigator.mediaDevices.getUserMedia = async () => {
          throw new DOMException('as the browser says it', name);
        }; }""",
        name,
    )
    page.page.locator("#talk").click()
    words = page.problem()
    assert "microphone" in words.lower() and "as the browser" not in words
    page.page.locator("#problem button", has_text="Try again").wait_for()


LOSE_MICROPHONE = """() => {
  const ask = navigator.mediaDevices.getUserMedia;
  globalThis.isPlugged = true;
  globalThis.streams = [];
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    if (!isPlugged) throw new DOMException('as the browser says it', 'NotFoundError');
    streams.push(await ask(wanted));
    return streams.at(-1);
  };
}"""
UNPLUG = """() => {
  isPlugged = false;
  const [track] = streams.at(-1).getAudioTracks();
  track.stop();
  track.dispatchEvent(new Event('ended'));
}"""


def test_a_microphone_that_is_lost_can_be_tried_again_in_the_conversation(
    talk: OpenTalk, scripted_url: str
) -> None:
    page = talk(scripted_url)
    page.page.evaluate(LOSE_MICROPHONE)
    page.start()
    session_id = page.page.evaluate("() => parley.sessionId")
    problem = page.page.locator("#problem")
    retry = problem.locator("button", has_text="Try again")
    page.page.evaluate(UNPLUG)
    retry.click()  # it is still not there
    retry.wait_for()
    page.page.evaluate("() => { isPlugged = true; }")
    retry.click()
    page.wait_that("() => parley.microphone !== null")
    page.page.evaluate(UNPLUG)
    retry.wait_for()
    page.page.evaluate("() => { isPlugged = true; }")
    page.page.locator("#use-microphone").click()
    page.wait_that("() => parley.microphone !== null")
    problem.wait_for(state="hidden")  # it is mended, and no longer told
    assert page.page.evaluate("() => parley.sessionId") == session_id


def test_a_link_with_a_key_that_is_none_is_explained(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, "/#key=a%20b")
    assert "key in the link is not valid" in page.problem()
    page.page.locator("#problem button", has_text="Open settings").click()
    page.page.locator("dialog#settings[open]").wait_for()


def test_a_full_server_is_explained(
    talk: OpenTalk, open_settings: dict[str, Any], tmp_path: Path
) -> None:
    with serving(open_settings, tmp_path, max_sessions=1) as url:
        first = talk(url)
        first.start()
        second = talk(url)
        second.page.locator("#talk").click()
        words = second.problem().lower()
        assert "full" in words or "busy" in words or "at once" in words or "later" in words, words
        first.stop()
        second.page.locator("#problem button", has_text="Try again").click()
        second.wait_state("listening")


def test_a_wrong_key_is_explained_and_the_right_one_opens(
    talk: OpenTalk, visit: Callable[..., Visit], open_settings: dict[str, Any], tmp_path: Path
) -> None:
    with serving(open_settings, tmp_path, keys=[KEY]) as url:
        page = talk(url, "/#key=not-the-key-of-this-server")
        page.visit.journal.expect(REFUSED)
        page.visit.journal.expect(NO_HANDSHAKE)
        assert "key" not in page.page.url
        page.page.locator("#talk").click()
        assert "key" in page.problem().lower()
        page.page.goto(f"{url}/#key={KEY}")
        page.start()
        assert KEY not in page.page.url and KEY not in page.page.content()
        page.reload()
        page.wait_state("listening")


def test_a_server_that_dies_is_reported_and_found_again(
    talk: OpenTalk, open_settings: dict[str, Any], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running_parley(open_settings, tmp_path, port) as server:
        page = talk(f"http://127.0.0.1:{port}")
        for complaint in (NO_HANDSHAKE, GONE, REFUSED):
            page.visit.journal.expect(complaint)
        page.start()
        page.type_text("Before")
        page.wait_said("assistant", "You said: Before")
        server.kill()
        page.wait_state("reconnecting", "closed")
        page.wait_said("assistant", "You said: Before")  # it stays to be read
    with running_parley(open_settings, tmp_path, port):
        # The new server knows nothing of the old conversation, and the page says so.
        assert "restarted" in page.problem()
        page.wait_said("assistant", "You said: Before")
        page.page.locator("#problem button", has_text="Start anew").click()
        page.wait_state("listening")
        page.type_text("After")
        page.wait_said("assistant", "You said: After")


def test_a_socket_that_breaks_is_resumed_in_the_same_conversation(
    talk: OpenTalk, scripted_url: str
) -> None:
    page = talk(scripted_url)
    page.visit.journal.expect(NO_HANDSHAKE)
    page.visit.journal.expect("ERR_INTERNET_DISCONNECTED")
    broken: list[Any] = []

    def route(socket_route: Any) -> None:
        server = socket_route.connect_to_server()
        broken.append((socket_route, server))

    page.page.route_web_socket("**/v1/realtime**", route)
    page.page.reload()
    page.start()
    page.type_text("Before")
    page.wait_said("assistant", "You said: Before")
    page.wait_state("listening")
    session_id = page.page.evaluate("() => parley.sessionId")
    page_side, server_side = broken[0]
    page_side.close(code=3001, reason="the line broke")
    server_side.close(code=3001)
    page.wait_that("() => parley.state === 'listening'")
    page.type_text("After")
    page.wait_said("assistant", "You said: After")
    assert page.page.evaluate("() => parley.sessionId") == session_id
    assert len(broken) == 2
    assert page.bubbles("user").count() == 2  # none twice


def test_a_press_of_reload_goes_on_with_the_conversation(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, is_fed=False)  # the browser's own device: it beeps, which is speech
    page.start()
    page.page.locator("#mute").click()
    page.type_text("Before")
    answer = page.wait_said("assistant", "You said: Before").get_attribute("data-item")
    assert answer is not None
    page.wait_heard(answer)
    page.wait_state("listening")  # its last word is over too: what was not heard is no history
    session_id = page.page.evaluate("() => parley.sessionId")
    known = len(page.wire.of_type("session.created"))
    page.page.reload()
    # Nobody has pressed anything yet: the browser may want that before it makes a sound.
    running = ("listening", "hearing", "thinking", "speaking")
    is_running = ", ".join(f'#state[data-state="{state}"]' for state in running)
    hear = page.page.locator("#problem button", has_text="Press to hear")
    page.page.locator(is_running).or_(hear).first.wait_for()
    if hear.is_visible():
        hear.click()
        page.page.locator(is_running).wait_for()
    page.wait_said("assistant", "You said: Before")
    assert len(page.wire.of_type("session.created")) > known
    assert page.page.evaluate("() => parley.sessionId") == session_id


def test_the_button_goes_on_with_a_kept_conversation(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, is_fed=False)
    page.start()
    page.page.locator("#mute").click()
    page.type_text("Before")
    answer = page.wait_said("assistant", "You said: Before").get_attribute("data-item")
    assert answer is not None
    page.wait_heard(answer)
    page.wait_state("listening")
    session_id = page.page.evaluate("() => parley.sessionId")
    page.page.context.clear_permissions()  # the browser asks anew: no microphone without a press
    page.page.reload()
    assert "kept" in page.problem()
    page.page.context.grant_permissions(["microphone"], origin=scripted_url)
    page.page.locator("#talk").click()
    page.wait_said("assistant", "You said: Before")
    assert page.page.evaluate("() => parley.sessionId") == session_id
    page.page.wait_for_function("() => parley.microphone !== null")
