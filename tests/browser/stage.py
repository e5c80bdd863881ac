"""A browser before a server: visits to the page, and what each of them did that nobody saw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    sync_playwright,
)

from tests.browser.chromium import ARGUMENTS, find_chromium
from tests.browser.wire import Wire

FED_MICROPHONE = (Path(__file__).parent / "fed_microphone.js").read_text(encoding="utf-8")
PATIENCE_MS = 30_000  # the embedded models on a loaded machine with two cores
# Screens, as options of a visit.
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}
COMPLAINTS = ("error", "warning", "assert")  # of a console's kinds of message
INSIDE = ("data", "blob", "about", "chrome-extension")  # schemes that reach no network


@dataclass  # without slots: Playwright marks the methods that it calls
class Journal:
    """What the browser complained of, and where it went."""

    origin: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    expected: list[re.Pattern[str]] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """This complaint is the browser's own, of what the test does to it."""
        self.expected.append(re.compile(pattern))

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._note_console)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", self._note_request)
        context.on("page", lambda page: page.on("websocket", lambda ws: self._note_url(ws.url)))

    def check(self) -> None:
        unforeseen = [c for c in self.complaints if not any(p.search(c) for p in self.expected)]
        assert not unforeseen, "the console has: " + "; ".join(unforeseen)
        assert not self.strangers, f"requests leave {self.origin}: {self.strangers}"

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in COMPLAINTS:
            self.complaints.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _note_request(self, request: Request) -> None:
        self._note_url(request.url)

    def _note_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in INSIDE and parts.netloc != urlsplit(self.origin).netloc:
            self.strangers.append(url)


@dataclass(slots=True)
class Visit:
    """One window's visit to a server; later pages of its context belong to it."""

    url: str
    context: BrowserContext
    page: Page
    wire: Wire
    journal: Journal


class Stage:
    """Browsers by their extra arguments, each started when it is first needed."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._browsers: dict[tuple[str, ...], Browser] = {}

    @contextmanager
    def visit(
        self,
        url: str,
        path: str = "/",
        *,
        arguments: tuple[str, ...] = (),
        may_listen: bool = True,
        is_fed: bool = True,
        **options: Any,
    ) -> Iterator[Visit]:
        """A fresh profile at url + path. What went wrong unseen fails the test as the visit ends.

        arguments: of the browser, beside ARGUMENTS.
        may_listen: whether the user lets the page use the microphone.
        is_fed: the microphone is fed_microphone.js; else Chromium's own fake device.
        options: of the context (color_scheme, viewport, ...).
        """
        context = self._browser(arguments).new_context(**{**DESKTOP, **options})
        try:
            context.set_default_timeout(PATIENCE_MS)
            if may_listen:
                context.grant_permissions(["microphone"], origin=url)
            if is_fed:
                context.add_init_script(FED_MICROPHONE)
            journal = Journal(url)
            journal.watch(context)
            page = context.new_page()
            visit = Visit(url, context, page, Wire(page), journal)
            page.goto(url + path)
            yield visit
            journal.check()
        finally:
            context.close()

    def close(self) -> None:
        for browser in self._browsers.values():
            browser.close()

    def _browser(self, arguments: tuple[str, ...]) -> Browser:
        if arguments not in self._browsers:
            self._browsers[arguments] = self._playwright.chromium.launch(
                executable_path=find_chromium(), args=[*ARGUMENTS, *arguments]
            )
        return self._browsers[arguments]


@contextmanager
def open_stage() -> Iterator[Stage]:
    with sync_playwright() as playwright:
        stage = Stage(playwright)
        try:
            yield stage
        finally:
            stage.close()
