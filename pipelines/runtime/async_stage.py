"""Stages written as async generators: remote URLs, and all else that waits rather than works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from pipelines.runtime.lead import Lead
from pipelines.runtime.loop_stage import OUTPUT_LIMIT, LoopStage, LoopStream
from pipelines.runtime.outlet import STALL_TIMEOUT_MS
from pipelines.runtime.ticket import StageRequest, Ticket

Request = TypeVar("Request", bound=StageRequest)
In = TypeVar("In")
Out = TypeVar("Out")


class AsyncDuplexStage(LoopStage[Request, In, Out]):
    """Runs `run(request, inputs, ticket)`; `inputs` iterates what is pushed, until finish.

    An abort raises CancelledError inside `run` where it waits, or closes it where it yields.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Request, AsyncIterator[In], Ticket], AsyncIterator[Out]],
        *,
        output_limit: int = OUTPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        failure_code: str | None = None,
        lead: Lead[Out] | None = None,
    ) -> None:
        async def work(request: Request, stream: LoopStream[In, Out]) -> None:
            outputs = run(request, stream.inputs(), stream.ticket)
            try:
                async for output in outputs:
                    await stream.emit(output)
            finally:
                aclose = getattr(outputs, "aclose", None)
                if aclose is not None:
                    await aclose()

        super().__init__(
            name,
            work,
            output_limit=output_limit,
            stall_timeout_ms=stall_timeout_ms,
            failure_code=failure_code,
            lead=lead,
        )


class AsyncStage(AsyncDuplexStage[Request, None, Out]):
    """Runs `run(request, ticket)`, for stages that need nothing but the request."""

    def __init__(
        self,
        name: str,
        run: Callable[[Request, Ticket], AsyncIterator[Out]],
        *,
        output_limit: int = OUTPUT_LIMIT,
        stall_timeout_ms: int = STALL_TIMEOUT_MS,
        failure_code: str | None = None,
        lead: Lead[Out] | None = None,
    ) -> None:
        super().__init__(
            name,
            lambda request, _, ticket: run(request, ticket),
            output_limit=output_limit,
            stall_timeout_ms=stall_timeout_ms,
            failure_code=failure_code,
            lead=lead,
        )
