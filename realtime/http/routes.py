"""`/health` and `/v1/models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keys import find_key
from realtime.http.answers import denial_response
from realtime.http.readiness import Phase, Readiness


def create_routes(
    readiness: Readiness,
    model: Callable[[], str],
    live: Callable[[], Mapping[str, object]],
    gate: Gate,
    failure: Callable[[], str | None] = lambda: None,
) -> APIRouter:
    """model: the language model's name. live: what runs now, for `/health`. failure: why a server
    that was ready cannot serve, for good or at present."""
    router = APIRouter()

    @router.get("/health")
    async def health(request: Request) -> JSONResponse:
        """200 once everything is loaded; 503 before, with what is loading, while stopping, and
        while a stage cannot serve, with the reason."""
        try:
            gate.admit_reader(request.headers)
        except Denied as denied:
            return denial_response(denied)
        body: dict[str, object] = {"status": str(readiness.phase), **live()}
        if readiness.phase is Phase.LOADING:
            body["loading"] = readiness.detail
        why = failure() if readiness.is_ready else None
        if why is not None:
            body |= {"status": str(Phase.FAILED), "failure": why}
        return JSONResponse(body, 200 if readiness.is_ready and why is None else 503)

    @router.get("/v1/models")
    async def models(request: Request) -> JSONResponse:
        try:
            gate.admit_reader(request.headers)
            gate.ring.admit_key(find_key(request.headers.get("authorization"), ()))
        except Denied as denied:
            return denial_response(denied)
        entry = {"id": model(), "object": "model", "created": 0, "owned_by": "parley"}
        return JSONResponse({"object": "list", "data": [entry]})

    return router
