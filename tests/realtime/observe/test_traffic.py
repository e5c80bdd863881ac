"""What is counted of requests, answers and their bytes, message by message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime.http.answers import CODE_IN_SCOPE, error_response
from realtime.observe.metrics import OTHER, Count, Metrics
from realtime.observe.traffic import Traffic


class Route:
    path = "/v1/things/{name}"


def pass_through(
    app: Any, scope: dict[str, Any], *incoming: dict[str, Any]
) -> tuple[Metrics, list[dict[str, Any]]]:
    """Run an application behind the middleware; what it sent."""
    metrics, sent, waiting = Metrics(), list[dict[str, Any]](), list(incoming)

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Traffic(app, metrics, CODE_IN_SCOPE)(scope, receive, send))
    return metrics, sent


def http(method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "method": method, "route": Route()}


def test_bodies_and_answers_pass_unchanged_and_are_counted() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"12345"
        assert "body" not in await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"123", "more_body": True})
        await send({"type": "http.response.body"})

    metrics, sent = pass_through(
        app, http("POST"), {"type": "http.request", "body": b"12345"}, {"type": "http.disconnect"}
    )
    assert [message["type"] for message in sent] == ["http.response.start"] + [
        "http.response.body"
    ] * 2
    assert metrics.labelled[Count.HTTP_REQUESTS] == {("POST", Route.path, "200"): 1}
    assert metrics.labelled[Count.RECEIVED_BYTES] == {("http",): 5}
    assert metrics.labelled[Count.SENT_BYTES] == {("http",): 3}
    assert Count.HTTP_REFUSALS not in metrics.labelled


def test_a_socket_is_one_request_and_its_text_counts_in_bytes() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(3):
            await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "é", "bytes": None})
        await send({"type": "websocket.send", "text": None, "bytes": b"1234"})
        await send({"type": "websocket.close", "code": 1000})

    metrics, _ = pass_through(
        app,
        {"type": "websocket", "route": Route()},
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": "ascii"},
        {"type": "websocket.receive", "text": "", "bytes": b"\x00\x01"},
    )
    assert metrics.labelled[Count.HTTP_REQUESTS] == {("GET", Route.path, "101"): 1}
    assert metrics.labelled[Count.RECEIVED_BYTES] == {("websocket",): 7}
    assert metrics.labelled[Count.SENT_BYTES] == {("websocket",): 6}


def test_a_socket_that_is_closed_before_it_is_accepted_is_refused() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.close", "code": 1000})

    metrics, _ = pass_through(app, {"type": "websocket"})
    assert metrics.labelled[Count.HTTP_REQUESTS] == {("GET", OTHER, "403"): 1}
    assert Count.HTTP_REFUSALS not in metrics.labelled, "no code was told"


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_an_error_is_counted_by_the_code_that_its_client_reads(kind: str) -> None:
    refusal = error_response(429, "slow_down", "Later.")
    scope = {**http(), "type": kind, "extensions": {"websocket.http.response": {}}}
    metrics, _ = pass_through(refusal, scope)
    assert metrics.labelled[Count.HTTP_REFUSALS] == {("slow_down",): 1}
    assert metrics.labelled[Count.HTTP_REQUESTS] == {("GET", Route.path, "429"): 1}


def test_a_word_for_a_method_makes_no_sample_of_its_own() -> None:
    metrics, _ = pass_through(error_response(405, "no", "No."), http("BREW"))
    assert metrics.labelled[Count.HTTP_REQUESTS] == {(OTHER, Route.path, "405"): 1}


def test_a_fault_before_the_answer_counts_as_one_and_goes_on() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    metrics = Metrics()
    traffic = Traffic(app, metrics, CODE_IN_SCOPE)

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nobody is asked for anything")

    with pytest.raises(ZeroDivisionError):
        asyncio.run(traffic(http(), nothing, nothing))
    assert metrics.labelled[Count.HTTP_REQUESTS] == {("GET", Route.path, "500"): 1}


def test_the_life_of_the_application_is_none_of_its_matters() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "lifespan.startup.complete"})

    metrics, sent = pass_through(app, {"type": "lifespan"})
    assert sent == [{"type": "lifespan.startup.complete"}] and not metrics.counts
