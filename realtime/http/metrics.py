"""`GET /metrics`: the server's figures for Prometheus, and whoever reads its format."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from realtime.access.denial import Denied
from realtime.access.gate import Gate
from realtime.access.keys import find_key
from realtime.http.answers import denial_response


def create_metrics_route(gate: Gate, tell: Callable[[], str], content_type: str) -> APIRouter:
    """tell: the figures of this moment, as text of that type."""
    router = APIRouter()

    @router.head("/metrics", response_model=None, include_in_schema=False)
    @router.get("/metrics", response_model=None)
    async def metrics(request: Request) -> Response:
        """Counters, gauges and histograms; where the server has keys, for whoever shows one."""
        try:
            gate.admit_reader(request.headers)
            gate.ring.admit_key(find_key(request.headers.get("authorization"), ()))
        except Denied as denied:
            return denial_response(denied)
        return Response(tell(), headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return router
