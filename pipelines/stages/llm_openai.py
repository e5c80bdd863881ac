"""A language model behind any OpenAI-compatible URL."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from pipelines.ports import Progress
from pipelines.runtime.async_stage import AsyncStage
from pipelines.runtime.ticket import Ticket
from pipelines.stages.llm_openai_wire import (
    Answer,
    Nonsense,
    Refusal,
    error_text,
    request_body,
    retry_after_s,
)
from pipelines.types import (
    Finished,
    FinishReason,
    StageError,
    TextDelta,
    WriteOutput,
    WriteRequest,
)

LINE_LIMIT_BYTES = 1 << 20  # an event is some hundred bytes; a body without lines must not pile up
ERROR_LIMIT_BYTES = 8192  # as much of an error's body as can matter
DRAIN_TIMEOUT_S = 1.0  # the end of an answer comes with its last event, or is not worth waiting for
RETRIED_STATUSES = (429, 500, 502, 503, 504)  # of a server that may do better in a moment
CONNECTION_LIMIT = 512  # more replies at once than one server process can speak
# Where users write the URL, for what is said to them.
URL_SETTING = "the model's url (stages.writer.url or PARLEY_LLM_URL)"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class OpenAIWriterOptions:
    """base_url: up to and without `/chat/completions`, such as `http://127.0.0.1:8000/v1`.

    extra_body: merged into each request; None removes a field.
    """

    base_url: str
    model: str
    api_key: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    connect_timeout_ms: int = 3_000  # a host that is there answers in a round trip
    first_token_timeout_ms: int = 15_000  # a long prompt on a busy server, a retry included
    token_timeout_ms: int = 8_000  # between two tokens: the caller hears silence
    reply_timeout_ms: int = 180_000  # the whole reply
    retry_after_limit_ms: int = 2_000  # a wait that a caller bears once
    retry_delay_ms: int = 300  # before a second try, if the server names no other time
    output_limit_chars: int = 32_768  # more than half an hour of speech


class OpenAIWriter(AsyncStage[WriteRequest, WriteOutput]):
    """Streams `/chat/completions`. Codes: llm_unreachable, llm_unauthorised, llm_not_found,
    llm_rate_limited, llm_refused, llm_server_error, llm_nonsense, llm_broke_off, llm_timeout.
    """

    def __init__(self, options: OpenAIWriterOptions, name: str = "llm") -> None:
        super().__init__(name, self._write, failure_code="llm_failed")
        self._options = options
        self._client: httpx.AsyncClient | None = None

    async def start(self, progress: Progress) -> None:
        """Open the pool; the server may come up later. Raises StageError for a bad URL."""
        try:
            url = httpx.URL(self._options.base_url)
        except httpx.InvalidURL as error:
            raise self._bad_url(str(error)) from None
        if url.scheme not in ("http", "https") or not url.host:
            raise self._bad_url("it needs http:// or https:// and a host")
        self._url = url.copy_with(raw_path=url.raw_path.rstrip(b"/") + b"/chat/completions")
        # What is shown to users must not carry a password.
        self._shown_url = str(self._url.copy_with(username="", password=""))
        key = self._options.api_key
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(None, connect=self._options.connect_timeout_ms / 1000),
            limits=httpx.Limits(max_connections=CONNECTION_LIMIT),
            trust_env=url.host not in LOOPBACK,  # no proxy is asked for this machine
        )
        await super().start(progress)
        progress(f"{self.name}: {self._options.model} at {self._shown_url}")

    async def close(self) -> None:
        await super().close()
        if self._client is not None:
            await self._client.aclose()

    # ---- one request -------------------------------------------------------------------------

    async def _write(self, request: WriteRequest, ticket: Ticket) -> AsyncIterator[WriteOutput]:
        if request.max_output_tokens == 0:
            yield Finished(FinishReason.LENGTH)  # its cache is its own affair
            return
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        answer = Answer(request.request_id)
        chars = 0
        deadline_s = began_s + self._options.first_token_timeout_ms / 1000
        last_s = began_s + self._options.reply_timeout_ms / 1000
        async with aclosing(self._events(request, deadline_s)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(min(deadline_s, last_s)):
                        data = await anext(events, None)
                except TimeoutError:
                    if answer.reason is not None:
                        data = None  # all is said: a server may leave the end of the stream out
                        break
                    raise self._timeout(loop.time() - began_s, started=chars > 0) from None
                if data is None or data == "[DONE]":
                    break
                for output in self._read(answer, data):
                    text = output.text if isinstance(output, TextDelta) else output.arguments
                    chars += len(text)
                    yield output
                if chars > self._options.output_limit_chars:
                    answer.reason = FinishReason.LENGTH
                    break
                if answer.reason is not None:
                    deadline_s = min(deadline_s, loop.time() + DRAIN_TIMEOUT_S)
                elif answer.alive:
                    deadline_s = loop.time() + self._options.token_timeout_ms / 1000
            if data is None and answer.reason is None:
                raise self._broke_off("it ended in the middle")
            for output in answer.rest():
                yield output
            yield Finished(answer.ending, answer.usage)
            if data == "[DONE]":
                await self._drain(events)

    @staticmethod
    async def _drain(events: AsyncGenerator[str]) -> None:
        """An answer that is read to its end leaves its connection to the next request."""
        with suppress(TimeoutError, StageError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                async for _ in events:
                    pass

    def _read(self, answer: Answer, data: str) -> list[Any]:
        try:
            return list(answer.read(data))
        except Nonsense as nonsense:
            raise self._nonsense(str(nonsense)) from None
        except Refusal as refusal:
            raise self._error("llm_server_error", f"reports an error: {refusal}") from None

    async def _events(self, request: WriteRequest, deadline_s: float) -> AsyncGenerator[str]:
        """The data of each server-sent event. A request that fails early is tried once more."""
        assert self._client is not None
        body = request_body(request, self._options.model, self._options.extra_body)
        for is_last in (False, True):
            has_begun = False
            try:
                async with self._client.stream("POST", self._url, json=body) as response:
                    if response.status_code in RETRIED_STATUSES and not is_last:
                        delay_s = self._retry_delay(response, deadline_s)
                        if delay_s is not None:
                            await asyncio.sleep(delay_s)
                            continue
                    if response.status_code != 200:
                        raise await self._status_error(response)
                    async with aclosing(self._lines(response)) as lines:
                        async for data in lines:
                            has_begun = True
                            yield data
                return
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise self._unreachable(error) from None
            except httpx.PoolTimeout:
                raise self._error("llm_unreachable", "has no free connection left") from None
            except httpx.HTTPError as error:
                # A kept connection may have been closed by the server just before its use.
                if has_begun or is_last:
                    raise self._broke_off(str(error) or type(error).__name__) from None

    async def _lines(self, response: httpx.Response) -> AsyncGenerator[str]:
        kind = response.headers.get("content-type", "")
        rest = b""
        seen_event = False
        async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > LINE_LIMIT_BYTES:
                    raise self._nonsense(f"a line of more than {LINE_LIMIT_BYTES} bytes")
                for line in lines:
                    if (data := _data(line)) is not None:
                        seen_event = True
                        yield data
                if not seen_event and "html" in kind:
                    raise self._nonsense(f"a web page instead of a stream: {_text(piece)}")
        if (data := _data(rest)) is not None:
            yield data
        elif not seen_event:
            shown = _text(rest) or "an empty body"
            raise self._nonsense(f"{kind or 'something'} instead of a stream of events: {shown}")

    # ---- what can go wrong -------------------------------------------------------------------

    def _retry_delay(self, response: httpx.Response, deadline_s: float) -> float | None:
        delay_s = retry_after_s(response.headers)
        if delay_s is None:
            delay_s = self._options.retry_delay_ms / 1000
        fits = delay_s <= self._options.retry_after_limit_ms / 1000
        fits = fits and asyncio.get_running_loop().time() + delay_s < deadline_s
        return delay_s if fits else None

    async def _status_error(self, response: httpx.Response) -> StageError:
        body = b""
        # The status says enough, should its explanation come late, or never whole.
        with suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > ERROR_LIMIT_BYTES:
                        break
        said = error_text(body[:ERROR_LIMIT_BYTES].decode("utf-8", "replace"))
        status = response.status_code
        said = f"answered {status}" + (f": {said}" if said else "")
        match status:
            case 401 | 403:
                return self._error("llm_unauthorised", f"{said}. Check the model's API key.")
            case 404:
                model = self._options.model
                advice = f"Check that {URL_SETTING} ends where the API begins, often in /v1"
                return self._error(
                    "llm_not_found", f"{said}. {advice}, and that {model} is a model there."
                )
            case 429:
                advice = "Wait, raise the limit there, or use another model."
                return self._error("llm_rate_limited", f"{said}. {advice}")
            case _ if status >= 500:
                return self._error("llm_server_error", f"{said}. See that server's log.")
            case _ if status >= 400:
                return self._error("llm_refused", f"{said}. Check the model's settings.")
        return self._nonsense(f"the status {status}")

    def _unreachable(self, error: httpx.HTTPError) -> StageError:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, socket.gaierror):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            host = self._url.host
            what = f"cannot be reached: the host name {host} is unknown. Check {URL_SETTING}."
        elif isinstance(error, httpx.ConnectTimeout):
            what = f"cannot be reached: it does not answer. Check {URL_SETTING} and the network."
        else:
            what = f"cannot be reached ({error}). Check {URL_SETTING}, and that the server runs."
        return self._error("llm_unreachable", what)

    def _timeout(self, after_s: float, *, started: bool) -> StageError:
        what = "stopped writing in the middle of a reply" if started else "wrote nothing"
        advice = "The server is overloaded, or the model is too slow for a conversation."
        return self._error("llm_timeout", f"{what} (after {after_s:.1f} s). {advice}")

    def _broke_off(self, cause: str) -> StageError:
        return self._error("llm_broke_off", f"broke the reply off ({cause}). See its log.")

    def _nonsense(self, what: str) -> StageError:
        advice = f"Check that {URL_SETTING} is an OpenAI-compatible API."
        return self._error("llm_nonsense", f"sent {what}. {advice}")

    def _bad_url(self, what: str) -> StageError:
        shown = self._options.base_url.rpartition("@")[2]
        return StageError("llm_misconfigured", f"{shown!r} is wrong as {URL_SETTING}: {what}.")

    def _error(self, code: str, what: str) -> StageError:
        return StageError(code, f"The language model at {self._shown_url} {what}")


def _data(line: bytes) -> str | None:
    """The data of an event's line; None for comments, other fields and what is blank."""
    if not line.startswith(b"data:"):
        return None
    return line[5:].decode("utf-8", "replace").strip() or None


def _text(body: bytes) -> str:
    return error_text(body[:ERROR_LIMIT_BYTES].decode("utf-8", "replace"))
