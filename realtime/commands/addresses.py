"""One server, two addresses: commands take either, of its HTTP routes or of its conversations."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from realtime.commands.errors import USAGE, CommandError

ENDPOINT_PATH = "/v1/realtime"
DEFAULT_PLACE = "127.0.0.1:8000"
DEFAULT_URL = f"http://{DEFAULT_PLACE}"
TO_HTTP = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
TO_WEBSOCKET = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
OPTIONAL_PATHS = ("", "/v1")  # as clients of OpenAI's API write a server down


def http_root(url: str) -> tuple[str, str]:
    """Scheme and place of a server's HTTP routes, and its host. Raises CommandError."""
    parts = _parts_of(url)
    path = parts.path.rstrip("/") if parts is not None else ""
    if parts is None or not parts.hostname or path not in (*OPTIONAL_PATHS, ENDPOINT_PATH):
        whole = f"{_scheme(url, TO_HTTP)}://{_place(url)}"
        raise CommandError(f"{url} is no address of a server; write it as {whole}", USAGE)
    return f"{TO_HTTP[parts.scheme]}://{parts.netloc}", parts.hostname


def realtime_url(url: str) -> tuple[str, str]:
    """The address of a server's conversations, with the query of `url`, and its host. Another path
    than the usual one is left as it is where the scheme is a WebSocket's. Raises CommandError."""
    parts = _parts_of(url)
    path = parts.path.rstrip("/") if parts is not None else ""
    is_known = path in (*OPTIONAL_PATHS, ENDPOINT_PATH)
    is_websocket = parts is not None and parts.scheme in ("ws", "wss")
    if parts is None or not parts.hostname or not (is_known or is_websocket):
        whole = f"{_scheme(url, TO_WEBSOCKET)}://{_place(url)}{ENDPOINT_PATH}"
        raise CommandError(f"{url} is no address of a server; write it as {whole}", USAGE)
    scheme = TO_WEBSOCKET[parts.scheme]
    path = ENDPOINT_PATH if path in OPTIONAL_PATHS else parts.path
    return parts._replace(scheme=scheme, path=path).geturl(), parts.hostname


def _parts_of(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # a number, or it raises
    except ValueError:
        return None
    return parts if parts.scheme in TO_HTTP else None


def _scheme(url: str, schemes: dict[str, str]) -> str:
    return schemes.get(url.partition("://")[0], schemes["http"])


def _place(url: str) -> str:
    """Host and port as they were given, or the usual ones where they cannot be made out."""
    rest = url.partition("://")[2] or url
    try:
        parts = urlsplit(f"//{rest}")
        _ = parts.port
    except ValueError:
        return DEFAULT_PLACE
    return parts.netloc or DEFAULT_PLACE
