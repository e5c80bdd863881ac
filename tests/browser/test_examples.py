"""The pages that show how others use the module."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.talk import Talk
from tests.live_server import tone
from tests.sdk.parley_process import ROOT

pytestmark = pytest.mark.browser

OpenTalk = Callable[..., Talk]


def test_the_minimal_page_talks(talk: OpenTalk, scripted_url: str) -> None:
    assert len((ROOT / "web/examples/minimal.html").read_text().splitlines()) < 40
    page = talk(scripted_url, "/examples/minimal.html")
    page.page.locator("button").first.click()
    page.wire.wait("session.updated")
    page.wire.wait_sent("input_audio_buffer.append", 5)
    page.say_aloud(tone(600))
    page.page.get_by_text("You said: hello").first.wait_for()


def test_the_weather_page_calls_its_function(talk: OpenTalk, scripted_url: str) -> None:
    page = talk(scripted_url, "/examples/weather.html")
    page.page.locator("button").first.click()
    tools = page.wire.wait("session.updated", lambda e: bool(e["session"]["tools"]))
    assert tools["session"]["tools"][0]["type"] == "function"
    field = page.page.locator("input[type=text], input:not([type])").first
    field.fill("What is the weather in Paris?")
    field.press("Enter")
    page.wire.wait("response.function_call_arguments.done")
    page.page.get_by_text("Paris").first.wait_for()
    page.page.get_by_text("It is sunny.").first.wait_for()
    outputs = [
        event["item"]
        for event in page.wire.sent_of_type("conversation.item.create")
        if event["item"]["type"] == "function_call_output"
    ]
    assert len(outputs) == 1 and outputs[0]["output"]
