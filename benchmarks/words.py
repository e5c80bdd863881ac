"""Word error rate, over words as they are spoken, without case or punctuation."""

from __future__ import annotations

import re

from pipelines.text.spoken import spoken

_NOT_A_WORD = re.compile(r"[^\w']+")


def words_of(text: str) -> list[str]:
    """Lower-case words, numbers spelt out; apostrophes inside words stay, hyphens part them."""
    cleaned = _NOT_A_WORD.sub(" ", spoken(text).lower().replace("\u2019", "'"))
    return [word.strip("'") for word in cleaned.split() if word.strip("'")]


def word_errors(reference: str, heard: str) -> tuple[int, int]:
    """(substitutions + insertions + deletions, words of the reference), by edit distance."""
    wanted, got = words_of(reference), words_of(heard)
    row = list(range(len(got) + 1))
    for i, word in enumerate(wanted, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(got, start=1):
            cost = diagonal if word == other else 1 + min(diagonal, row[j], row[j - 1])
            diagonal, row[j] = row[j], cost
    return row[-1], len(wanted)


def word_error_rate(pairs: list[tuple[str, str]]) -> float:
    """Errors over words, both summed over all (reference, heard) pairs."""
    counts = [word_errors(reference, heard) for reference, heard in pairs]
    words = sum(count for _, count in counts)
    return sum(errors for errors, _ in counts) / words if words else 0.0
