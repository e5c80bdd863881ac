"""Whisper's byte-level vocabulary: token ids to text, and text to token ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# GPT-2's pre-tokeniser without Unicode categories: a word, number or mark with the space before it.
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+")


class Vocabulary:
    """Line N of `vocabulary.txt` is token N, each byte of it written as a printable character."""

    def __init__(self, path: Path) -> None:
        byte_of = _printable_bytes()
        lines = path.read_text(encoding="utf-8").split("\n")
        self._ids = {line: number for number, line in enumerate(lines) if line}
        self._end = self._ids["<|endoftext|>"]  # the first of the markers
        self._bytes = [
            bytes(byte_of[character] for character in line if character in byte_of)
            for line in lines[: self._end]
        ]
        self._rank = {value: number for number, value in reversed(list(enumerate(self._bytes)))}

    def special(self, name: str) -> int | None:
        """The id of a marker such as `<|en|>`, if the model has it."""
        return self._ids.get(f"<|{name}|>")

    def decode(self, ids: Iterable[int]) -> str:
        """Text of the tokens that are text; markers are left out."""
        joined = b"".join(self._bytes[number] for number in ids if number < self._end)
        return joined.decode("utf-8", "replace")

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


def _printable_bytes() -> dict[str, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(256 + position): byte for position, byte in enumerate(others)
    }
