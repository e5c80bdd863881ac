"""One llama.cpp model in this process, driven in quanta that another stage can come between.

The server inside xllamacpp decodes in a thread of its own, whether its callback returns or not: a
whole reply asked for at once would hold the cores until its end. So a prompt is evaluated, and a
reply decoded, a few tokens per call; the key-value cache makes the seams free, because each call
goes on where the last one ended. Between two calls the engine pauses: there the CPU is given away,
and there an abort is seen.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pipelines.stages.openmp import import_sleeping

BATCH_TOKENS = 16  # of prefill: 100 ms on two cores; four times as many are 15 % faster per token
BATCH_MIN_TOKENS = 8  # below, a token costs more than twice as much
BATCH_TARGET_MS = 110  # of one quantum of prefill: an abort is to end it within 150 ms
DECODE_TOKENS = 4  # of one quantum: 90 ms on two cores, at an overhead of 2 ms
DECODE_MAX_TOKENS = 32  # when a character needs more tokens than a quantum has
PROMPT_CACHE_MIB = 512  # of memory for prompts of other sessions: about 40 of 1000 tokens
SAME_PROMPT_SHARE = 0.8  # a prompt that shares less with the last one may be in the cache
REUSE_MIN_TOKENS = 32  # a run of tokens that is moved in the cache when turns before it are dropped
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
        xllamacpp = import_sleeping("xllamacpp")
        key = secrets.token_urlsafe(24)  # the server also listens on loopback: for us alone
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = context_tokens
        # Nothing is left to be fitted, and to find that out the model would be loaded twice, with
        # the interpreter's lock held: half a second more in which the server answers nobody.
        params.fit_params = False
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.cpuparams_batch.n_threads = threads
        # One token is bound by memory. Half of the threads write it nearly as fast (23 instead of
        # 18 ms on two cores), and do not wait for a core on which somebody else works.
        params.cpuparams.n_threads = max(1, threads // 2)
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.slot_prompt_similarity = SAME_PROMPT_SHARE
        params.n_cache_reuse = REUSE_MIN_TOKENS
        params.api_keys = [key]
        params.prefill_assistant = False  # who spoke last has finished: the reply is a new message
        params.ui = False
        params.verbosity = 0
        try:
            self._server = xllamacpp.Server(params)
        except Exception as error:  # the binding raises whatever llama.cpp throws
            raise EngineFailed(str(error)) from error
        self._http = httpx.Client(
            base_url=self._server.listening_address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=LOOPBACK_TIMEOUT_S,
            trust_env=False,
        )
        self._prefill_ms_per_token = 0.0

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

    def tokenize(self, text: str, *, special: bool = False, goes_on: bool = False) -> list[int]:
        """Text to token ids. special: whether markers such as <|im_start|> become one token.

        goes_on: the text stands behind other text, so it has no mark of a beginning.
        """
        body = {"content": text, "add_special": special and not goes_on, "parse_special": special}
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
        is_enough: Callable[[], bool] = lambda: False,
        note: Callable[[int, int, int], None] = lambda read, cached, written: None,
    ) -> Completion:
        """Evaluate `prompt`, then write at most `limit_tokens`.

        emit: gets the text as it is written; pause: called between quanta. What either raises ends
        the completion and passes through. A reply that follows a grammar is written in one quantum,
        since the state of a grammar does not outlive a call. `is_aborted` is asked at each token;
        once it says yes, `pause` must raise.
        limit_tokens 0 evaluates the prompt, to have it in the cache. is_enough: asked between
        quanta; the reply then ends as if by itself. note: is told after each quantum how many
        tokens of the prompt have been read, how many of them were in the cache, and how many have
        been written.
        Raises EngineFailed.
        """
        tokens = list(prompt)
        produced = 0
        hit_limit = True
        text = ""
        cached = -1  # not known yet
        quantum = DECODE_TOKENS if grammar is None else limit_tokens
        options = dict(sampling) if grammar is None else {**sampling, "grammar": grammar}
        while True:
            pause()
            burst = _Burst(is_aborted, emit if limit_tokens else _ignore)
            if cached < 0:
                burst.most_tokens = self._batch()
            self._call(tokens, min(quantum, limit_tokens - produced), options, burst)
            cached = burst.cached if cached < 0 else cached
            if burst.oversized:
                for read in self._prefill(tokens, burst.cached + BATCH_TOKENS, pause, is_aborted):
                    note(read, cached, 0)
                continue
            if limit_tokens == 0:
                break
            produced += burst.output_tokens
            note(len(prompt), cached, produced)
            text += burst.text
            if burst.stopped or is_enough():
                hit_limit = False
                break
            if produced >= limit_tokens:
                break
            if len(burst.ids) == burst.output_tokens:
                tokens += burst.ids
                quantum = DECODE_TOKENS
            else:
                # The quantum ended inside a character: its tokens are not told, so it is begun
                # again from the text, with more room if not even one character was finished.
                tokens = [*prompt, *self.tokenize(text)]
                quantum = DECODE_TOKENS if burst.text else min(quantum * 2, DECODE_MAX_TOKENS)
        return Completion(hit_limit, len(prompt), cached, produced)

    def _prefill(
        self,
        tokens: list[int],
        position: int,
        pause: Callable[[], None],
        is_aborted: Callable[[], bool],
    ) -> Iterator[int]:
        """Evaluate `tokens` from `position` on, but for the last quantum; yields how far it is."""
        while len(tokens) - position > self._batch():
            pause()
            position += self._batch()
            self._call(tokens[:position], 0, {}, _Burst(is_aborted, _ignore))
            yield position

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
        if burst.prefill_tokens >= BATCH_MIN_TOKENS:
            measured = burst.prefill_ms / burst.prefill_tokens
            known = self._prefill_ms_per_token or measured
            self._prefill_ms_per_token = known + SPEED_WEIGHT * (measured - known)

    def _batch(self) -> int:
        """How many tokens of prefill make one quantum, on this machine, under its present load."""
        if not self._prefill_ms_per_token:
            return BATCH_TOKENS
        fitting = int(BATCH_TARGET_MS / self._prefill_ms_per_token)
        return max(BATCH_MIN_TOKENS, min(BATCH_TOKENS, fitting))

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._http.post(path, json=body)
            result = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise EngineFailed(f"{path}: {error}") from error
        if answer.status_code != httpx.codes.OK:
            raise EngineFailed(f"{path}: {result.get('error', result)}")
        return result


def grammar_of(schema: Mapping[str, Any]) -> str:
    """The grammar of JSON texts that fit a JSON Schema. Raises EngineFailed."""
    try:
        return import_sleeping("xllamacpp").json_schema_to_grammar(dict(schema))
    except Exception as error:  # the binding raises whatever llama.cpp throws
        raise EngineFailed(str(error)) from error


class _Burst:
    """The chunks of one call, as the server hands them over."""

    def __init__(self, is_aborted: Callable[[], bool], emit: Callable[[str], None]) -> None:
        self._is_aborted = is_aborted
        self._emit = emit
        self._error: BaseException | None = None
        self.text = ""
        self.ids: list[int] = []
        self.output_tokens = 0
        self.stopped = False
        self.cached = 0
        self.most_tokens: int | None = None  # a call with more to evaluate is ended: `oversized`
        self.oversized = False
        self.prefill_tokens = 0
        self.prefill_ms = 0.0

    def receive(self, chunk: Any) -> bool:
        """True ends the call. Never raises: the server swallows what its callback raises."""
        try:
            for part in chunk if isinstance(chunk, list) else [chunk]:
                self._read(part)
        except BaseException as error:
            self._error = error
        return self._error is not None or self.oversized or self._is_aborted()

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, part: Mapping[str, Any]) -> None:
        if "error" in part:
            raise EngineFailed(str(part["error"].get("message", part["error"])))
        progress = part.get("prompt_progress")
        if progress is not None:
            self.cached = progress["cache"]
            to_evaluate = progress["total"] - self.cached
            self.oversized = self.most_tokens is not None and to_evaluate > self.most_tokens
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
