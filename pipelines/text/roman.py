"""Roman numerals behind a name: of a ruler they are a rank, of anything else a number."""

from __future__ import annotations

import re

from pipelines.text.aligned import After, Rule, last_word
from pipelines.text.number_words import cardinal, ordinal

_VALUES = {"I": 1, "V": 5, "X": 10}
# Up to 39. One letter alone is rather an initial, or the speaker.
_NUMERAL = re.compile(
    r"(?<![\w.'’-])(?=[IVX]{2})(X{0,3}(?:IX|IV|V?I{0,3}))(?![\w-]|\.\w|['’](?!s\b))"
)
_RULERS = frozenset(
    "Albert Alexander Alfonso Benedict Catherine Charles Christian Clement Constantine Edward "
    "Elizabeth Ferdinand Francis Frederick George Gregory Harald Henry Innocent Ivan James John "
    "Joseph Juan Leo Leopold Louis Ludwig Margaret Mary Mehmed Murad Napoleon Nicholas Olav Otto "
    "Paul Peter Philip Pius Ptolemy Ramesses Ramses Richard Robert Rudolf Selim Thutmose Urban "
    "Victor Vittorio Wilhelm William Xerxes".split()
)
_NO_NAMES = frozenset(
    "A An And As At By For From His Her In My Of On Or Our That The Their".split()
)
_NO_NAMES |= frozenset("This To With Your".split())


def is_numeral(word: str) -> bool:
    return _NUMERAL.match(word) is not None


def _say(found: re.Match[str], ahead: str) -> str | None:
    before = last_word(ahead)
    if not before[:1].isupper() or not before.isalpha() or before in _NO_NAMES:
        return None
    values = [_VALUES[letter] for letter in found[1]]
    following = [*values[1:], 0]
    value = sum(-one if one < other else one for one, other in zip(values, following, strict=True))
    return f"the {ordinal(value)}" if before in _RULERS else cardinal(value)


RULES: tuple[Rule, ...] = ((_NUMERAL, After(_say)),)
