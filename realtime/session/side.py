"""Out-of-band responses: any number beside the conversation, each on a lane of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.deadlines import Due
from realtime.session.effects import CutLane
from realtime.session.ledger import Ledger
from realtime.session.notices import ResponseStatus
from realtime.session.reply_request import shape_response, start_reply
from realtime.session.response import Response
from realtime.session.speaking import NO_FIRST_OUTPUT

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.reply import Reply
    from realtime.session.settings import ResponseOptions

MOST_AT_ONCE = 16  # each one holds a request open on the language model


class SideResponses:
    """They know no turns, no holding and no idle time; speech never interrupts them."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._responses: dict[str, Response] = {}
        self._waiting: dict[str, ResponseOptions] = {}  # for the text of an item, by response

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._responses

    def __len__(self) -> int:
        return len(self._responses)

    def create(self, options: ResponseOptions, waits_for: frozenset[str]) -> None:
        ctx = self.ctx
        if len(self._responses) >= MOST_AT_ONCE:
            ctx.refuse(
                "too_many_responses",
                f"{MOST_AT_ONCE} out-of-band responses run already; wait until one is done.",
            )
            return
        response_id = ctx.ids.make("resp")
        response = Response(
            response_id,
            shape_response(ctx, options),
            f"side:{response_id}",
            0,
            Ledger(),
            waits_for=set(waits_for),
        )
        self._responses[response_id] = response
        response.create(ctx)
        if waits_for:
            self._waiting[response_id] = options
        else:
            self._start(response, options)
        self._await_output(response)

    def _start(self, response: Response, options: ResponseOptions) -> None:
        response.reply = start_reply(self.ctx, response.shape, options)

    def transcribed(self, item_id: str) -> None:
        """An item's text came; the prompts that missed it may be complete now."""
        for response_id in list(self._waiting):
            response = self._responses[response_id]
            response.waits_for.discard(item_id)
            if not response.waits_for:
                self._start(response, self._waiting.pop(response_id))

    def transcription_failed(self, item_id: str, code: str, message: str) -> None:
        for response_id in list(self._waiting):
            response = self._responses[response_id]
            if item_id in response.waits_for:
                response.fail(self.ctx, code, message)
                self._forget(response)

    def find(self, request: str) -> Reply | None:
        """The reply that a stage request belongs to."""
        for response in self._responses.values():
            if response.reply is not None and response.reply.request == request:
                return response.reply
        return None

    def progress(self, request: str) -> None:
        """A reply has more than before, or has ended."""
        response = self._by_request(request)
        if response is None or response.reply is None:
            return
        response.advance(self.ctx)
        self._await_output(response)
        self.settle(request)

    def settle(self, request: str) -> None:
        """Done when the generation has ended and all of it has left."""
        response = self._by_request(request)
        reply = response.reply if response else None
        if response and reply and reply.ending is not None and reply.is_drained:
            response.conclude(self.ctx)
            self._forget(response)

    def leave(self, request: str, samples: int) -> None:
        response = self._by_request(request)
        if response is not None:
            response.leave(self.ctx, samples)

    def cancel(self, response_id: str) -> None:
        response = self._responses[response_id]
        self._end(response)
        response.finish(self.ctx, ResponseStatus.CANCELLED, "client_cancelled")
        self._forget(response)

    def starve(self, response_id: str) -> None:
        response = self._responses.get(response_id)
        if response is None:
            return
        if response.reply is not None and not response.reply.is_used_up:
            self._await_output(response)
            return
        self._end(response)
        response.fail(
            self.ctx, NO_FIRST_OUTPUT, "The language model gave nothing for too long. Is it up?"
        )
        self._forget(response)

    def cancel_all(self) -> None:
        for response_id in list(self._responses):
            self.cancel(response_id)

    def _end(self, response: Response) -> None:
        if response.reply is not None:
            self.ctx.emit(
                CutLane(response.lane, response.epoch + 1, response.reply.request, fade_samples=0)
            )
            self.ctx.abort(response.reply.request)

    def _await_output(self, response: Response) -> None:
        at_ms = self.ctx.now_ms + self.ctx.policy.first_output_ms
        self.ctx.deadlines.arm(Due.STARVED, at_ms, response.id)

    def _forget(self, response: Response) -> None:
        self.ctx.deadlines.disarm(Due.STARVED, response.id)
        self._responses.pop(response.id, None)
        self._waiting.pop(response.id, None)

    def _by_request(self, request: str) -> Response | None:
        for response in self._responses.values():
            if response.reply is not None and response.reply.request == request:
                return response
        return None
