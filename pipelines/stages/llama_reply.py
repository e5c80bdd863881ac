"""One reply of a small local model, words and calls.

It is written in passes, of which each goes on in the cache where the last one ended: free text
until a call begins, then the choice of a tool, then its arguments, which a grammar keeps inside the
tool's schema. So the weakest model makes no call that is none.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pipelines.stages.llama_calls import CallWatch, closing
from pipelines.stages.llama_engine import LlamaEngine, grammar_of
from pipelines.stages.llama_grammar import guided, is_exact
from pipelines.stages.llama_tools import plain
from pipelines.stages.tool_schema import BadSchema, invalid_call, parameters_of, refuse_schema
from pipelines.types import TextDelta, ToolCallDelta, ToolSpec, Usage, UsageSoFar, WriteOutput

MOST_CALLS = 8  # in one reply: a small model may repeat itself for ever
MOST_TRIES = 3  # at arguments that no grammar can hold to their schema
MOST_YIELDS = 3  # of one call's arguments to whoever is more urgent: then they are written
PIECES_TOLD = 4  # of a call, between two signs of life: as often as words have them
_ANY_OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": True}


class _NotHeld(Exception):
    """The model writes something else than its grammar allows: the engine has dropped it."""


class _Outranked(Exception):
    """Somebody more urgent waits, and nobody has been told anything yet."""


class _LimitReached(Exception):
    """The reply has as many tokens as it may have."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What holds for every pass: see `LlamaEngine.complete`.

    is_outranked: whether somebody more urgent waits. is_draft: whether nobody sees the reply yet.
    """

    sampling: Mapping[str, Any]
    pause: Callable[[], None]
    is_aborted: Callable[[], bool]
    is_outranked: Callable[[], bool] = lambda: False
    is_draft: Callable[[], bool] = lambda: False


class LlamaReply:
    """Writes one reply behind `prompt`.

    before: what was used for it already. answered: calls, as `llama_tools.answered` gives them,
    that must not be made again. hit_limit: whether it ended at its limit of tokens. has_repeated:
    whether it ended because the model wanted nothing but what it has been told.
    """

    def __init__(
        self,
        engine: LlamaEngine,
        prompt: list[int],
        limit_tokens: int,
        pace: Pace,
        emit: Callable[[WriteOutput], None],
        before: Usage = Usage(),  # noqa: B008 (frozen)
        answered: Set[tuple[str, str]] = frozenset(),
    ) -> None:
        self._engine = engine
        self._before = before
        self._answered = answered
        self._tokens = prompt  # all that the next pass goes on from
        self._limit_tokens = limit_tokens
        self._pace = pace
        self._emit = emit
        self._made: list[tuple[str, str]] = []  # name and arguments of each call
        self._input_tokens = len(prompt)
        self._cached_tokens: int | None = None
        self._output_tokens = 0
        self._known: Collection[str] = ()
        self._is_cut = False  # the last call, in the middle
        self.hit_limit = False
        self.has_repeated = False

    @property
    def has_called(self) -> bool:
        return bool(self._made)

    @property
    def usage(self) -> Usage:
        cached_tokens = min(self._cached_tokens or 0, self._input_tokens)
        own = Usage(self._input_tokens, cached_tokens, self._output_tokens)
        return self._before.plus(own)

    def read(self) -> None:
        """Only have the prompt in the cache; nobody asks what that has used until it is read."""
        self._pass(lambda text: None, limit_tokens=0)

    def write(
        self,
        tools: Sequence[ToolSpec],
        say: Callable[[str], None],
        is_enough: Callable[[], bool],
        *,
        must_call: bool,
        tag: str,
        may_repeat: bool,
        known: Collection[str] | None,
    ) -> None:
        """Words for `say`, and calls of these tools, if any.

        must_call: a call, and nothing else. tag: what the model writes before a call of its own
        accord. may_repeat: whether there may be more than one call. is_enough: ends the words.
        known: the tools that the model may begin to call, be they among `tools` or not; a call
        that cannot be made is neither made nor said. None: it knows nothing of calls.
        Raises EngineFailed, and StageError for a call that cannot be made.
        """
        self._known = known or ()
        try:
            is_watched = known is not None
            opening = tag if must_call else self._talk(say, is_enough, is_watched=is_watched)
            while opening is not None and tools:
                if not self._call(tools, opening, must_call=must_call):
                    return
                self._put("}" + closing(opening))
                if not may_repeat or len(self._made) == MOST_CALLS:
                    return
                opening = self._look_for_call()
        except _LimitReached:
            # A call that has hardly begun takes nothing from those that are whole.
            self.hit_limit = self._is_cut or not self._made

    # ---- words -------------------------------------------------------------------------------

    def _talk(
        self, say: Callable[[str], None], is_enough: Callable[[], bool], *, is_watched: bool
    ) -> str | None:
        """Words, up to the opening of a call or the end."""
        watch = CallWatch(self._known)
        said = ""

        def hear(text: str) -> None:
            nonlocal said
            text = watch.feed(text) if is_watched else text
            said += text
            say(text)

        try:
            self._pass(hear, is_enough=lambda: is_enough() or watch.opening is not None)
        except _LimitReached:
            if watch.opening is None:
                say(watch.rest())
            raise
        if watch.opening is None:
            say(watch.rest())
            return None
        self._tokens += self._engine.tokenize(said)
        return watch.opening

    def _look_for_call(self) -> str | None:
        """Whether another call follows; words behind a call answer what nobody has said yet."""
        watch = CallWatch(self._known)
        strayed = False

        def hear(text: str) -> None:
            nonlocal strayed
            strayed |= bool(watch.feed(text).strip())

        self._pass(hear, is_enough=lambda: strayed or watch.opening is not None)
        return None if strayed else watch.opening

    # ---- calls -------------------------------------------------------------------------------

    def _call(self, tools: Sequence[ToolSpec], opening: str, *, must_call: bool) -> bool:
        """Write one call. False: it is one that was made already, so nothing more will come."""
        self._put(f'{opening}{{"name": ')
        tool = tools[0] if len(tools) == 1 else self._choose(tools)
        self._put(f'{json.dumps(tool.name, ensure_ascii=False)}, "arguments": ')
        try:
            schema = parameters_of(tool).schema
        except BadSchema as error:
            if must_call:
                raise refuse_schema(tool, error) from None
            schema = _ANY_OBJECT  # what it chose of itself cannot be judged
        # Arguments are told as they are written; but when they are whole where the call may prove
        # to be one that was made before, or a misfit because no grammar ensures its schema.
        is_told = is_exact(schema) and not self._made and not self._answered
        is_told = is_told and not self._pace.is_draft()
        teller = _Teller(self._emit, len(self._made), tool.name)
        try:
            arguments = self._arguments(tool, schema, teller, is_told=is_told)
        except _LimitReached:
            self._made.append((tool.name, teller.written))
            self._is_cut = True
            teller.tell_rest()
            raise
        if (tool.name, plain(arguments)) in self._answered and not self._made:
            self.has_repeated = True
            return False
        if (tool.name, arguments) in self._made:
            return False
        self._made.append((tool.name, arguments))
        teller.tell_rest()
        self._tokens += self._engine.tokenize(arguments)
        return True

    def _choose(self, tools: Sequence[ToolSpec]) -> ToolSpec:
        named = {json.dumps(tool.name, ensure_ascii=False): tool for tool in tools}
        written = ""

        def hear(text: str) -> None:
            nonlocal written
            written += text

        choice = {"enum": [tool.name for tool in tools]}
        self._pass(hear, grammar=grammar_of(guided(choice)))
        return named.get(written.strip()) or named[json.dumps(json.loads(written))]

    def _arguments(
        self, tool: ToolSpec, schema: Mapping[str, Any], teller: _Teller, *, is_told: bool
    ) -> str:
        grammar = grammar_of(guided(schema))
        problem = ""
        yields = tries = 0

        def hear(text: str) -> None:
            teller.hear(text)
            if not is_told and yields < MOST_YIELDS and self._pace.is_outranked():
                raise _Outranked

        while tries < MOST_TRIES:
            tries += 1
            teller.begin(is_told=is_told)
            try:
                self._pass(hear, grammar=grammar)
            except _Outranked:
                # Arguments are one quantum: they are written anew once it is their turn again.
                tries -= 1
                yields += 1
                self._pace.pause()
                continue
            except _NotHeld:
                # The engine cannot follow this schema at all: try what it can, and judge.
                grammar = grammar_of(guided(_ANY_OBJECT))
                problem = "no grammar holds the model to them"
                continue
            found = _problem(tool, teller.written)
            if found is None:
                return teller.written
            problem = found
            if is_told:
                break
        raise invalid_call(tool.name, problem)

    # ---- passes ------------------------------------------------------------------------------

    def _put(self, text: str) -> None:
        """Have it as if the model had written this."""
        self._tokens += self._engine.tokenize(text, special=True, goes_on=True)

    def _pass(
        self,
        hear: Callable[[str], None],
        *,
        grammar: str | None = None,
        is_enough: Callable[[], bool] = lambda: False,
        limit_tokens: int | None = None,
    ) -> None:
        """Go on writing. Raises _LimitReached at the reply's limit."""
        before = self._output_tokens
        if limit_tokens is None:
            limit_tokens = self._limit_tokens - before
            if limit_tokens <= 0:
                raise _LimitReached
        is_first = self._cached_tokens is None

        def note(read: int, cached: int, written: int) -> None:
            self._output_tokens = before + written
            if is_first:
                self._cached_tokens = cached
            is_reading = is_first and not written
            so_far = Usage(read, min(cached, read), 0)
            usage = self._before.plus(so_far) if is_reading else self.usage
            self._emit(UsageSoFar(usage))

        heard = 0

        def take(text: str) -> None:
            """A quantum under a grammar has no end but its own: it is reckoned by its pieces."""
            nonlocal heard
            heard += 1
            hear(text)
            if grammar is not None and heard % PIECES_TOLD == 0:
                note(self._input_tokens, self._cached_tokens or 0, heard)

        completion = self._engine.complete(
            self._tokens,
            limit_tokens,
            self._pace.sampling,
            take,
            self._pace.pause,
            self._pace.is_aborted,
            grammar,
            is_enough,
            note,
        )
        self._output_tokens = before + completion.output_tokens
        if is_first:
            self._cached_tokens = completion.cached_tokens
        if completion.hit_limit and limit_tokens:
            raise _LimitReached


