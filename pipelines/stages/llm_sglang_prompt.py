"""The model's own tokenizer and chat template: messages to the ids of a prompt, ids to text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipelines.stages.context_window import ContextTooSmall, context_exceeded, fit
from pipelines.stages.llama_tools import as_openai, message_as_openai
from pipelines.stages.llm_sglang_calls import CLOSING, OPENING
from pipelines.types import Message, StageError, ToolSpec, WriteRequest

COUNTED_TEXTS = 16_384  # messages of running sessions whose length in tokens is remembered
PROBE = ToolSpec("probe_of_template", "", '{"type": "object", "properties": {}}')
CONFIG_FILES = ("generation_config.json", "config.json")  # each may name the ends of a turn

# A voice waits for nobody's thoughts: templates that know this have the model answer at once, and
# others do not look at it.
TEMPLATE_OPTIONS: Mapping[str, Any] = {"enable_thinking": False}


class Prompts:
    """Makes prompts for one model; every method is safe in any thread.

    stop_ids: the tokens with which it ends its turn.
    """

    def __init__(self, tokenizer: Any, stop_ids: Sequence[int] = ()) -> None:
        """tokenizer: a fast one of transformers, with a chat template."""
        self._tokenizer = tokenizer
        # Its core alone is safe in several threads at once, as long as nothing is set on it.
        self._core: Any = tokenizer.backend_tokenizer
        self._core.no_truncation()
        self._core.no_padding()
        known = {OPENING, CLOSING}
        self._silent_ids = {
            number
            for number, token in tokenizer.added_tokens_decoder.items()
            if token.special and token.content not in known
        }
        marks = {tokenizer.added_tokens_decoder[number].content for number in self._silent_ids}
        longest_first = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
        self._marks = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        own = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
        self.stop_ids = frozenset((*own, *stop_ids))
        self._count: Callable[[str], int] = lru_cache(COUNTED_TEXTS)(self._count_tokens)
        self._tells_tools = self._learn_whether_tools_are_told()

    @classmethod
    def load(cls, folder: Path) -> Prompts:
        """The tokenizer of a checkpoint. Raises OSError or ValueError if there is none."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError("its tokenizer has no chat template: this is no chat model")
        if not getattr(tokenizer, "backend_tokenizer", None):
            raise ValueError("it has no tokenizer.json")
        return cls(tokenizer, _stop_ids_of(folder))

    def encode(self, text: str) -> list[int]:
        """Markers such as <|im_start|> become one token each."""
        return self._core.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Without the markers of the template, but with those of calls."""
        spoken = [number for number in ids if number not in self._silent_ids]
        return self._core.decode(spoken, skip_special_tokens=False)

    def prompt(self, request: WriteRequest, room_tokens: int) -> list[int]:
        """The ids of as much of a conversation as fits into `room_tokens`, ready for a reply.

        A request that only has the model read ends with its last message's text, which may go on.
        Raises StageError.
        """
        if not request.messages:
            raise StageError("llm_no_messages", "The language model was asked without a message.")
        functions = _functions(request.tools)
        left_tokens = room_tokens - sum(self._count(json.dumps(entry)) for entry in functions)
        while True:
            try:
                kept = fit(request.messages, left_tokens, self._count, request.truncation)
            except ContextTooSmall:
                raise context_exceeded(f"{room_tokens} tokens") from None
            text = self._render(kept, functions)
            if request.max_output_tokens == 0:
                text = _before_end(text, self._harmless(kept[-1].text.strip()))
            ids = self.encode(text)
            if len(ids) <= room_tokens:
                return ids
            left_tokens //= 2  # this template adds more than was reckoned with

    def _render(self, messages: tuple[Message, ...], functions: Sequence[dict[str, Any]]) -> str:
        shown = functions
        if functions and not self._tells_tools:
            messages, shown = _told(messages, functions), ()
        try:
            return self._apply(messages, shown)
        except Exception as error:  # templates raise whatever their authors like
            raise StageError(
                "llm_failed",
                f"The chat template of the language model refuses this conversation: {error}",
            ) from error

    def _apply(self, messages: Sequence[Message], functions: Sequence[dict[str, Any]]) -> str:
        return self._tokenizer.apply_chat_template(
            [self._harmless(_entry(message)) for message in messages],
            tools=[self._harmless(function) for function in functions] or None,
            add_generation_prompt=True,
            tokenize=False,
            **TEMPLATE_OPTIONS,
        )

    def _harmless(self, value: Any) -> Any:
        """A value of JSON in whose texts no marker of the template is one any more.

        Users and tools write what they like; a marker of theirs would begin a turn of their own.
        """
        match value:
            case str():
                return self._marks.sub(lambda found: f"{found[0][0]} {found[0][1:]}", value)
            case list():
                return [self._harmless(inner) for inner in value]
            case dict():
                return {self._harmless(name): self._harmless(value[name]) for name in value}
            case _:
                return value

    def _learn_whether_tools_are_told(self) -> bool:
        """Whether the template shows tools, and has calls written between the known marks."""
        try:
            text = self._apply([Message("user", "Hello.")], [as_openai(PROBE)])
        except Exception:  # a template may also refuse tools
            return False
        return PROBE.name in text and OPENING in text

    def _count_tokens(self, text: str) -> int:
        return len(self.encode(text)) if text else 0


def _entry(message: Message) -> dict[str, Any]:
    """A message as templates expect it: they write a call's arguments as JSON themselves."""
    entry = message_as_openai(message)
    for call in entry.get("tool_calls", ()):
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            continue
        if isinstance(arguments, dict):
            call["function"]["arguments"] = arguments
    return entry


def _functions(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    try:
        return [as_openai(tool) for tool in tools]
    except ValueError as error:
        raise StageError(
            "llm_bad_tool_schema",
            f"The parameters of a tool are no JSON ({error}): correct them.",
        ) from error


def _told(
    messages: tuple[Message, ...], functions: Sequence[dict[str, Any]]
) -> tuple[Message, ...]:
    """The messages with the tools in words, for templates that show none."""
    listed = "\n".join(json.dumps(entry["function"]) for entry in functions)
    text = (
        f"You may call one or more of these functions:\n{listed}\n"
        f'For each call write {OPENING}{{"name": <its name>, "arguments": <a JSON object>}}'
        f"{CLOSING} and nothing else."
    )
    if messages[0].role == "system":
        first = replace(messages[0], text=f"{messages[0].text}\n\n{text}")
        return (first, *messages[1:])
    return (Message("system", text), *messages)


def _before_end(rendered: str, last_text: str) -> str:
    """A prompt without what its template writes after the last text, which may go on."""
    place = rendered.rfind(last_text) if last_text else -1
    return rendered if place < 0 else rendered[: place + len(last_text)]


def _stop_ids_of(folder: Path) -> list[int]:
    """The ends of a turn that the checkpoint's own files name."""
    found: list[int] = []
    for name in CONFIG_FILES:
        try:
            ends = json.loads((folder / name).read_text(encoding="utf-8")).get("eos_token_id")
        except (OSError, ValueError, AttributeError):
            continue
        found += [end for end in (ends if isinstance(ends, list) else [ends]) if end is not None]
    return found
