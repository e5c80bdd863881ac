"""An empty page in a real browser, where the tests of the client's sound happen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserType, Page, sync_playwright

from realtime.http.pages import PAGE_HEADERS
from tests.browser.chromium import ARGUMENTS, find_chromium
from tests.web.node_script import WEB

LAB = Path(__file__).with_name("sound_lab.js")


class _Pages(BaseHTTPRequestHandler):
    """An empty page and the client's modules, under the headers of the server's own pages."""

    def do_GET(self) -> None:
        path = WEB / self.path.lstrip("/")
        is_module = path.suffix == ".js" and path.is_file()
        body = path.read_bytes() if is_module else b"<!doctype html><title>Sound</title><p>Sound"
        self.send_response(200)
        for name, value in PAGE_HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/javascript" if is_module else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The page's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright.chromium, *arguments) as browser:
        yield browser


@contextmanager
def launched(kind: BrowserType, *arguments: str) -> Iterator[Browser]:
    browser = kind.launch(executable_path=find_chromium(), args=[*ARGUMENTS, *arguments])
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def opened(browser: Browser, address: str, may_listen: bool = True) -> Iterator[Page]:
    """The page, touched once as a user would; it must have nothing to complain of."""
    context = browser.new_context(permissions=["microphone"] if may_listen else [])
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.add_init_script(path=LAB)
    page.goto(address)
    page.click("p")
    yield page
    assert complaints == []
    context.close()


def run(page: Page, body: str, **values: Any) -> Any:
    """What a body returns, in which `values` are constants."""
    names = ", ".join(values)
    return page.evaluate(f"async ({{ {names} }}) => {{ {body} }}", values)