class _Teller:
    """Tells of one call's arguments, as they are written or at their end."""

    def __init__(self, emit: Callable[[WriteOutput], None], index: int, name: str) -> None:
        self._emit = emit
        self._index = index
        self._name = name
        self._told: int | None = None
        self._is_told = False
        self.written = ""

    def begin(self, *, is_told: bool) -> None:
        self.written = ""
        self._is_told = is_told

    def hear(self, text: str) -> None:
        self.written += text
        if not self.written.startswith("{"):
            raise _NotHeld
        if self._is_told:
            self.tell_rest()

    def tell_rest(self) -> None:
        if self._told is None:
            call_id = f"call_{uuid.uuid4().hex[:16]}"
            self._emit(ToolCallDelta(self._index, call_id, self._name, self.written))
        elif self._told < len(self.written):
            self._emit(ToolCallDelta(self._index, "", "", self.written[self._told :]))
        self._told = len(self.written)


class Start:
    """Passes text on, without the white space that models put before their first word."""

    def __init__(self, emit: Callable[[WriteOutput], None]) -> None:
        self._emit = emit
        self._started = False

    def write(self, text: str) -> None:
        if not self._started:
            text = text.lstrip()
        if text:
            self._started = True
            self._emit(TextDelta(text))


def _problem(tool: ToolSpec, arguments: str) -> str | None:
    try:
        return parameters_of(tool).problem(arguments)
    except BadSchema:
        return None
