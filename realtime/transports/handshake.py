"""Who may open a conversation, and which kind it is: a pure function of the request.

A request with the header `OpenAI-Beta: realtime=v1` asks for the dialect before the general
release. It is answered as OpenAI answers it: an error event and close code 4000. Serving the
released dialect instead would leave such a client silent, for it knows none of its event names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from realtime.access.keys import find_key, is_admitted
from realtime.access.origins import is_allowed_origin
from realtime.session.settings import SessionType

SUBPROTOCOL = "realtime"  # browsers fail the handshake if an offered one is not chosen
MAX_MODEL_CHARACTERS = 256  # the name is only echoed


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer before the upgrade."""

    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Admission:
    """subprotocol: what to choose of the offered ones. model: as the client named it."""

    subprotocol: str | None
    session_type: SessionType
    model: str | None
    wants_beta: bool


@dataclass(frozen=True, slots=True)
class Door:
    """keys, origins: configured. loopback: whether the server listens on loopback only."""

    keys: Sequence[str]
    origins: Sequence[str]
    loopback: bool

    def judge(
        self, headers: Mapping[str, str], subprotocols: Sequence[str], query: Mapping[str, str]
    ) -> Admission | Refusal:
        """headers: with lower-case names. Unknown query parameters are ignored."""
        origin = headers.get("origin")
        if not is_allowed_origin(origin, headers.get("host"), self.origins, loopback=self.loopback):
            return Refusal(
                403,
                "origin_not_allowed",
                f"Web pages of {origin} may not use this server; its operator can allow them "
                "under server.origins.",
            )
        if not is_admitted(find_key(headers.get("authorization"), subprotocols), self.keys):
            return Refusal(
                401,
                "invalid_api_key",
                "This server wants one of its keys, as a bearer token or as the subprotocol "
                "openai-insecure-api-key.KEY.",
            )
        is_transcription = query.get("intent") == "transcription"
        return Admission(
            subprotocol=SUBPROTOCOL if SUBPROTOCOL in subprotocols else None,
            session_type=SessionType.TRANSCRIPTION if is_transcription else SessionType.REALTIME,
            model=query.get("model", "")[:MAX_MODEL_CHARACTERS] or None,
            wants_beta="realtime=v1" in headers.get("openai-beta", ""),
        )
