"""How a message looks that was cut off: what was not heard is struck, and it says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.talk import Talk

pytestmark = pytest.mark.browser

SHOW = """async ([before, after]) => {
  const { MessageView } = await import('/page/message-view.js');
  const item = {
    id: 'item', role: 'assistant', kind: 'message', heard: 0, isWaiting: false, isInterim: false,
    isTyped: false,
  };
  const view = new MessageView({ ...item, ...before });
  view.update({ ...item, ...after });
  const { element } = view;
  return {
    text: element.querySelector('.text').textContent,
    struck: element.querySelector('s')?.textContent ?? null,
    note: element.querySelector('.note:not([hidden])')?.textContent ?? null,
  };
}"""


@pytest.mark.parametrize(
    ("text", "cut", "struck"),
    [
        ("Paris was founded in ", 9, "founded in"),
        ("Paris was founded in ", 10, "founded in"),
        ("Paris was ", 9, None),  # nothing but a space was not heard
        ("Paris was", 9, None),  # after a reload: history has what was heard alone
    ],
)
def test_what_was_cut_is_struck_to_its_last_letter(
    talk: Callable[..., Talk], scripted_url: str, text: str, cut: int, struck: str | None
) -> None:
    page = talk(scripted_url)
    before = {"text": text, "cut": None}
    seen: dict[str, Any] = page.page.evaluate(SHOW, [before, {"text": text, "cut": cut}])
    assert seen == {"text": text.rstrip(), "struck": struck, "note": "Interrupted"}


def test_what_was_heard_out_has_no_mark(talk: Callable[..., Talk], scripted_url: str) -> None:
    page = talk(scripted_url)
    whole = {"text": "Paris was ", "cut": None}
    seen: dict[str, Any] = page.page.evaluate(SHOW, [whole, whole])
    assert seen == {"text": "Paris was ", "struck": None, "note": None}
