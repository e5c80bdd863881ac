"""Whether a number of four digits counts something, or names a year."""

from __future__ import annotations

import re

from pipelines.text.measures import UNITS

_IRREGULAR = frozenset("people men women children feet teeth mice geese sheep fish".split())
# Of what is measured, and never said to belong to a year.
_MEASURED = frozenset(many for _, many in UNITS.values()) | frozenset(
    "dollars euros pounds cents calories bytes bits times points words steps days weeks months "
    "years degrees units".split()
)
_NO_PLURALS = frozenset(
    "does always perhaps towards besides afterwards sometimes overseas nowadays ours yours hers "
    "theirs indoors outdoors whereas".split()
)
# Before a year, whatever follows it.
_TEMPORAL = frozenset(
    "in since by until till from before after during early late mid circa year".split()
)
# Before a year that says which ones are meant: the 2024 elections.
_NAMING = frozenset("the its their our his her this these those a".split())
# Before a count, even of as many as there are years.
_COUNTING = frozenset(
    "are were have has had about over under than nearly almost with only least most exactly "
    "approximately roughly around some contains holds needs need".split()
)
RECENT_YEARS = range(1900, 2100)
COUNTS = re.compile(r"[12]\d{3}|911")  # that are told from a name by what follows


def is_plural(word: str) -> bool:
    """Whether an English word looks like the name of several things."""
    if not (word.isascii() and word.isalpha() and word.islower()):
        return False
    if word in _IRREGULAR:
        return True
    return (
        len(word) >= 4  # not "was" or "its"
        and word[-1] == "s"
        and word[-2] not in "sui"
        and word not in _NO_PLURALS
    )


def is_count(before: str, number: int, after: str) -> bool:
    """Whether `number` says how many `after` there are; before, after: the words around it."""
    before = before.lower()
    if after in _MEASURED:
        return True
    if not is_plural(after) or before in _TEMPORAL:
        return False
    if after in _IRREGULAR or before in _COUNTING:
        return True
    is_name = before in _NAMING or before.endswith(("'s", "’s"))
    return 1000 <= number and number not in RECENT_YEARS and not is_name
