"""`/health`, and its two questions alone: does the process live, can it serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.http.answers import denial_response
from realtime.http.readiness import Phase, Readiness

NOT_KEPT = {"Cache-Control": "no-store"}  # an answer of a moment ago is none


def create_health_routes(
    readiness: Readiness,
    live: Callable[[], Mapping[str, object]],
    gate: Gate,
    failure: Callable[[], str | None] = lambda: None,
) -> APIRouter:
    """live: what runs now. failure: why a server that was ready cannot serve, for good or at
    present."""
    router = APIRouter()

    def judge(figures: Mapping[str, object]) -> JSONResponse:
        """Whether the server can serve, as a status and in words; with the figures between."""
        body: dict[str, object] = {"status": str(readiness.phase), **figures}
        if readiness.phase is Phase.LOADING:
            body["loading"] = readiness.detail
        why = failure() if readiness.is_ready else None
        if why is not None:
            body |= {"status": str(Phase.FAILED), "failure": why}
        is_fit = readiness.is_ready and why is None
        return JSONResponse(body, 200 if is_fit else 503, NOT_KEPT)

    @router.head("/health", response_model=None, include_in_schema=False)
    @router.get("/health", response_model=None)
    async def health(request: Request) -> JSONResponse:
        """200 once everything is loaded; 503 before, with what is loading, while stopping, and
        while a stage cannot serve, with the reason. The figures of the moment come with it."""
        return _admitted(gate, request) or judge(live())

    @router.head("/health/ready", response_model=None, include_in_schema=False)
    @router.get("/health/ready", response_model=None)
    async def ready(request: Request) -> JSONResponse:
        """The status of `/health`, without the figures: whether to send anybody here."""
        return _admitted(gate, request) or judge({})

    @router.head("/health/live", response_model=None, include_in_schema=False)
    @router.get("/health/live", response_model=None)
    async def alive(request: Request) -> JSONResponse:
        """200 while the process answers, whatever it does: whether to leave it running."""
        return _admitted(gate, request) or JSONResponse({"status": "live"}, headers=NOT_KEPT)

    return router


def _admitted(gate: Gate, request: Request) -> JSONResponse | None:
    """The answer to whoever may not read this; None for all others."""
    try:
        gate.admit_reader(request.headers)
    except Denied as denied:
        return denial_response(denied)
    return None
