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

from realtime.protocol.problems import Invalid, invalid, unsupported
from realtime.protocol.wire_model import FIRST_FAULT

MAX_NAME_CHARACTERS = 200
MAX_PROMPT_CHARACTERS = 8_000  # recognisers read the end of it alone
MAX_LISTED = 100

ResponseFormat = Literal["json", "text", "srt", "verbose_json", "vtt"]
Granularity = Literal["word", "segment"]

STREAMED_FORMATS = ("json", "text")
TIMED_FORMATS = ("srt", "verbose_json", "vtt")
LISTS = frozenset({"timestamp_granularities", "include", "keywords", "languages"})


def _language(value: str) -> str | None:
    """A blank one is none."""
    if not value.strip():
        return None
    if not (value.isascii() and value.isalpha() and 2 <= len(value) <= 3):
        message = "Invalid 'language': expected a code of ISO 639-1, such as 'en' or 'de'."
        raise Invalid(partial(invalid, message=message))
    return value.lower()


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

    model: Name = ""
    prompt: Prompt = ""
    response_format: ResponseFormat = "json"
    temperature: Temperature = None

    @property
    def is_timed(self) -> bool:
        """Whether the answer tells when something was said."""
        return self.response_format in TIMED_FORMATS


class TranscriptionFields(TranslationFields):
    """language: ISO 639-1; by default the one that is heard. languages: that may be spoken; one
    alone is the language. keywords: words that may be said. chunking_strategy and include: taken,
    and heeded by none: long files are always cut."""

    language: Annotated[str, AfterValidator(_language)] | None = None
    languages: Annotated[list[Annotated[str, AfterValidator(_language)]], FIRST_FAULT] = Field(
        default=[], max_length=MAX_LISTED
    )
    keywords: Annotated[list[Prompt], FIRST_FAULT] = Field(default=[], max_length=MAX_LISTED)
    timestamp_granularities: Annotated[list[Granularity], FIRST_FAULT] = Field(
        default=[], max_length=MAX_LISTED
    )
    include: list[str] = Field(default=[], max_length=MAX_LISTED)
    chunking_strategy: str | None = None
    stream: Annotated[bool | None, BeforeValidator(_not_blank)] = None

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
            why = "Others are written whole: leave 'stream' out."
            describe = partial(unsupported, value=chosen, supported=STREAMED_FORMATS, why=why)
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
    file = {"type": "string", "format": "binary"}
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
