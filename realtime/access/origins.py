"""Which web pages may open a conversation.

A server on loopback is reachable by every page that the user's browser shows, and WebSockets know
no same-origin rule: the server must refuse foreign origins itself. Programs send no Origin.
A foreign page can also point its own host name at loopback, so there the name must be a local one.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
DEFAULT_PORTS = {"http": 80, "https": 443}


def is_allowed_origin(
    origin: str | None, host: str | None, allowed: Sequence[str], *, loopback: bool
) -> bool:
    """Whether a request may come in.

    origin, host: the request's headers of these names. allowed: configured origins.
    loopback: whether the server listens on loopback only.
    """
    if origin is None or origin in allowed:
        return True
    try:
        page = urlsplit(origin)
        server = urlsplit(f"//{host}")
        page_port = page.port or DEFAULT_PORTS.get(page.scheme)
        server_port = server.port or DEFAULT_PORTS.get(page.scheme)
    except ValueError:
        return False
    if page.scheme not in DEFAULT_PORTS or page.hostname is None:
        return False
    if loopback and page.hostname not in LOOPBACK_HOSTS:
        return False
    return (page.hostname, page_port) == (server.hostname, server_port)
