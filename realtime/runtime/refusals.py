"""Who is turned away: what the client is told, and how the log tells of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)

QUIET_S = 5.0  # a crowd at the door must not fill the log: so long between lines of one kind
MAX_SHOWN_CHARACTERS = 300  # of a reason, which may repeat what a stranger has written


class ServerFull(Exception):
    """No room for another session, or the server is shutting down. The text is for the user."""

    code = "too_many_sessions"


class StageUnavailable(ServerFull):
    """A stage cannot serve, and no conversation is possible without it."""

    code = "stage_unavailable"


@dataclass(slots=True)
class _Told:
    at_s: float
    since: int = 0  # refusals that the log does not know of


class RefusalLog:
    """A line for the first refusal of a kind, and for the next ones after a while with a count.

    now_s: monotone. what: is refused.
    """

    def __init__(self, now_s: Callable[[], float], what: str = "a session") -> None:
        self._now_s = now_s
        self._what = what
        self._told: dict[str, _Told] = {}

    def tell(self, code: str, why: str) -> None:
        now_s = self._now_s()
        told = self._told.get(code)
        if told is not None and now_s - told.at_s < QUIET_S:
            told.since += 1
            return
        more = ""
        if told is not None and told.since:
            more = f" (and {told.since} more in the last {now_s - told.at_s:.0f} s)"
        self._told[code] = _Told(now_s)
        shown = "".join(c if c.isprintable() else "?" for c in why[:MAX_SHOWN_CHARACTERS])
        log.warning("%s is refused: %s: %s%s", self._what, code, shown, more)
