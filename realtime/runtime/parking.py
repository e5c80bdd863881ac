"""Tokens with which a lost client finds its session again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from realtime.runtime.transport import Transport

_ANSWER_S = 2.0  # within which an answer that is not lost arrives
_TOKEN_BYTES = 32  # nobody guesses it, however many sessions there are


class SessionOver(Exception):
    """The session has ended: nobody can come back to it. The text is for the user."""

    def __init__(self) -> None:
        super().__init__(
            "There is no session for this resume token: it was used already, or its time is over. "
            "Connect with resume=new to begin another."
        )


class Resumable(Protocol):
    """A session that outlives its sockets."""

    async def attach(self, transport: Transport, wants_details: bool = False) -> None:
        """Go on with the client on this transport until it is lost or the session ends.

        wants_details: whether that client asks for more than the standard events.
        Raises SessionOver before anything was sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to go on with a session. Whoever has it is the only one."""

    token: str
    session: Resumable


class Parking:
    """One token per session at most. It is good for one claim, whether or not the old socket
    still seems to live: of a network that has changed, its server hears last.

    The answer with the next token may be lost in its turn. Until the client has said something on
    its new socket, the token that it has used lets it in again, though not in the same moment: of
    two clients that show one token, one is let in.
    now_s: monotone.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._sessions: dict[str, Resumable] = {}
        self._tokens: dict[Resumable, str] = {}
        self._used: dict[Resumable, tuple[str, float]] = {}  # and when; not confirmed yet
        self._now_s = now_s

    def __len__(self) -> int:
        return len(self._sessions)

    def issue(self, session: Resumable) -> str:
        """A new token, which replaces the session's former one."""
        self._withdraw(session)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions[token] = session
        self._tokens[session] = token
        return token

    def claim(self, token: str) -> Claim:
        """Use the token. Raises SessionOver."""
        session = self._sessions.pop(token, None)
        if session is None:
            session = self._find_used(token)
        self._used[session] = (token, self._now_s())
        return Claim(token, session)

    def give_back(self, claim: Claim) -> None:
        """Its client has gone before it was let in: it may try again with the same token."""
        self._used.pop(claim.session, None)
        if self._tokens.get(claim.session) == claim.token:
            self._sessions[claim.token] = claim.session

    def confirm(self, session: Resumable) -> None:
        """Its client has its new token: it has spoken on the socket that brought it."""
        self._used.pop(session, None)

    def forget(self, session: Resumable) -> None:
        """The session is over."""
        self._withdraw(session)
        self._used.pop(session, None)

    def _find_used(self, token: str) -> Resumable:
        for session, (used, since_s) in self._used.items():
            if used == token and self._now_s() - since_s >= _ANSWER_S:
                return session
        raise SessionOver

    def _withdraw(self, session: Resumable) -> None:
        token = self._tokens.pop(session, None)
        if token is not None:
            self._sessions.pop(token, None)
