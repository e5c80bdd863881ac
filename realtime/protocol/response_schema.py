"""`response.create`: what one response does otherwise than its session."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from realtime.protocol.audio_schema import Format, Voice
from realtime.protocol.item_schema import InputEntry, ItemSchema
from realtime.protocol.output_schema import (
    Choice,
    MaxOutputTokens,
    OutputModality,
    Prompt,
    Tools,
)
from realtime.protocol.problems import Invalid, Problem, invalid
from realtime.protocol.session_schema import ReasoningSchema
from realtime.protocol.wire_model import FIRST_FAULT, WireModel, members_in
from realtime.session.items import Item, ItemReference
from realtime.session.settings import ResponseOptions

# The wire's limits on metadata.
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARACTERS = 64
MAX_METADATA_VALUE_CHARACTERS = 512


def count_pairs(value: object) -> object:
    """Before each is looked at: a stranger may send very many."""
    if len(members_in(value)) > MAX_METADATA_PAIRS:
        raise Invalid(_too_many_pairs)
    return value


def check_metadata(pairs: dict[str, str]) -> dict[str, str]:
    for key, value in pairs.items():
        if len(key) > MAX_METADATA_KEY_CHARACTERS:
            raise Invalid(_long_key)
        if len(value) > MAX_METADATA_VALUE_CHARACTERS:
            raise Invalid(_long_value, at=(key,))
    return pairs


def _too_many_pairs(path: str) -> Problem:
    return invalid(path, f"Invalid '{path}': expected at most {MAX_METADATA_PAIRS} pairs.")


def _long_key(path: str) -> Problem:
    limit = MAX_METADATA_KEY_CHARACTERS
    return invalid(path, f"Invalid '{path}': a key has more than {limit} characters.")


def _long_value(path: str) -> Problem:
    limit = MAX_METADATA_VALUE_CHARACTERS
    return invalid(path, f"Invalid '{path}': expected at most {limit} characters.")


Metadata = Annotated[dict[str, str], BeforeValidator(count_pairs), AfterValidator(check_metadata)]


class ResponseAudioOutputSchema(WireModel):
    format: Format | None = None
    voice: Voice | None = None


class ResponseAudioSchema(WireModel):
    output: ResponseAudioOutputSchema | None = None


class ResponseSchema(WireModel):
    """`reasoning` is accepted without effect."""

    instructions: str | None = None
    output_modalities: OutputModality | None = None
    audio: ResponseAudioSchema | None = None
    tools: Tools | None = None
    tool_choice: Choice | None = None
    max_output_tokens: MaxOutputTokens | None = None
    conversation: Literal["auto", "none"] | None = None
    metadata: Metadata | None = None
    input: Annotated[list[InputEntry], FIRST_FAULT] | None = None
    prompt: Prompt | None = None
    reasoning: ReasoningSchema | None = None
    parallel_tool_calls: bool | None = None

    def options(self) -> ResponseOptions:
        output = self.audio.output if self.audio else None
        limit = self.max_output_tokens
        return ResponseOptions(
            instructions=self.instructions,
            modality=self.output_modalities,
            voice=output.voice if output else None,
            output_format=output.format if output else None,
            tools=None if self.tools is None else tuple(self.tools),
            tool_choice=self.tool_choice,
            max_output_tokens=None if limit == "inf" else limit,
            unlimited_output=limit == "inf",
            parallel_tool_calls=self.parallel_tool_calls,
            metadata=None if self.metadata is None else tuple(self.metadata.items()),
            out_of_band=self.conversation == "none",
            input=self._input(),
        )

    def _input(self) -> tuple[Item | ItemReference, ...] | None:
        if self.input is None:
            return None
        return tuple(
            entry.item() if isinstance(entry, ItemSchema) else entry for entry in self.input
        )
