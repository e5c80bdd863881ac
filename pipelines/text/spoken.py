"""Display text to spoken text, for the voice alone.

Markdown, emoji and addresses are made speakable; digits, where the text is not in a script that
reads them in its own way, become English words. Years stay digits: every voice reads them well.
"""

from __future__ import annotations

import re
import unicodedata

from pipelines.text.marks import is_wide
from pipelines.text.numbers import cardinal, clock_time, decimal, digit_by_digit, integer, ordinal

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_LINK_TAIL = re.compile(r"\]\([^)\s]*\)")  # of a link whose beginning was in the chunk before
_URL = re.compile(r"(?:https?://|www\.)[^\s<>()\"']+", re.IGNORECASE)
_MAIL = re.compile(r"\b([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)")
_LINE_MARK = re.compile(r"^[ \t]*(?:>+|(?:#+|[-*+•])(?=[ \t]))[ \t]*", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*$", re.MULTILINE)
_MARKS = re.compile(r"[*`~|\\<>\[\]{}]+|(?<!\w)_+|_+(?!\w)")
_INNER_MARKS = re.compile(r"[_#^]+")

_CLOCK = re.compile(r"(?<![\d:.,])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])(\s*[ap]\.?m\b)?", re.I)
_MONEY = re.compile(
    r"([$€£])\s?(\d[\d,]*\d|\d)(?:\.(\d+))?(?:\s(hundred|thousand|million|billion)\b)?"
)
_PERCENT = re.compile(r"(?<=\d)\s?%")
_ORDINAL = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})*|\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_TELEPHONE = re.compile(r"(?<![\d-])\d{3}-(?:\d{3}-)?\d{4}(?![\d-])")
_VERSION = re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d])")
_GROUPED = re.compile(r"(?<!\d)(\d{1,3}(?:,\d{3})+)(?!\d)")
_MINUS = re.compile(r"(?<![\w)])[-−](?=\d)")
_DIFFERENCE = re.compile(r"(?<=\d)\s[-−]\s(?=\d)")  # a sum is written with spaces, a range without
_RANGE = re.compile(r"(?<=\d)\s?[-–−]\s?(?=\d)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_YEAR = re.compile(r"(?<![\w.,$€£/])(?:1[1-9]|20)\d\d(?!(?!s\b)\w|%|[.,/]\d)")

_CURRENCIES = {
    "$": (("dollar", "dollars"), ("cent", "cents")),
    "€": (("euro", "euros"), ("cent", "cents")),
    "£": (("pound", "pounds"), ("penny", "pence")),
}
_FRACTIONS = {"1/2": "one half", "1/3": "one third", "1/4": "one quarter", "3/4": "three quarters"}
_FRACTION = re.compile(r"(?<![\w/.])(?:" + "|".join(_FRACTIONS) + r")(?![\w/])")
_SIGNS = {"&": " and ", "@": " at ", "°": " degrees ", "%": " percent ", "×": " times "}
_SIGN = re.compile("[" + "".join(_SIGNS) + "]")
_BETWEEN_NUMBERS = {"+": " plus ", "=": " equals "}
_OPERATOR = re.compile(r"(?<=[\w)])\s?([+=])\s?(?=[\w(])")


def spoken(display: str) -> str:
    """What to say for a piece of display text; "" if nothing of it can be said.

    The result has single spaces, and none at its ends.
    """
    text = _drop_markup(display)
    if not any(is_wide(char) for char in text):
        text = _speak_numbers(text)
    text = _OPERATOR.sub(lambda found: _BETWEEN_NUMBERS[found[1]], text)
    text = _SIGN.sub(lambda found: _SIGNS[found[0]], text)
    text = "".join(char for char in text if not _is_picture(char))
    text = _INNER_MARKS.sub(" ", text)
    text = re.sub(r"\s+([.,!?;:])", r"\1", " ".join(text.split()))
    return text if any(char.isalnum() for char in text) else ""


def _drop_markup(text: str) -> str:
    text = _LINK.sub(r"\1", text)
    text = _LINK_TAIL.sub("", text)
    text = _URL.sub(_short_address, text)
    text = _MAIL.sub(lambda found: f"{_dots(found[1])} at {_dots(found[2])}", text)
    text = _RULE.sub("", text)
    text = _LINE_MARK.sub("", text)
    return _MARKS.sub("", text)


def _short_address(found: re.Match[str]) -> str:
    """The host alone: nobody wants to hear a path."""
    address = found[0].rstrip(".,!?;:*_`")
    tail = found[0][len(address) :]
    host = re.sub(r"^(?:https?://)?(?:www\.)?", "", address, flags=re.IGNORECASE)
    return _dots(re.split(r"[/?#:]", host, maxsplit=1)[0]) + tail


def _dots(name: str) -> str:
    return name.replace(".", " dot ")


def _speak_numbers(text: str) -> str:
    years: list[str] = []

    def keep(found: re.Match[str]) -> str:
        years.append(found[0])
        return "\0"

    # Digits of other scripts are read as digits; superscripts and fractions take their plain form.
    text = "".join(_plain_digit(char) for char in text.replace("\0", ""))
    text = _CLOCK.sub(_say_clock, text)
    text = _MONEY.sub(_say_money, text)
    text = _FRACTION.sub(lambda found: _FRACTIONS[found[0]], text)
    text = _ORDINAL.sub(lambda found: _say_ordinal(found[1]), text)
    text = _YEAR.sub(keep, text)
    text = _GROUPED.sub(lambda found: found[1].replace(",", ""), text)
    text = _TELEPHONE.sub(lambda found: digit_by_digit(found[0].replace("-", "")), text)
    text = _VERSION.sub(_say_version, text)
    text = _PERCENT.sub(" percent", text)
    text = _MINUS.sub("minus ", text)
    text = _DIFFERENCE.sub(" minus ", text)
    text = _RANGE.sub(" to ", text)
    text = re.sub(r"(?<=\d)[/:](?=\d)", " ", text)
    text = re.sub(r"#(?=\d)", "number ", text)
    text = _NUMBER.sub(_say_number, text)
    return re.sub("\0", lambda _: years.pop(0), text)


def _plain_digit(char: str) -> str:
    if char.isascii() or not char.isdigit():
        return char
    return str(unicodedata.digit(char))


def _say_clock(found: re.Match[str]) -> str:
    hours, minutes, half = int(found[1]), int(found[2]), found[3] or ""
    if half and minutes == 0:
        return cardinal(hours) + half
    return clock_time(hours, minutes) + half


def _say_money(found: re.Match[str]) -> str:
    (one, many), (one_part, many_parts) = _CURRENCIES[found[1]]
    whole, fraction, scale = found[2].replace(",", ""), found[3] or "", found[4]
    if scale or len(fraction) not in (0, 2):
        amount = decimal(whole, fraction) + (f" {scale}" if scale else "")
        return f"{amount} {many}"
    said = f"{integer(whole)} {one if whole == '1' else many}"
    if int(fraction or "0"):
        said += f" and {cardinal(int(fraction))} {one_part if int(fraction) == 1 else many_parts}"
    return said


def _say_ordinal(digits: str) -> str:
    plain = digits.replace(",", "")
    return ordinal(int(plain)) if len(plain) < 12 else integer(plain) + "th"


def _say_version(found: re.Match[str]) -> str:
    return _apart(found, " point ".join(map(integer, found[0].split("."))))


def _say_number(found: re.Match[str]) -> str:
    whole, _, fraction = found[0].partition(".")
    return _apart(found, decimal(whole, fraction))


def _apart(found: re.Match[str], said: str) -> str:
    """Words in the place of digits, kept apart from letters that touched the digits."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return f"{' ' if before.isalpha() else ''}{said}{' ' if after.isalpha() else ''}"


def _is_picture(char: str) -> bool:
    """Emoji and other pictures, with what only modifies them."""
    category = unicodedata.category(char)
    return category in ("So", "Cn", "Co", "Cs") or (
        char in "\u200d\u20e3" or 0xFE00 <= ord(char) <= 0xFE0F or 0x1F3FB <= ord(char) <= 0x1F3FF
    )
