"""Who may open a conversation, and which kind it is: a pure function of the request and the time.

A request with the header `OpenAI-Beta: realtime=v1` asks for the dialect before the general
release. It is answered as OpenAI answers it: an error event and close code 4000. Serving the
released dialect instead would leave such a client silent, for it knows none of its event names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keyring import Pass
from realtime.protocol.decode import decode_session
from realtime.protocol.problems import Problem, unsupported
from realtime.session.settings import SessionType, SettingsPatch

SUBPROTOCOL = "realtime"  # browsers fail the handshake if an offered one is not chosen
MAX_MODEL_CHARACTERS = 256  # the name is only echoed
INTENTS = ("transcription",)
MIN_LEAD_MS, MAX_LEAD_MS = 40, 60_000  # as in the configuration; less than a frame is no lead
UNPACED = "off"  # what `lead_ms` says for audio as fast as it is made
DETAILS = {"": False, "off": False, "on": True}  # what `details` says
NEW_RESUMABLE = "new"  # what `resume` says of a session that is to outlive its socket


CONFIGURED = -1.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer before the upgrade. param: the query parameter that is to blame."""

    status: int
    code: str
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """subprotocol: what to choose of the offered ones. model: as the client named it.

    has_stray_model: a transcription session was asked for with a model, which it has none of.
    key: which of the server's keys stands behind the client. patch: what its client secret sets.
    is_resumable: whether the session is to outlive its socket. token: of the one to go on with.
    lead_ms: how far its audio may run ahead, None without bound; CONFIGURED: as the server has it.
    wants_details: whether the client is told of the conversation's state and of words half heard.
    """

    subprotocol: str | None
    session_type: SessionType
    model: str | None
    wants_beta: bool
    has_stray_model: bool = False
    key: int | None = None
    patch: SettingsPatch = SettingsPatch()
    is_resumable: bool = False
    token: str | None = None
    lead_ms: float | None = CONFIGURED
    wants_details: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """The WebSocket's own questions, after those of the gate."""

    gate: Gate

    def judge(
        self, headers: Mapping[str, str], subprotocols: Sequence[str], query: Mapping[str, str]
    ) -> Admission | Refusal:
        """headers: with lower-case names. Unknown query parameters are ignored."""
        try:
            guest = self.gate.admit(headers, subprotocols)
        except Denied as denied:
            return Refusal(denied.status, denied.code, denied.message)
        if "call_id" in query:
            return Refusal(
                404,
                "not_supported",
                "This server takes no WebRTC or SIP calls, so there is none to control. Leave out "
                "'call_id' to open a conversation over this WebSocket.",
                "call_id",
            )
        intent = query.get("intent", "")
        if intent and intent not in INTENTS:
            return _refusal(unsupported("intent", intent, INTENTS))
        lead = query.get("lead_ms", "")
        if not _is_lead(lead):
            message = (
                f"Invalid value: '{lead[:20]}'. Expected {MIN_LEAD_MS} to {MAX_LEAD_MS} ms, or "
                f"'{UNPACED}' for audio as fast as it is made."
            )
            return Refusal(400, "invalid_value", message, "lead_ms")
        details = query.get("details", "")
        if details not in DETAILS:
            message = f"Invalid value: '{details[:20]}'. Expected 'on' or 'off'."
            return Refusal(400, "invalid_value", message, "details")
        named = SessionType.TRANSCRIPTION if intent else None
        return _admit(guest, named, headers, subprotocols, query)


def _admit(
    guest: Pass,
    named: SessionType | None,
    headers: Mapping[str, str],
    subprotocols: Sequence[str],
    query: Mapping[str, str],
) -> Admission | Refusal:
    """named: the type of session that the address asks for, if it does."""
    model = query.get("model", "")
    patch, kind, secret_model = SettingsPatch(), named or SessionType.REALTIME, None
    if guest.session is not None:
        read = decode_session(guest.session)
        if isinstance(read, Problem):  # made by a server of another version
            return _refusal(read)
        patch, kind = read, SessionType(guest.session["type"])
        secret_model = guest.session.get("model")
        if named is not None and named is not kind:
            return Refusal(
                400,
                "invalid_value",
                f"This client secret is for a {kind} session: leave out 'intent'.",
                "intent",
            )
    is_transcription = kind is SessionType.TRANSCRIPTION
    resume = query.get("resume", "")
    return Admission(
        subprotocol=SUBPROTOCOL if SUBPROTOCOL in subprotocols else None,
        session_type=kind,
        model=(model or secret_model or "")[:MAX_MODEL_CHARACTERS] or None,
        wants_beta="realtime=v1" in headers.get("openai-beta", ""),
        has_stray_model=is_transcription and bool(model),
        key=guest.key,
        patch=patch,
        is_resumable=resume == NEW_RESUMABLE,
        token=None if resume in ("", NEW_RESUMABLE) else resume,
        lead_ms=_lead_ms(query.get("lead_ms", "")),
        wants_details=DETAILS[query.get("details", "")],
    )


def _is_lead(text: str) -> bool:
    if text in ("", UNPACED):
        return True
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LEAD_MS))
    return is_number and MIN_LEAD_MS <= int(text) <= MAX_LEAD_MS


def _lead_ms(text: str) -> float | None:
    """Of a text that is a lead."""
    if text == UNPACED:
        return None
    return float(text) if text else CONFIGURED


def _refusal(problem: Problem) -> Refusal:
    return Refusal(400, problem.code, problem.message, problem.param)
