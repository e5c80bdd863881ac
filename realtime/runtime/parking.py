"""Tokens with which a lost client finds its session again."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Protocol

from realtime.runtime.transport import Transport

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

    async def attach(self, transport: Transport) -> None:
        """Go on with the client on this transport until it is lost or the session ends.

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
    still seems to live: of a network that has changed, its server hears last."""

    def __init__(self) -> None:
        self._sessions: dict[str, Resumable] = {}
        self._tokens: dict[Resumable, str] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def issue(self, session: Resumable) -> str:
        """A new token, which replaces the session's former one."""
        self.forget(session)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions[token] = session
        self._tokens[session] = token
        return token

    def claim(self, token: str) -> Claim:
        """Use the token. Raises SessionOver."""
        session = self._sessions.pop(token, None)
        if session is None:
            raise SessionOver
        return Claim(token, session)

    def give_back(self, claim: Claim) -> None:
        """Its client has gone before it was let in: it may try again with the same token."""
        if self._tokens.get(claim.session) == claim.token:
            self._sessions[claim.token] = claim.session

    def forget(self, session: Resumable) -> None:
        """The session is over, or gets another token."""
        token = self._tokens.pop(session, None)
        if token is not None:
            self._sessions.pop(token, None)
