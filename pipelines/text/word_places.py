"""Where the words of one text end in another that says the same, such as its display form."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import accumulate

ROUNDING = 1e-9  # of shares of letters, against whole letters

_WORD = re.compile(r"\S+")


def word_places(said: str, text: str) -> dict[int, int]:
    """Where in `text` the words of `said` end: by where they end in `said`.

    Words that both texts have are matched; those between them share what lies between, in
    proportion to letters, and cover whole words of it. Never decreasing.
    """
    said_words, words = list(_WORD.finditer(said)), list(_WORD.finditer(text))
    matcher = SequenceMatcher(
        None, [word[0] for word in said_words], [word[0] for word in words], autojunk=False
    )
    places: dict[int, int] = {}
    end = 0
    for _, first, last, text_first, text_last in matcher.get_opcodes():
        shared = words[text_first:text_last]
        all_letters = sum(len(word[0]) for word in said_words[first:last])
        letters = 0
        for word in said_words[first:last]:
            letters += len(word[0])
            over = _over(shared, letters / all_letters)
            end = shared[over - 1].end() if over else end
            places[word.end()] = end
    return places


def _over(words: list[re.Match[str]], share: float) -> int:
    """How many of `words` are over when this share of their letters is."""
    wanted = share * sum(len(word[0]) for word in words)
    letters = accumulate(len(word[0]) for word in words)
    return sum(reached <= wanted + ROUNDING for reached in letters)
