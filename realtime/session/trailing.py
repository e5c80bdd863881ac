"""Whether words ask for more: a speaker who stops after "and" or "the" has not finished."""

from __future__ import annotations

import re

# English words that never end a turn. Recognisers often put a full stop behind them all the same,
# so the mark says nothing here. Words that may end an answer ("I am", "what for") are not listed.
_LEADING = frozenset(
    "a an the my your his its our their and or but because if when although though unless until "
    "since than whose into onto between without as um uh er erm hmm i we he she they you're i'm "
    "we're they're it's very quite every shall".split()
)
_OPEN_MARKS = (",", "\u2026", "...", "-", "\u2013", "\u2014", ":", ";")
_WORD = re.compile(r"[^\W_][\w'\u2019]*")


def trails_off(text: str) -> bool:
    """Whether a transcript ends where its sentence cannot end."""
    bare = text.rstrip()
    if bare.endswith(_OPEN_MARKS):
        return True
    words = _WORD.findall(bare.lower().replace("\u2019", "'"))
    if len(words) < 2:
        return False  # "Um." or "No." alone may be all that somebody says
    return words[-1] in _LEADING
