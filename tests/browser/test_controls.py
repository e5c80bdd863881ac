"""What a user does with the page: typing, silencing, muting, saving, and all of it by keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.sound import (
    AUDIBLE,
    RATE_HZ,
    audible_ms,
    loudness,
    read_recording,
    steps,
)
from tests.browser.talk import Talk, words_of
from tests.live_server import tone

pytestmark = pytest.mark.browser

OpenTalk = Callable[..., Talk]

TONE_LEVEL = 0.3  # of the scripted voice
FADE_MS = 5.0
FADE_STEP = TONE_LEVEL / (FADE_MS * RATE_HZ / 1000)  # what a fade adds to a tone's own step


def started(talk: OpenTalk, url: str) -> Talk:
    page = talk(url)
    page.start()
    return page


def item_of(page: Talk, role: str, number: int = 0) -> str:
    found = page.wait_bubble(role, number).get_attribute("data-item")
    assert found is not None
    return found


def test_what_is_typed_is_answered_aloud(talk: OpenTalk, scripted_url: str) -> None:
    page = started(talk, scripted_url)
    page.type_text("Good morning")
    assert "Good morning" in page.wait_bubble("user").inner_text()
    item_id = item_of(page, "assistant")
    page.wait_heard(item_id)
    page.wait_said("assistant", "You said: Good morning")
    page.wait_state("listening")
    assert page.page.locator("#say-text").input_value() == ""
    assert audible_ms(page.recording().heard) > 800  # four words of 300 ms
    page.page.locator("#announcer", has_text="You said: Good morning").wait_for()


def test_be_quiet_silences_at_once_and_softly(talk: OpenTalk, scripted_url: str) -> None:
    page = started(talk, scripted_url)
    page.type_text("Count, please")
    item_id = item_of(page, "assistant")
    page.wait_state("speaking")
    page.wait_that("(id) => parley.items.find((item) => item.id === id).heard > 20", item_id)
    page.page.locator("#interrupt").click()
    page.wait_state("listening")
    page.wire.wait("conversation.item.truncated", lambda event: event["item_id"] == item_id)
    sent = len(page.wire.sent_of_type("input_audio_buffer.append"))
    page.wire.wait_sent("input_audio_buffer.append", sent + 15)  # 300 ms later
    recording = page.recording()
    assert not (loudness(recording.heard)[-10:] > AUDIBLE).any()  # silent to the end
    # A tone has no step of its own that a click could hide behind.
    tone_step = float(steps(page.wire.sound(item_id)).max())
    assert steps(recording.heard).max() < 1.1 * tone_step + FADE_STEP
    written, kept = page.wire.written(item_id), words_of(page.retrieve(item_id))
    assert kept and len(kept) < len(written) and written.startswith(kept)
    page.page.locator(f'li[data-item="{item_id}"] :is(s, del)').first.wait_for()


def test_a_muted_microphone_is_silent_until_it_is_held_open(
    talk: OpenTalk, scripted_url: str
) -> None:
    page = started(talk, scripted_url)
    mute = page.page.locator("#mute")
    mute.click()
    page.page.locator('#mute[aria-pressed="true"]').wait_for()
    sent = len(page.wire.sent_of_type("input_audio_buffer.append"))
    page.say_aloud(tone(600))
    page.wait_that("() => parley.levels.input === 0 && parley.isMuted")
    # Server time goes on: silence is sent.
    page.wire.wait_sent("input_audio_buffer.append", sent + 50)  # a second's worth
    assert audible_ms(page.recording().microphone) == 0
    assert page.bubbles("user").count() == 0

    # Push to talk: the space bar, with the focus in no field and on no button.
    page.page.locator("h1").click()
    page.page.keyboard.down("Space")
    page.wait_that("() => !parley.isMuted")
    page.say_aloud(tone(600))
    page.wait_state("hearing")
    page.page.keyboard.up("Space")
    page.wait_that("() => parley.isMuted")
    page.wait_bubble("user")
    page.wait_bubble("assistant")
    assert audible_ms(page.recording().microphone) > 100


def test_muted_the_space_bar_talks_from_a_button_too(talk: OpenTalk, scripted_url: str) -> None:
    page = started(talk, scripted_url)
    keys, words = page.page.keyboard, page.page.locator("#state-words")
    pressed = page.page.locator('#mute[aria-pressed="true"]')
    assert words.inner_text() == "Listening"
    page.page.locator("#mute").focus()
    keys.press("Space")  # not muted: the button's own
    pressed.wait_for()
    assert words.inner_text() == "Muted"
    for button in ("#mute", "#talk"):
        page.page.locator(button).focus()
        page.page.locator(".on-button").wait_for()  # the hint tells the tap from the hold
        keys.down("Space")
        page.wait_that("() => !parley.isMuted")
        page.page.locator("#hold-to-talk .when-held").wait_for()
        assert words.inner_text() == "Listening"
        keys.up("Space")
        pressed.wait_for()
        assert page.page.evaluate("() => parley.isMuted && parley.state === 'listening'")
        assert page.page.evaluate("(s) => document.activeElement.matches(s)", button)
    page.page.locator("#say-text").focus()
    keys.type("a b")  # in a field it is a letter
    assert page.page.locator("#say-text").input_value() == "a b"
    assert page.page.evaluate("() => parley.isMuted")
    page.page.locator("#mute").focus()
    keys.press("Space")  # a tap presses
    page.page.locator('#mute[aria-pressed="false"]').wait_for()
    assert not page.page.evaluate("() => parley.isMuted")


def test_without_a_microphone_nothing_is_said_to_listen(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, viewport={"width": 320, "height": 568})
    page.type_text("Hello")
    page.wait_heard(item_of(page, "assistant"))
    page.wait_state("listening")
    assert page.page.locator("#state-words").inner_text() == "Ready to read"
    # The longest words leave room for the buttons of the smallest screen.
    assert page.page.evaluate(
        "() => document.getElementById('open-settings').getBoundingClientRect().right <= innerWidth"
    )


def test_the_end_says_what_becomes_of_the_conversation(talk: OpenTalk, scripted_url: str) -> None:
    page = started(talk, scripted_url)
    page.type_text("Hello")
    page.wait_heard(item_of(page, "assistant"))
    ending = page.page.locator("#ending")
    assert ending.is_hidden()
    page.stop()
    ending.filter(has_text="Starting again begins a new conversation").wait_for()
    assert page.page.locator("#announcer", has_text=ending.inner_text()).count() == 1
    page.page.locator("#open-downloads").click()
    with page.page.expect_download():
        page.page.locator("#downloads button", has_text="WAV").click()
    page.start()
    assert ending.is_hidden() and page.bubbles("user").count() == 0


def test_a_lost_line_is_told_on_the_lowest_screen(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, viewport={"width": 844, "height": 390})
    page.start()
    note = page.page.locator("#microphone-note")
    page.wait_that("() => document.getElementById('microphone-note').textContent !== ''")
    assert note.is_hidden()
    page.page.evaluate(
        """() => parley.dispatchEvent(
          new CustomEvent('reconnecting', { detail: { attempt: 3, inMs: 4000 } }))"""
    )
    note.filter(has_text="Trying again in 4 s").wait_for()
    assert page.page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")


def test_the_conversation_can_be_taken_along(
    talk: OpenTalk, scripted_url: str, tmp_path: Path
) -> None:
    page = started(talk, scripted_url)
    page.type_text("Keep this")
    page.wait_heard(item_of(page, "assistant"))
    page.wait_state("listening")
    if not page.page.locator("#downloads button").first.is_visible():
        page.page.locator("#open-downloads").click()
    saved: list[bytes] = []
    for name in ("JSON", "WAV"):
        button = page.page.locator("#downloads button", has_text=name)
        if not button.is_visible():
            page.page.locator("#open-downloads").click()
        with page.page.expect_download() as download:
            button.click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        assert file.suffix == f".{name.lower()}"
        saved.append(file.read_bytes())
    conversation = json.loads(saved[0])
    texts = [item["text"].strip() for item in conversation["items"]]
    assert texts == ["Keep this", "You said: Keep this"]
    assert conversation["session_id"] == page.page.evaluate("() => parley.sessionId")
    recording = read_recording(saved[1])
    microphone_ms = 20 * len(page.wire.sent_of_type("input_audio_buffer.append"))
    assert abs(recording.length_ms - microphone_ms) < 1000
    assert audible_ms(recording.heard) > 800


def test_all_of_it_goes_by_keyboard(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url)
    keys = page.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(40):
            if page.page.evaluate("(s) => document.activeElement.matches(s)", selector):
                return
            keys.press("Tab")
        raise AssertionError(f"Tab never reaches {selector}")

    tab_to("#talk")
    keys.press("Enter")
    page.wait_state("listening")
    tab_to("#say-text")
    keys.type("Count for me")
    keys.press("Enter")
    page.wait_bubble("assistant")
    page.wait_state("speaking")
    keys.press("Escape")
    page.wait_state("listening")
    tab_to("#open-settings")
    keys.press("Enter")
    page.page.locator("dialog#settings[open]").wait_for()
    assert page.page.evaluate("() => document.activeElement.closest('dialog') !== null")
    keys.press("Escape")
    page.page.locator("dialog#settings:not([open])").wait_for(state="attached")
    assert page.page.evaluate("() => document.activeElement.id") == "open-settings"
    tab_to("#mute")
    keys.press("Enter")
    page.page.locator('#mute[aria-pressed="true"]').wait_for()
    tab_to("#talk")
    keys.press("Enter")
    page.wait_state("closed", "idle")
