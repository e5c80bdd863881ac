"""The connection to an OpenAI-compatible server: its events, and all that goes wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from pipelines.stages.context_window import context_exceeded
from pipelines.stages.llm_openai_wire import (
    error_text,
    is_context_error,
    is_tool_error,
    retry_after_s,
)
from pipelines.types import StageError

LINE_LIMIT_BYTES = 1 << 20  # an event is some hundred bytes; a body without lines must not pile up
ERROR_LIMIT_BYTES = 8192  # as much of an error's body as can matter
DRAIN_TIMEOUT_S = 1.0  # the end of an answer comes with its last event, or is not worth waiting for
CONTEXT_STATUSES = (400, 413, 422, 500)  # with which servers refuse what is too long
TOOL_STATUSES = (400, 404, 422, 500, 501)  # with which they refuse tools
TOOLS_REFUSED = "llm_tools_refused"
RETRIED_STATUSES = (429, 500, 502, 503, 504)  # of a server that may do better in a moment
CONNECTION_LIMIT = 512  # more replies at once than one server process can speak
# Where users write the URL, for what is said to them.
URL_SETTING = "the model's url (stages.writer.url or PARLEY_LLM_URL)"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What clients are told of each failure: nothing of where the model is, and of what was said there.
TOLD = {
    "llm_unreachable": "cannot be reached",
    "llm_unauthorised": "does not let this server in",
    "llm_not_found": "was not found",
    "llm_rate_limited": "takes no more requests at present",
    "llm_server_error": "has failed",
    "llm_refused": "refused this request",
    TOOLS_REFUSED: "does not take the session's tools as they are: change them, or leave them out",
    "llm_nonsense": "gave an answer that cannot be read",
    "llm_broke_off": "broke the reply off",
    "llm_timeout": "did not answer in time",
}


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


class ChatClient:
    """Asks `/chat/completions` of one server. Raises StageError for a bad URL."""

    def __init__(self, options: OpenAIWriterOptions) -> None:
        self._options = options
        try:
            url = httpx.URL(options.base_url)
        except httpx.InvalidURL as error:
            raise self._bad_url(str(error)) from None
        if url.scheme not in ("http", "https") or not url.host:
            raise self._bad_url("it needs http:// or https:// and a host")
        root = url.raw_path.rstrip(b"/")
        self._url = url.copy_with(raw_path=root + b"/chat/completions")
        self._models_url = url.copy_with(raw_path=root + b"/models")
        # What is shown to users must not carry a password.
        self.shown_url = str(self._url.copy_with(username="", password=""))
        key = options.api_key
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(None, connect=options.connect_timeout_ms / 1000),
            limits=httpx.Limits(max_connections=CONNECTION_LIMIT),
            trust_env=url.host not in LOOPBACK,  # no proxy is asked for this machine
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def absence(self) -> StageError | None:
        """What is wrong if nobody answers there at present. Any answer will do."""
        try:
            async with asyncio.timeout(self._options.connect_timeout_ms / 1000):
                async with self._client.stream("GET", self._models_url):
                    return None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return self._unreachable(error)
        except TimeoutError:
            return self._silent()
        except httpx.HTTPError:
            return None

    async def events(self, body: Mapping[str, Any], deadline_s: float) -> AsyncGenerator[str]:
        """The data of each server-sent event. A request that fails early is tried once more."""
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
                        raise await self._status_error(response, has_tools="tools" in body)
                    async with aclosing(self._lines(response)) as lines:
                        async for data in lines:
                            has_begun = True
                            yield data
                return
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise self._unreachable(error) from None
            except httpx.PoolTimeout:
                raise self.error("llm_unreachable", "has no free connection left") from None
            except httpx.HTTPError as error:
                # A kept connection may have been closed by the server just before its use.
                if has_begun or is_last:
                    raise self.broke_off(str(error) or type(error).__name__) from None

    async def _lines(self, response: httpx.Response) -> AsyncGenerator[str]:
        kind = response.headers.get("content-type", "")
        rest = b""
        seen_event = False
        async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > LINE_LIMIT_BYTES:
                    raise self.nonsense(f"a line of more than {LINE_LIMIT_BYTES} bytes")
                for line in lines:
                    if (data := _data(line)) is not None:
                        seen_event = True
                        yield data
                if not seen_event and "html" in kind:
                    raise self.nonsense(f"a web page instead of a stream: {_text(piece)}")
        if (data := _data(rest)) is not None:
            yield data
        elif not seen_event:
            shown = _text(rest) or "an empty body"
            raise self.nonsense(f"{kind or 'something'} instead of a stream of events: {shown}")

    # ---- what can go wrong -------------------------------------------------------------------

    def _retry_delay(self, response: httpx.Response, deadline_s: float) -> float | None:
        delay_s = retry_after_s(response.headers)
        if delay_s is None:
            delay_s = self._options.retry_delay_ms / 1000
        fits = delay_s <= self._options.retry_after_limit_ms / 1000
        fits = fits and asyncio.get_running_loop().time() + delay_s < deadline_s
        return delay_s if fits else None

    async def _status_error(self, response: httpx.Response, *, has_tools: bool) -> StageError:
        body = b""
        # The status says enough, should its explanation come late, or never whole.
        with suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > ERROR_LIMIT_BYTES:
                        break
        text = body[:ERROR_LIMIT_BYTES].decode("utf-8", "replace")
        said = error_text(text)
        status = response.status_code
        if status in CONTEXT_STATUSES and is_context_error(text):
            return self.too_long(said)
        said = f"answered {status}" + (f": {said}" if said else "")
        if has_tools and status in TOOL_STATUSES and is_tool_error(text):
            advice = (
                "It does not take the session's tools as they are: have that server call tools (a "
                "flag at its start, or a model made for it), or take them out of the session."
            )
            return self.error(TOOLS_REFUSED, f"{said}. {advice}")
        match status:
            case 401 | 403:
                return self.error("llm_unauthorised", f"{said}. Check the model's API key.")
            case 404:
                model = self._options.model
                advice = f"Check that {URL_SETTING} ends where the API begins, often in /v1"
                return self.error(
                    "llm_not_found", f"{said}. {advice}, and that {model} is a model there."
                )
            case 429:
                advice = "Wait, raise the limit there, or use another model."
                return self.error("llm_rate_limited", f"{said}. {advice}")
            case _ if status >= 500:
                return self.error("llm_server_error", f"{said}. See that server's log.")
            case _ if status >= 400:
                return self.error("llm_refused", f"{said}. Check the model's settings.")
        return self.nonsense(f"the status {status}")

    def _unreachable(self, error: httpx.HTTPError) -> StageError:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, socket.gaierror):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            host = self._url.host
            what = f"cannot be reached: the host name {host} is unknown. Check {URL_SETTING}."
        elif isinstance(error, httpx.ConnectTimeout):
            return self._silent()
        else:
            what = f"cannot be reached ({error}). Check {URL_SETTING}, and that the server runs."
        return self.error("llm_unreachable", what)

    def _silent(self) -> StageError:
        what = f"cannot be reached: it does not answer. Check {URL_SETTING} and the network."
        return self.error("llm_unreachable", what)

    def timeout(self, after_s: float, *, started: bool) -> StageError:
        what = "stopped writing in the middle of a reply" if started else "wrote nothing"
        advice = "The server is overloaded, or the model is too slow for a conversation."
        return self.error("llm_timeout", f"{what} (after {after_s:.1f} s). {advice}")

    def broke_off(self, cause: str) -> StageError:
        return self.error("llm_broke_off", f"broke the reply off ({cause}). See its log.")

    def nonsense(self, what: str) -> StageError:
        advice = f"Check that {URL_SETTING} is an OpenAI-compatible API."
        return self.error("llm_nonsense", f"sent {what}. {advice}")

    def _bad_url(self, what: str) -> StageError:
        shown = self._options.base_url.rpartition("@")[2]
        return StageError("llm_misconfigured", f"{shown!r} is wrong as {URL_SETTING}: {what}.")

    def error(self, code: str, what: str) -> StageError:
        told = f"The language model {TOLD[code]}. The server's log says why."
        return StageError(code, told, self._detail(what))

    def too_long(self, said: str) -> StageError:
        return context_exceeded("so its server says", self._detail(f"finds this too long: {said}"))

    def _detail(self, what: str) -> str:
        return f"The language model at {self.shown_url} {what}"


def _data(line: bytes) -> str | None:
    """The data of an event's line; None for comments, other fields and what is blank."""
    if not line.startswith(b"data:"):
        return None
    return line[5:].decode("utf-8", "replace").strip() or None


def _text(body: bytes) -> str:
    return error_text(body[:ERROR_LIMIT_BYTES].decode("utf-8", "replace"))
