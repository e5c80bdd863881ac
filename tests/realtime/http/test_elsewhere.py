"""Whoever asks for the WebSocket's address without a WebSocket is told what it is."""

from __future__ import annotations

import asyncio

import httpx
from fastapi import FastAPI

from realtime.http.elsewhere import create_elsewhere_routes


def test_a_plain_request_for_the_socket_is_told_to_upgrade() -> None:
    app = FastAPI()
    app.include_router(create_elsewhere_routes())

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/v1/realtime")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert answer.json()["error"]["code"] == "upgrade_required"
