"""Word error rate, over words as they are spoken, without case or punctuation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from pipelines.text.spoken import spoken

ALIKE = 0.6  # of the letters of both words, in order
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


@dataclass(frozen=True, slots=True)
class Matched:
    """words: how many of a whole text had been spoken. unmatched: heard words behind the last."""

    words: int
    unmatched: int


def last_matched(whole: str, heard: str) -> Matched:
    """How far into `whole` somebody was when all that was said is `heard`.

    `heard` is aligned with every beginning of `whole` at once, by edit distance over words that
    look alike, and the last pair counts: what a recogniser makes of half a word, or of the
    silence behind it, is no word. Many unmatched words leave the place in doubt.
    """
    reference, got = words_of(whole), words_of(heard)
    columns = len(reference) + 1
    same = [[_are_alike(word, other) for other in reference] for word in got]
    # costs[i][j]: of turning the first i heard words into the first j of the reference
    costs = [list(range(columns))]
    for i in range(1, len(got) + 1):
        row = [i]
        for j in range(1, columns):
            swap = costs[i - 1][j - 1] + (not same[i - 1][j - 1])
            row.append(min(swap, costs[i - 1][j] + 1, row[j - 1] + 1))
        costs.append(row)
    i, j = len(got), min(range(columns), key=lambda place: costs[-1][place])
    while i and j:
        if costs[i][j] == costs[i - 1][j - 1] + (not same[i - 1][j - 1]):
            if same[i - 1][j - 1]:
                return Matched(j, len(got) - i)
            i, j = i - 1, j - 1
        elif costs[i][j] == costs[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return Matched(0, len(got))


def _are_alike(word: str, other: str) -> bool:
    """Whether a recogniser may write the one for the other: "sails" and "sales"."""
    return word == other or SequenceMatcher(None, word, other).ratio() >= ALIKE
