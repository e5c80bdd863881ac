"""One llama.cpp model in this process, driven in quanta that another stage can come between.

The server inside xllamacpp decodes in a thread of its own, whether its callback returns or not: a
whole reply asked for at once would hold the cores until its end. So a prompt is evaluated, and a
reply decoded, a few tokens per call; the key-value cache makes the seams free, because each call
goes on where the last one ended. Between two calls the engine pauses: there the CPU is given away,
and there an abort is seen.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import xllamacpp

PREFILL_TARGET_MS = 100  # of one quantum of prefill: an abort is to end it within 150 ms
PREFILL_MIN_TOKENS = 8  # below, a call costs more than its tokens
PREFILL_MAX_TOKENS = 64  # of one quantum, and of a batch, for machines that are fast enough
PREFILL_FIRST_TOKENS = 16  # until the speed of the machine is known
DECODE_TOKENS = 4  # of one quantum: 70 ms on two cores, at an overhead of 2 ms
DECODE_MAX_TOKENS = 32  # when a character needs more tokens than a quantum has
REMEMBERED_PROMPTS = 16  # of which the cache may still hold the beginning
PROMPT_CACHE_MIB = 512  # of memory for prompts of other sessions: about 40 of 1000 tokens
SPEED_WEIGHT = 0.3  # of a new measurement of the speed of prefill
LOOPBACK_TIMEOUT_S = 30.0  # the server answers in a millisecond, unless it starves


class EngineFailed(Exception):
    """llama.cpp refused or failed a call; the message is its own."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How a reply ended. `hit_limit`: at its token limit instead of by itself."""

    hit_limit: bool
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class LlamaEngine:
    """Blocking; several threads may call it, then their quanta take turns in the one slot."""

    def __init__(self, model: Path, threads: int, context_tokens: int) -> None:
        """Load the model. Raises EngineFailed."""
        key = secrets.token_urlsafe(24)  # the server also listens on loopback: for us alone
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = context_tokens
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = PREFILL_MAX_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.api_keys = [key]
        params.ui = False
        params.verbosity = 0
        try:
            self._server = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]
        except Exception as error:  # the binding raises whatever llama.cpp throws
            raise EngineFailed(str(error)) from error
        self._http = httpx.Client(
            base_url=self._server.listening_address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=LOOPBACK_TIMEOUT_S,
            trust_env=False,
        )
        self._lock = threading.Lock()
        self._evaluated: deque[list[int]] = deque(maxlen=REMEMBERED_PROMPTS)
        self._prefill_ms_per_token: float | None = None

    def close(self) -> None:
        self._http.close()
        del self._server

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> str:
        """Messages in the form of the OpenAI API to a prompt, by the model's own template."""
        body: dict[str, Any] = {"messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        return self._ask("/apply-template", body)["prompt"]

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Text to token ids. special: whether markers such as <|im_start|> become one token."""
        body = {"content": text, "add_special": special, "parse_special": special}
        return self._ask("/tokenize", body)["tokens"]

    def complete(
        self,
        prompt: Sequence[int],
        limit_tokens: int,
        sampling: Mapping[str, Any],
        emit: Callable[[str], None],
        pause: Callable[[], None],
        is_aborted: Callable[[], bool],
        grammar: str | None = None,
    ) -> Completion:
        """Evaluate `prompt`, then write at most `limit_tokens`.

        emit: gets the text as it is written; pause: called between quanta. What either raises ends
        the completion and passes through. A reply that follows a grammar is written in one quantum,
        since the state of a grammar does not outlive a call. `is_aborted` is asked at each token;
        once it says yes, `pause` must raise.
        limit_tokens 0 evaluates the prompt, to have it in the cache.
        Raises EngineFailed.
        """
        tokens = list(prompt)
        cached = self._prefill(tokens, pause, is_aborted, whole=limit_tokens == 0)
        produced = 0
        hit_limit = True
        text = ""
        quantum = DECODE_TOKENS if grammar is None else limit_tokens
        extra = {} if grammar is None else {"grammar": grammar}
        while produced < limit_tokens:
            pause()
            burst = _Burst(is_aborted, emit)
            asked = min(quantum, limit_tokens - produced)
            self._call(tokens, asked, {**sampling, **extra}, burst)
            cached = burst.cached if cached is None else cached
            produced += burst.output_tokens
            text += burst.text
            if burst.stopped:
                hit_limit = False
                break
            if len(burst.ids) == burst.output_tokens:
                tokens += burst.ids
                quantum = DECODE_TOKENS
            else:
                # The quantum ended inside a character: its tokens are not told, so it is begun
                # again from the text, with more room if not even one character was finished.
                tokens = [*prompt, *self.tokenize(text)]
                quantum = DECODE_TOKENS if burst.text else min(quantum * 2, DECODE_MAX_TOKENS)
            self._remember(tokens[:-1])  # the last one was drawn, but not yet evaluated
        return Completion(hit_limit, len(prompt), cached or 0, produced)

    def _prefill(
        self,
        tokens: list[int],
        pause: Callable[[], None],
        is_aborted: Callable[[], bool],
        *,
        whole: bool,
    ) -> int | None:
        """Evaluate `tokens` but for a last quantum, which the first call of decoding takes along.

        Returns how much of them the cache had; None: there was nothing to call for.
        """
        position = self._known_prefix(tokens)
        cached: int | None = None
        while len(tokens) - position > (0 if whole else self._quantum()):
            pause()
            end = min(len(tokens), position + self._quantum())
            burst = _Burst(is_aborted, _ignore, expected=position)
            self._call(tokens[:end], 0, {}, burst)
            if cached is None:
                cached = burst.cached
            # A cache that holds less than expected ended the call; go on from what it holds.
            position = burst.cached if burst.cache_fell_short else end
            self._remember(tokens[:position])
        return cached

    def _call(
        self, tokens: list[int], limit_tokens: int, sampling: Mapping[str, Any], burst: _Burst
    ) -> None:
        body = {
            **sampling,
            "prompt": tokens,
            "n_predict": limit_tokens,
            "stream": True,
            "cache_prompt": True,
            "return_progress": True,
            # The only way in which the ids of the tokens are told.
            "n_probs": 1,
            "post_sampling_probs": True,
        }
        self._server.handle_completions(body, burst.receive)
        burst.raise_error()
        if burst.prefill_tokens >= PREFILL_MIN_TOKENS:
            measured = burst.prefill_ms / burst.prefill_tokens
            known = self._prefill_ms_per_token
            if known is not None:
                measured = known + SPEED_WEIGHT * (measured - known)
            self._prefill_ms_per_token = measured

    def _quantum(self) -> int:
        if self._prefill_ms_per_token is None:
            return PREFILL_FIRST_TOKENS
        fitting = int(PREFILL_TARGET_MS / self._prefill_ms_per_token)
        return max(PREFILL_MIN_TOKENS, min(PREFILL_MAX_TOKENS, fitting))

    def _known_prefix(self, tokens: list[int]) -> int:
        with self._lock:
            known = max((_common(tokens, other) for other in self._evaluated), default=0)
        return min(known, len(tokens) - 1)

    def _remember(self, tokens: list[int]) -> None:
        with self._lock:
            # A sequence that the new one continues is of no more use.
            kept = [other for other in self._evaluated if _common(tokens, other) < len(other)]
            self._evaluated = deque([*kept, tokens], maxlen=REMEMBERED_PROMPTS)

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._http.post(path, json=body)
            result = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise EngineFailed(f"{path}: {error}") from error
        if answer.status_code != httpx.codes.OK:
            raise EngineFailed(f"{path}: {result.get('error', result)}")
        return result


class _Burst:
    """The chunks of one call, as the server hands them over."""

    def __init__(
        self, is_aborted: Callable[[], bool], emit: Callable[[str], None], expected: int = 0
    ) -> None:
        self._is_aborted = is_aborted
        self._emit = emit
        self._expected = expected
        self._error: BaseException | None = None
        self.text = ""
        self.ids: list[int] = []
        self.output_tokens = 0
        self.stopped = False
        self.cached = 0
        self.cache_fell_short = False
        self.prefill_tokens = 0
        self.prefill_ms = 0.0

    def receive(self, chunk: Any) -> bool:
        """True ends the call. Never raises: the server swallows what its callback raises."""
        try:
            for part in chunk if isinstance(chunk, list) else [chunk]:
                self._read(part)
        except BaseException as error:
            self._error = error
        return self._error is not None or self.cache_fell_short or self._is_aborted()

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, part: Mapping[str, Any]) -> None:
        if "error" in part:
            raise EngineFailed(str(part["error"].get("message", part["error"])))
        progress = part.get("prompt_progress")
        if progress is not None:
            self.cached = progress["cache"]
            # The server evaluates the last token of a prompt that it knows whole once more.
            self.cache_fell_short = self.cached < min(self._expected, progress["total"] - 1)
        timings = part.get("timings")
        if timings is not None:
            self.prefill_tokens = timings["prompt_n"]
            self.prefill_ms = timings["prompt_ms"]
            self.cached = timings["cache_n"]
        usage = part.get("usage")
        if usage is not None:
            self.output_tokens = usage["completion_tokens"]
        for choice in part.get("choices", ()):
            self.stopped = choice.get("finish_reason") == "stop"
            probabilities = choice.get("logprobs") or {}
            self.ids += [entry["id"] for entry in probabilities.get("content", ())]
            if choice["text"]:
                self.text += choice["text"]
                self._emit(choice["text"])


def _ignore(text: str) -> None:
    """Prefill writes nothing."""


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two sequences begin with in common."""
    shorter = min(len(left), len(right))
    if left[:shorter] == right[:shorter]:
        return shorter
    return next(index for index in range(shorter) if left[index] != right[index])
