"""The pages as files: their folders, their types, what a browser may do with them, and 304."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from realtime.http.pages import PAGE_HEADERS, Pages

WEB = Path(__file__).resolve().parents[3] / "web"
FILES: Mapping[str, str] = {
    "index.html": "<title>Page</title>",
    "icon.svg": "<svg/>",
    "parley-client.js": "export {};",
    "client/wire.js": "export {};",
    "client/sound/playback-worklet.js": "registerProcessor();",
    "page/main.js": "export {};",
    "styles/page.css": "body {}",
    "examples/minimal.html": "<title>Minimal</title>",
    "examples/weather.json": "{}",
}


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A folder of pages, with a secret beside it."""
    folder = tmp_path / "web"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    return folder


def ask(
    folder: Path, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> httpx.Response:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(Pages(folder), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(answer())


def status(folder: Path, path: str, method: str = "GET") -> int:
    """Pages alone leave a 404 to the application around them: here it is the exception's."""
    from starlette.applications import Starlette

    app = Starlette()
    app.mount("/", Pages(folder))

    async def answer() -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.request(method, path)).status_code

    return asyncio.run(answer())


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/examples/minimal.html", "text/html; charset=utf-8"),
        ("/parley-client.js", "text/javascript; charset=utf-8"),
        ("/client/sound/playback-worklet.js", "text/javascript; charset=utf-8"),
        ("/page/main.js?v=1", "text/javascript; charset=utf-8"),
        ("/styles/page.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/examples/weather.json", "application/json"),
    ],
)
def test_every_file_has_its_type_in_every_folder(web: Path, path: str, kind: str) -> None:
    answer = ask(web, path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    name = path.partition("?")[0].strip("/") or "index.html"
    assert answer.text == FILES[name]
    head = ask(web, path, method="HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == kind
    assert head.headers["content-length"] == str(len(FILES[name]))


@pytest.mark.parametrize(
    "path",
    [
        *("/client", "/client/", "/client/sound/", "/examples", "/examples/", "/examples/index"),
        *("/examples/minimal", "/style.css", "/index.html/x", "/.", "/%00"),
        *("/../secret.js", "/%2e%2e/secret.js", "/client/%2e%2e/%2e%2e/secret.js"),
        *("/..%2fsecret.js", "/%5c..%5csecret.js", "//etc/passwd", "/" + "x" * 5000),
    ],
)
def test_nothing_else_is_there(web: Path, path: str) -> None:
    answered = status(web, path)
    assert answered == (200 if path == "/." else 404)


def test_no_folder_is_listed_and_a_deleted_file_is_gone(web: Path) -> None:
    assert status(web, "/page/main.js") == 200
    (web / "page/main.js").unlink()
    assert status(web, "/page/main.js") == 404
    assert status(web, "/page/") == 404


def test_a_folder_without_its_slash_is_on_this_server(web: Path) -> None:
    (web / "guide").mkdir()
    (web / "guide/index.html").write_text("guide", encoding="utf-8")
    answer = ask(web, "/guide?page=2", {"Host": "elsewhere"})
    assert (answer.status_code, answer.headers["location"]) == (307, "/guide/?page=2")


def test_a_way_out_of_the_folder_is_none(web: Path) -> None:
    (web / "out.js").symlink_to(web.parent / "secret.js")
    assert status(web, "/out.js") == 404


@pytest.mark.parametrize(("path", "expected"), [("/page/main.js", 405), ("/page/none.js", 404)])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_files_are_only_read(web: Path, path: str, expected: int, method: str) -> None:
    assert status(web, path, method) == expected


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/examples/minimal.html"])
def test_a_browser_asks_each_time_and_gets_what_has_changed(web: Path, path: str) -> None:
    first = ask(web, path)
    assert first.headers["cache-control"] == "no-cache"
    tag = {"If-None-Match": first.headers["etag"]}
    again = ask(web, path, tag)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == "no-cache"
    file = web / (path.strip("/") or "index.html")
    file.write_text("something else, and longer", encoding="utf-8")
    changed = ask(web, path, tag)
    assert (changed.status_code, changed.text) == (200, "something else, and longer")
    assert changed.headers["etag"] != first.headers["etag"]


def test_a_page_may_do_what_it_needs_and_no_more(web: Path) -> None:
    headers = ask(web, "/").headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'", "modules, worklets, styles: its own alone"
    assert policy["connect-src"] == "'self' ws: wss:"
    assert policy["media-src"] == "'self' blob:"
    assert policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    assert not any("unsafe" in sources for sources in policy.values())
    assert headers["permissions-policy"] == "microphone=(self)"
    assert headers["x-content-type-options"] == "nosniff"
    for path in ("/page/main.js", "/examples/minimal.html", "/styles/page.css"):
        answer = ask(web, path)
        assert {name: answer.headers[name] for name in PAGE_HEADERS} == dict(PAGE_HEADERS)


def test_the_servers_own_pages_are_files_of_known_types() -> None:
    names = [path for path in WEB.rglob("*") if path.is_file()]
    assert names
    for file in names:
        answer = ask(WEB, f"/{file.relative_to(WEB).as_posix()}")
        assert answer.status_code == 200, file
        assert answer.headers["content-type"] != "text/plain; charset=utf-8", file
