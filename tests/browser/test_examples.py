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
    sources = [ROOT / "web/examples" / name for name in ("minimal.html", "minimal.js")]
    assert sum(len(source.read_text().splitlines()) for source in sources) < 40
    page = talk(scripted_url, "/examples/minimal.html")
    page.page.locator("button").first.click()
    page.wire.wait("session.updated")
    page.wire.wait_sent("input_audio_buffer.append", 5)
    page.say_aloud(tone(600))
    page.page.get_by_text("You said: hello").first.wait_for()


PRESSES = """async (gapMs) => {
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const ask = navigator.mediaDevices.getUserMedia;
  navigator.mediaDevices.getUserMedia = async (wanted) => { // as if each were asked of the user
    await sleep(300);
    return ask(wanted);
  };
  const button = document.getElementById('talk');
  for (let press = 0; press < 3; press += 1) {
    button.click();
    await sleep(gapMs);
  }
}"""


@pytest.mark.parametrize("gap_ms", [0, 100])
@pytest.mark.parametrize("name", ["minimal", "weather"])
def test_a_beginning_that_was_given_up_does_not_end_the_next_one(
    talk: OpenTalk, scripted_url: str, name: str, gap_ms: int
) -> None:
    page = talk(scripted_url, f"/examples/{name}.html")
    page.page.evaluate(PRESSES, gap_ms)  # talk, stop, talk
    page.wire.wait("session.updated")
    button, state = page.page.locator("#talk"), page.page.locator("#state")
    state.filter(has_text="listening").wait_for()
    assert button.inner_text() == "Stop"
    problem = page.page.locator("#problem")
    assert problem.count() == 0 or problem.is_hidden()
    button.click()
    page.page.locator("#talk", has_text="Talk").wait_for()
    page.wait_closed()
    assert state.inner_text() == ""


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
