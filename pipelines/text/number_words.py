"""Numbers in English words, as a voice reads them: without "and", commas or hyphens."""

from __future__ import annotations

import re
from functools import lru_cache

from num2words import num2words

LARGEST_DIGITS = 15  # longer numbers, and those with leading zeros, are codes: digit by digit
DIGITS = "zero one two three four five six seven eight nine".split()
_DENOMINATORS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_PARTS = re.compile(r"[-,]| and\b")


@lru_cache(maxsize=4096)
def _say(value: int, form: str) -> str:
    return " ".join(_PARTS.sub(" ", num2words(value, to=form)).split())


def cardinal(value: int) -> str:
    return _say(value, "cardinal")


def ordinal(value: int) -> str:
    return _say(value, "ordinal")


def year(value: int) -> str:
    """1999 is nineteen ninety nine, 2005 two thousand five, 1900 nineteen hundred."""
    return _say(value, "year")


def digit_by_digit(digits: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in digits)


def integer(digits: str) -> str:
    """ASCII digits, perhaps with grouping commas."""
    plain = digits.replace(",", "")
    is_code = (len(plain) > 1 and plain[0] == "0") or len(plain) > LARGEST_DIGITS
    return digit_by_digit(plain) if is_code else cardinal(int(plain))


def decimal(number: str) -> str:
    """Such as "3", "1,234", "3.50" or ".5"."""
    whole, _, fraction = number.partition(".")
    said = integer(whole) if whole else ""
    return f"{said} point {digit_by_digit(fraction)}".strip() if fraction else said


def fraction(above: int, below: int) -> str:
    """Such as "three quarters"; `below` is at least 2."""
    one, many = _DENOMINATORS.get(below) or (ordinal(below), ordinal(below) + "s")
    return f"{cardinal(above)} {one if above == 1 else many}"


def plural(word: str) -> str:
    """Of a number word: "nineteen ninety" to "nineteen nineties"."""
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("x") else f"{word}s"
