"""Which web pages may open a conversation.

A server on loopback is reachable by every page that the user's browser shows, and WebSockets know
no same-origin rule: the server must refuse foreign origins itself. Programs send no Origin.
A foreign page can also point its own host name at loopback, so there the name must be a local one.
Of such a page's own server browsers send no Origin with what it merely reads: there the Host tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
DEFAULT_PORTS = {"http": 80, "https": 443}
# As browsers write one: scheme, host and port. Apps have schemes of their own.
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")


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


def is_local_host(host: str | None, allowed: Sequence[str]) -> bool:
    """Whether a request's Host is a name of this machine, or of a configured origin.

    Programs may leave it out; browsers never do.
    """
    if host is None:
        return True
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name in LOOPBACK_HOSTS or name in {urlsplit(origin).hostname for origin in allowed}


def what_is_wrong_with_origin(origin: str) -> str | None:
    """Why no browser ever sends this origin, and what it sends instead; None if one may."""
    found = _ORIGIN.fullmatch(origin.lower())
    if found is None:
        return f"{origin!r} is no web origin; write it as https://example.org"
    if origin != origin.lower():
        return f"browsers write {origin!r} in lower case: {origin.lower()!r}"
    scheme, port = found[1], found[2]
    if port is not None and DEFAULT_PORTS.get(scheme) == int(port):
        return f"browsers leave out the port of {origin!r}: {origin.removesuffix(f':{port}')!r}"
    return None
