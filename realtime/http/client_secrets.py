"""`POST /v1/realtime/client_secrets`: a short-lived key for a browser, with a session inside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field, ValidationError
from starlette.responses import JSONResponse, Response

from realtime.access.client_secret import MAX_SECRET_CHARACTERS, ClientSecret, SecretTooLong
from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keyring import Pass
from realtime.http.answers import denial_response, error_response
from realtime.http.bodies import receive
from realtime.http.faults import unreadable_body
from realtime.http.lingering import Lingering
from realtime.http.reception import Refused
from realtime.protocol.decode import decode_session
from realtime.protocol.json_text import Unreadable, read_object
from realtime.protocol.problems import Problem, first_problem
from realtime.protocol.session_view import session_view
from realtime.protocol.wire_model import WireModel
from realtime.session.bounds import Bounds, find_excess_in_update
from realtime.session.settings import SessionSettings, SessionType, SettingsPatch
from realtime.session.tools import unknown_tool

MAX_BODY_BYTES = 64 * 1024  # far more than a secret can hold
BODY_TIMEOUT_S = 20.0  # the largest body at the slowest
NOT_BEGUN = 0  # `expires_at` of a session that has none yet

DEFAULT_SESSION = {"type": "realtime"}


class ExpirySchema(WireModel):
    """How long the secret opens doors, counted from now."""

    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, Field(ge=10, le=7200)] = 600


class SecretRequest(WireModel):
    """session: read by `decode_session`."""

    expires_after: ExpirySchema | None = None
    session: object = None


class _Refused(Exception):
    """An answer other than the one that was asked for."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def create_client_secret_route(
    gate: Gate,
    bounds: Bounds,
    defaults: Callable[[SessionType, str | None], SessionSettings],
    make_id: Callable[[], str],
) -> APIRouter:
    """defaults: a session of a type and, if it was given one, a model. make_id: of a session."""
    router = APIRouter()

    @router.post("/v1/realtime/client_secrets")
    async def create_secret(request: Request) -> Response:
        """200 with {value, expires_at, session}; the session is whole, defaults and all."""
        try:
            maker = gate.admit_key(request.headers)
            wanted, patch = _read(await _body_of(request))
            session = _session_of(wanted)
            usual = defaults(SessionType(session["type"]), session.get("model"))
            settings = _patched(usual, patch, bounds)
            secret, value = _sign(gate, maker, wanted)
        except Denied as denied:
            return denial_response(denied)
        except _Refused as refused:
            return refused.response
        answer = {
            "value": value,
            "expires_at": secret.expires_at_s,
            "session": session_view(make_id(), settings, NOT_BEGUN),
        }
        return JSONResponse(answer, headers={"Cache-Control": "no-store"})

    return router


async def _body_of(request: Request) -> bytes:
    """Raises Refused, which closes the connection: the rest of the body may be on its way."""
    body = bytearray()
    too_large = f"The request body is larger than {MAX_BODY_BYTES} bytes."
    chunks = receive(request, MAX_BODY_BYTES, BODY_TIMEOUT_S, too_large=too_large)
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                body += chunk
    except Refused as refused:
        raise _Refused(Lingering(refused.response)) from refused
    return bytes(body)


def _read(body: bytes) -> tuple[SecretRequest, SettingsPatch]:
    try:
        fields: dict[str, Any] = read_object(body.decode()) if body.strip() else {}
        wanted = SecretRequest.model_validate(fields)
    except UnicodeDecodeError as error:
        why = f"The request body is not UTF-8 text (byte {error.start})."
        raise _refusal(Problem("invalid_json", why, None)) from None
    except Unreadable as error:
        why = unreadable_body(error)
        is_json = error.problem.code == "invalid_value"
        code = error.problem.code if is_json else "invalid_json"
        raise _refusal(Problem(code, why, None)) from None
    except ValidationError as error:
        raise _refusal(first_problem(error)) from None
    patch = decode_session(_session_of(wanted))
    if isinstance(patch, Problem):
        raise _refusal(patch)
    return wanted, patch


def _patched(usual: SessionSettings, patch: SettingsPatch, bounds: Bounds) -> SessionSettings:
    """The session, under the rules of `session.update`."""
    settings = usual.patched(patch)
    excess = find_excess_in_update(bounds, patch, settings)
    if excess is not None:
        raise _refusal(Problem(excess.code, excess.message, excess.param))
    unknown = unknown_tool(settings.tool_choice, settings.tools)
    if unknown is not None:
        raise _refusal(Problem("invalid_value", unknown, "session.tool_choice"))
    return settings


def _sign(gate: Gate, maker: Pass, wanted: SecretRequest) -> tuple[ClientSecret, str]:
    expiry = wanted.expires_after or ExpirySchema()
    secret = ClientSecret(int(gate.now_s()) + expiry.seconds, _session_of(wanted))
    try:
        return secret, gate.ring.sign(secret, maker)
    except SecretTooLong as error:
        why = (
            "Invalid 'session': the secret carries the session, which makes it "
            f"{error.characters} characters long; headers have room for {MAX_SECRET_CHARACTERS}. "
            "Shorten 'session.instructions' or 'session.tools', or send them with "
            "'session.update' once connected."
        )
        raise _refusal(Problem("session_too_large", why, "session")) from None


def _session_of(wanted: SecretRequest) -> Any:
    return DEFAULT_SESSION if wanted.session is None else wanted.session


def _refusal(problem: Problem) -> _Refused:
    return _Refused(error_response(400, problem.code, problem.message, None, problem.param))
