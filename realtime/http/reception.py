"""What every speech route asks before it does anything: who is there, and can the server serve."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.responses import Response

from pipelines.ports import Cascade
from pipelines.types import StageError
from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keyring import Pass
from realtime.http.answers import denial_response, error_response
from realtime.http.readiness import Readiness
from realtime.http.visits import Visit, Visits

# Codes of stages' errors that are about what was asked for, and the field that asked.
FIELD_OF_FAULT: Mapping[str, str | None] = {
    "copying_unsupported": "references",
    "voice_sample_refused": "references",
    "drawing_refused": None,  # the message begins with it
    "unsupported_speed": "speed",
    "tts_reference_too_long": "references",
    "tts_text_too_long": "input",
    "reply_too_long": "input",
    "translation_unsupported": "model",
    "words_unsupported": "timestamp_granularities",
}


class Refused(Exception):
    """An answer other than the one that was asked for; for HTTP routes."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def refuse(status: int, code: str, message: str, param: str | None = None) -> Refused:
    return Refused(error_response(status, code, message, param=param))


@dataclass(frozen=True, slots=True)
class Reception:
    """failure: why a stage cannot serve at present, in words for users; None while all can.
    visits: those who are being served."""

    gate: Gate
    readiness: Readiness
    cascade: Cascade
    failure: Callable[[], str | None]
    visits: Visits = field(default_factory=Visits)

    @contextmanager
    def visit(self, headers: Mapping[str, str]) -> Generator[Visit]:
        """Admit, and count until it has been served. Raises as `admit`."""
        self.admit(headers)
        with self.visits.enter() as visit:
            yield visit

    def admit(self, headers: Mapping[str, str]) -> Pass:
        """Let in whoever shows a key (client secrets open sessions only) and can be served.

        Raises Refused: 401, 403, or 503 with Retry-After.
        """
        try:
            shown = self.gate.admit_key(headers)
        except Denied as denied:
            raise Refused(denial_response(denied)) from denied
        why = self.failure() if self.readiness.is_ready else self.readiness.refusal()
        if why is not None:
            raise Refused(
                error_response(503, "server_not_ready", why, headers={"Retry-After": "5"})
            )
        return shown


def refuse_stage_error(error: StageError, param: str | None = None) -> Refused:
    """What a stage says of a request, as an answer: 400 if the request is at fault, else 500.

    param: the field, where the route calls it otherwise.
    """
    if error.code in FIELD_OF_FAULT:
        return refuse(400, error.code, error.message, param or FIELD_OF_FAULT[error.code])
    return refuse(500, error.code, error.message)
