"""`/health` and `/v1/models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from realtime.access.keys import find_key, is_admitted
from realtime.http.answers import UNAUTHORISED_HEADERS, error_response
from realtime.http.readiness import Phase, Readiness


def create_routes(
    readiness: Readiness,
    model: Callable[[], str],
    live: Callable[[], Mapping[str, object]],
    keys: Sequence[str],
) -> APIRouter:
    """model: the language model's name. live: what runs now, for `/health`. keys: of the server."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> JSONResponse:
        """200 once everything is loaded; 503 before, with what is loading, and while stopping."""
        body: dict[str, object] = {"status": str(readiness.phase), **live()}
        if readiness.phase is Phase.LOADING:
            body["loading"] = readiness.detail
        return JSONResponse(body, 200 if readiness.is_ready else 503)

    @router.get("/v1/models")
    async def models(request: Request) -> JSONResponse:
        if not is_admitted(find_key(request.headers.get("authorization"), ()), keys):
            return error_response(
                401,
                "invalid_api_key",
                "This server wants one of its keys as a bearer token.",
                UNAUTHORISED_HEADERS,
            )
        entry = {"id": model(), "object": "model", "created": 0, "owned_by": "parley"}
        return JSONResponse({"object": "list", "data": [entry]})

    return router
