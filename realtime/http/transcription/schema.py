"""The fields of `POST /v1/audio/transcriptions` and `/translations`, as forms have them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from realtime.http.faults import wrong_word
from realtime.http.transcription.languages import find_language
from realtime.protocol.problems import Invalid, Problem, excerpt, invalid
from realtime.protocol.wire_model import FIRST_FAULT

MAX_NAME_CHARACTERS = 200
MAX_PROMPT_CHARACTERS = 8_000  # recognisers read the end of it alone
MAX_LISTED = 100
LONGEST_CODE = 3  # of a language: ISO 639-3

ResponseFormat = Literal["json", "text", "srt", "verbose_json", "vtt"]
Granularity = Literal["word", "segment"]

STREAMED_FORMATS = ("json", "text")
TIMED_FORMATS = ("srt", "verbose_json", "vtt")
LISTS = frozenset({"timestamp_granularities", "include", "keywords", "languages"})


def _language(value: str) -> str | None:
    """A blank one is none."""
    if not value.strip():
        return None
    found = find_language(value.lower()) if len(value) <= LONGEST_CODE else None
    if found is None:
        raise Invalid(partial(_no_language, value=value))
    return found


def _no_language(path: str, value: str) -> Problem:
    expected = "expected a language's code of ISO 639-1, such as 'en' or 'de'"
    return invalid(path, f"Invalid '{path}': {expected}, but got {excerpt(value)} instead.")


def _not_blank(value: object) -> object:
    """Forms have no null: clients send an empty text for it."""
    return None if value == "" else value


Name = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS)]
Prompt = Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)]
Temperature = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None, BeforeValidator(_not_blank)
]


class TranslationFields(BaseModel):
    """Open: what other servers' clients send beside is passed over.

    model: any name; the server has one recogniser. temperature: taken, and heeded by none.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: Name = Field(default="", description="Any name: the server has one recogniser.")
    prompt: Prompt = Field(
        default="", description="What the recording is about, or names in it; only its end is read."
    )
    response_format: ResponseFormat = Field(
        default="json", description="verbose_json has times; srt and vtt are subtitles."
    )
    temperature: Temperature = Field(
        default=None, description="From 0 to 1. Taken, and heeded by no recogniser."
    )

    @property
    def is_timed(self) -> bool:
        """Whether the answer tells when something was said."""
        return self.response_format in TIMED_FORMATS


class TranscriptionFields(TranslationFields):
    """The fields of `POST /v1/audio/transcriptions`."""

    language: Annotated[str, AfterValidator(_language)] | None = Field(
        default=None,
        description="What is spoken, in ISO 639-1 ('en'); left out, whatever is heard first.",
    )
    languages: Annotated[list[Annotated[str, AfterValidator(_language)]], FIRST_FAULT] = Field(
        default=[],
        max_length=MAX_LISTED,
        description="Languages that may be spoken; one alone stands for 'language'.",
    )
    keywords: Annotated[list[Prompt], FIRST_FAULT] = Field(
        default=[], max_length=MAX_LISTED, description="Words that may be said, such as names."
    )
    timestamp_granularities: Annotated[list[Granularity], FIRST_FAULT] = Field(
        default=[],
        max_length=MAX_LISTED,
        description="Of what verbose_json tells the times; left out, of segments.",
    )
    include: list[str] = Field(
        default=[], max_length=MAX_LISTED, description="Taken, and heeded by no recogniser."
    )
    chunking_strategy: str | None = Field(
        default=None, description="Taken, and not heeded: long files are always cut at pauses."
    )
    stream: Annotated[bool | None, BeforeValidator(_not_blank)] = Field(
        default=None,
        description="true: server-sent events while it is recognised (with json or text alone); "
        "false or left out: one answer.",
    )

    @model_validator(mode="after")
    def _check_together(self) -> TranscriptionFields:
        chosen = self.response_format
        if self.timestamp_granularities and chosen != "verbose_json":
            message = (
                "Invalid 'timestamp_granularities': they need 'response_format' to be "
                f"'verbose_json', which is '{chosen}'."
            )
            at = ("timestamp_granularities",)
            raise Invalid(partial(invalid, message=message), at)
        if self.stream and chosen not in STREAMED_FORMATS:
            why = "Others are written whole: leave 'stream' out"
            describe = partial(wrong_word, word=chosen, words=STREAMED_FORMATS, why=why)
            raise Invalid(describe, ("response_format",))
        return self

    @property
    def spoken_language(self) -> str | None:
        alone = self.languages[0] if len(self.languages) == 1 else None
        return self.language or alone

    @property
    def likely_words(self) -> str:
        """The prompt and the keywords."""
        return " ".join([part for part in (self.prompt, ", ".join(self.keywords)) if part])


def upload_of(model: type[TranslationFields]) -> dict[str, Any]:
    """What a route says of the form that it takes, for the server's description of itself."""
    schema = model.model_json_schema()
    file = {
        "type": "string",
        "format": "binary",
        "description": "The recording, of any format that FFmpeg reads; a form of at most 1 GB.",
    }
    schema |= {"properties": {"file": file, **schema["properties"]}, "required": ["file"]}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


def gather_fields(texts: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Fields by name: lists come as several fields, whose names may end with brackets."""
    fields: dict[str, Any] = {}
    for name, text in texts:
        plain = name.partition("[")[0]
        if plain in LISTS:
            fields.setdefault(plain, []).append(text)
        else:
            fields[name] = text
    return fields
