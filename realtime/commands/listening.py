"""The address that the server listens on, taken before anything slow begins."""

from __future__ import annotations

import errno
import socket

from realtime.commands.errors import USAGE, CommandError
from realtime.settings import Server

BACKLOG = 128  # connections that may wait while models load
# How long the other end may leave what was sent to it unacknowledged, or unread, before the system
# resets the connection without a word. Longer than whoever writes waits and then says why (a paused
# download two minutes): this is for what nobody writes to any more. Connections inherit it.
UNREAD_LIMIT_MS = 150_000


def require_keys(server: Server) -> None:
    """A server that others can reach needs keys. Raises CommandError."""
    if not server.is_loopback and not server.keys:
        raise CommandError(
            f"server.host is {server.host}, which others can reach, but there are no keys: set "
            "server.keys in the configuration or PARLEY_KEY in the environment (16 or more "
            "characters), or listen on 127.0.0.1",
            USAGE,
        )


def describe_admission(server: Server) -> str:
    """Who may connect, in a line for the operator."""
    count = len(server.keys)
    if not count:
        return f"No keys: only programs of this machine may connect ({server.host})"
    keys = "its key" if count == 1 else f"one of {count} keys"
    return f"Clients show {keys} or a client secret made with it"


def bind(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises CommandError, which says what is in the way."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        match error.errno:
            case errno.EADDRINUSE:
                problem = f"port {port} of {host} is taken: stop the other program or use --port"
            case errno.EACCES:
                problem = f"port {port} of {host} may not be used by this user: use --port 8000"
            case errno.EADDRNOTAVAIL:
                problem = f"{host} is no address of this machine: use --host 127.0.0.1"
            case _:
                problem = f"cannot listen on port {port} of {host}: {error}"
        raise CommandError(problem) from error
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_LIMIT_MS)
    return listener
