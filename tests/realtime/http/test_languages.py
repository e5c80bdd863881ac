"""The languages that may be named are those that Whisper's vocabularies have markers for."""

from __future__ import annotations

import pytest

from pipelines.weights.catalogue import WHISPER_BASE
from pipelines.weights.local_store import path_of
from realtime.http.transcription.languages import LANGUAGES, OTHER_CODES, find_language

LATEST = {"yue"}  # the newest models alone know it


@pytest.mark.models
def test_they_are_those_of_the_embedded_model() -> None:
    [file] = [file for file in WHISPER_BASE if file.path.endswith("vocabulary.txt")]
    tokens = path_of(file).read_text(encoding="utf-8").split("\n")
    first, end = tokens.index("<|startoftranscript|>") + 1, tokens.index("<|translate|>")
    assert {token[2:-2] for token in tokens[first:end]} == LANGUAGES - LATEST


def test_they_are_those_of_the_newest_models() -> None:
    whisper = pytest.importorskip("transformers.models.whisper.tokenization_whisper")
    assert set(whisper.LANGUAGES) == LANGUAGES


def test_other_codes_of_the_same_languages_are_understood() -> None:
    assert {find_language(code) for code in OTHER_CODES} == {"jw", "no"}
    assert LANGUAGES.isdisjoint(OTHER_CODES)
    assert (find_language("deu"), find_language("xx"), find_language("e1")) == ("deu", None, None)
