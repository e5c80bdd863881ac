"""Whisper's byte-level vocabulary: token ids to text, and text to token ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# GPT-2's pre-tokeniser without Unicode categories: a word, number or mark with the space before it.
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+")
_MARKER = re.compile(r"<\|.*\|>")

END = "<|endoftext|>"  # the first of the markers, which come after all text
BYTES = 256  # each is a token
TOKENIZER = "tokenizer.json"
SLOW_TOKENIZER = ("vocab.json", "added_tokens.json")


class VocabularyError(ValueError):
    """Not the vocabulary of a Whisper; the message says why."""


class Vocabulary:
    """tokens: token N, each byte of it written as a printable character; empty: there is none.

    Raises VocabularyError.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        byte_of = _printable_bytes()
        self._ids = {token: number for number, token in enumerate(tokens) if token}
        if END not in self._ids:
            raise VocabularyError(f"it has no {END}")
        self._end = self._ids[END]
        self._names = {
            number: token[2:-2] for token, number in self._ids.items() if _MARKER.fullmatch(token)
        }
        self._bytes = [
            bytes(byte_of[character] for character in token if character in byte_of)
            for token in tokens[: self._end]
        ]
        self._rank = {value: number for number, value in reversed(list(enumerate(self._bytes)))}
        if any(bytes([byte]) not in self._rank for byte in range(BYTES)):
            raise VocabularyError(f"not every byte is a token before {END}")

    @classmethod
    def of_lines(cls, path: Path) -> Vocabulary:
        """Line N of `vocabulary.txt` is token N."""
        return cls(path.read_text(encoding="utf-8").split("\n"))

    @classmethod
    def of_checkpoint(cls, folder: Path) -> Vocabulary:
        """Of tokenizer.json, or of vocab.json and added_tokens.json. Raises FileNotFoundError."""
        try:
            numbers = _tokens_of(folder)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise VocabularyError(f"its tokenizer cannot be read ({error!r})") from error
        tokens = [""] * (max(numbers.values(), default=-1) + 1)
        for token, number in numbers.items():
            tokens[number] = token
        return cls(tokens)

    @property
    def end(self) -> int:
        """The id of the marker that ends a text. Lower ones are text, higher ones markers."""
        return self._end

    def special(self, name: str) -> int | None:
        """The id of a marker such as `<|en|>`, if the model has it."""
        return self._ids.get(f"<|{name}|>")

    def name(self, number: int) -> str | None:
        """Of a marker, without its brackets; None of what is no marker."""
        return self._names.get(number)

    def spell(self, number: int) -> bytes:
        """What a token writes, which may be part of a character; nothing, of a marker."""
        return self._bytes[number] if number < self._end else b""

    def decode(self, ids: Iterable[int]) -> str:
        """Text of the tokens that are text; markers are left out."""
        return b"".join(map(self.spell, ids)).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """Byte pair encoding: of all neighbours, those that form the oldest token are joined."""
        return [number for piece in _PIECES.findall(text) for number in self._join(piece)]

    def _join(self, piece: str) -> list[int]:
        parts = [bytes([byte]) for byte in piece.encode()]
        while len(parts) > 1:
            ranks = [
                self._rank.get(left + right, self._end)
                for left, right in zip(parts, parts[1:], strict=False)
            ]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == self._end:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [self._rank[part] for part in parts]


def _tokens_of(folder: Path) -> dict[str, int]:
    path = folder / TOKENIZER
    if path.is_file():
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        added = {str(token["content"]): int(token["id"]) for token in content["added_tokens"]}
        return {**content["model"]["vocab"], **added}
    plain, more = (folder / name for name in SLOW_TOKENIZER)
    tokens: dict[str, int] = json.loads(plain.read_text(encoding="utf-8"))
    if more.is_file():
        tokens.update(json.loads(more.read_text(encoding="utf-8")))
    return tokens


def _printable_bytes() -> dict[str, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(256 + position): byte for position, byte in enumerate(others)
    }
