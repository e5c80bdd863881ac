"""axe-core finds nothing serious in any main state, at any size, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tests.browser.stage import DESKTOP, PHONE
from tests.browser.talk import Talk

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")


def grave_violations(page: Talk) -> list[str]:
    """Each as `rule: selectors`, of what axe finds in the page as it is now."""
    page.page.evaluate(AXE)  # the page's policy forbids a script's tag
    # What fades in has no contrast to speak of until it is there.
    page.wait_that(
        "() => document.getAnimations().every((a) => a.playState !== 'running' || "
        "a.effect.getTiming().iterations === Infinity)"
    )
    found: dict[str, Any] = page.page.evaluate("() => axe.run()")
    return [
        f"{violation['id']}: {[node['target'] for node in violation['nodes']]}"
        for violation in found["violations"]
        if violation["impact"] in GRAVE
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_state_has_a_grave_violation(
    talk: Callable[..., Talk], scripted_url: str, scheme: str, screen: dict[str, Any]
) -> None:
    page = talk(scripted_url, color_scheme=scheme, reduced_motion="reduce", **screen)
    found = {"idle": grave_violations(page)}
    page.start()
    page.type_text("What is the weather?")
    page.wait_bubble("assistant")
    page.wait_state("listening")
    page.type_text("Count for me")
    page.wait_bubble("assistant", 1)
    page.wait_state("speaking")
    found["speaking"] = grave_violations(page)
    page.page.locator("#interrupt").click()
    page.page.locator("#conversation :is(s, del)").first.wait_for()
    page.page.locator("#mute").click()
    found["interrupted and muted"] = grave_violations(page)
    page.page.locator("#open-latency").click()
    found["latency"] = grave_violations(page)
    page.page.keyboard.press("Escape")
    page.page.locator("#open-settings").click()
    page.page.locator("dialog#settings[open]").wait_for()
    found["settings"] = grave_violations(page)
    assert not {state: grave for state, grave in found.items() if grave}
    overflow = page.page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0


@pytest.mark.parametrize("example", ["minimal.html", "weather.html"])
def test_the_examples_have_none_either(
    talk: Callable[..., Talk], scripted_url: str, example: str
) -> None:
    assert not grave_violations(talk(scripted_url, f"/examples/{example}"))
