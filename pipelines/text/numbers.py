"""Numbers that are neither dates nor amounts: telephone, version, range, ratio, fraction, rank."""

from __future__ import annotations

import re
import unicodedata

from pipelines.text import calendar, measures
from pipelines.text.aligned import After, Aligned, Rule, last_word
from pipelines.text.counts import RECENT_YEARS, is_count
from pipelines.text.number_words import (
    DIGITS,
    LARGEST_DIGITS,
    cardinal,
    decimal,
    digit_by_digit,
    fraction,
    integer,
    ordinal,
    plural,
    year,
)

_DIGIT = re.compile(r"\d")
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"

_VULGAR = {
    "½": "1/2",
    "⅓": "1/3",
    "⅔": "2/3",
    "¼": "1/4",
    "¾": "3/4",
    "⅕": "1/5",
    "⅖": "2/5",
    "⅗": "3/5",
    "⅘": "4/5",
    "⅙": "1/6",
    "⅚": "5/6",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_VULGAR_SIGN = re.compile(r"(\d?)([" + "".join(_VULGAR) + "])")
_FOREIGN_DIGIT = re.compile(r"[^\W\D]|[₀-₉①-⑨]")
_FRACTION_SLASH = re.compile(r"(?<=\d)⁄(?=\d)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"(?:\^\{?(-?\w+)\}?|([⁻]?[⁰¹²³⁴-⁹]+))")

_TELEPHONE = re.compile(
    r"(?<![\w.-])(?:"
    r"\+\d{1,3}(?:[\s.-]?\(?\d{2,4}\)?){2,5}"
    r"|(?:1[\s.-])?(?:\(\d{3}\)\s?|\d{3}[\s.-])\d{3}[\s.-]\d{4}"
    r"|\d{3}-\d{4}"
    r"|\(?0\d{2,4}\)?[\s-]\d{3,4}[\s-]?\d{3,4}"
    r")(?![\w-]|\.\d)"
)
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b")
_SCIENTIFIC = re.compile(rf"(?<![\w.])({_NUMBER})[eE]([+-]?\d{{1,3}})(?!\w)")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_VERSION_LETTER = re.compile(r"\b[vV](?=\d+(?:\.\d+)*\b)")
_VERSION = re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?!\d)")
_ALWAYS = re.compile(r"(?<![\w/.])(?:24/7|9/11|50/50|20/20)(?![\w/%]|[.,]\d)")
_EMERGENCY = re.compile(r"(?<![\w/.])911(?![\w/%]|[.,]\d)(?=(?P<after> [a-z]+\b)?)")
_FRACTION = re.compile(r"(?<![\w/.,])(?:(\d+)\s)?(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)")
_RATIO = re.compile(r"(?<=\d)\s?:\s?(?=\d)")
_PRODUCT = re.compile(r"(?<=\d)\s?[x×]\s?(?=\d[\d.,]*\s*=)|(?<=\d)\s?×\s?(?=\d)")
_SIZE = re.compile(r"(?<=\d)\s?x\s?(?=\d)|(?<=[a-z]{2})\s?[x×]\s(?=\d)")
_TIMES = re.compile(r"(?<=\d)[x×](?!\w)")
_PLUS_BEHIND = re.compile(r"(?<=\d)\+(?![\w+])")
_MILLIONS = re.compile(r"(?:(?<=\d\.\d)|(?<=\d\d))M(?!\w)")  # 3M is a name
_TENS = re.compile(r"(?<![\w.,])1(0{1,3}|,000)s(?= of\b)")
_SIZES = re.compile(r"(?<=\d)x(\d+)s(?!\w)")
_THOUSANDS = re.compile(r"(?<=\d)k(?![\w])")
_ORDINAL = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)s?\b", re.IGNORECASE)
_JOINED = re.compile(r"(?<=[^\W\d_])[-–](?=\d)|(?<=\d)[-–](?=[^\W\d_])")  # COVID-19, 5-year
_MINUS = re.compile(r"(?<![\w)])(?<!\w [-–−])[-−–](?=[.]?\d)")
_PLUS = re.compile(r"(?<![\w)])\+(?=\.?\d)")
_DIFFERENCE = re.compile(
    r"(?:(?<=\d)|(?<=squared)|(?<=cubed))\s[-−]\s(?=\d)"
)  # a sum is written with spaces, a range without
_RANGE = re.compile(r"(?<=\d)\s?[-–−—]\s?(?=\d)|(?<=\d)\s?–\s?(?=[-−]\d)")
_SLASH = re.compile(r"(?<=\d)/(?=\d)")
_RANK = re.compile(r"#\s?(?=\d)|(?<!\w)#(?=[A-Z]{1,4}-?\d)|№\s?")
_ABOUT = re.compile(r"(?<!\w)~\s?(?=[\d$€£])")
_PARTS = {"p.": "page", "pp.": "pages", "ch.": "chapter", "sec.": "section"}
_PART = re.compile(r"(?<![\w.])(?:pp?|[Cc]h|[Ss]ec)\.(?= ?\d)")
_RECORD = re.compile(r"(?<![\w./-])\d{1,2}(?:-\d{1,2}){2}(?![\w/-]|\.\d)")  # won, drawn, lost
_POSTAL = re.compile(r"(?<![\w.,-])(\d{5})(?:-(\d{4}))?(?![\w-]|[.,]\d)")
_STATES = frozenset(
    "AL AK AZ AR CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH "
    "NJ NM NV NY OH OK OR PA PR RI SC SD TN TX UT VA VT WA WI WV WY".split()
)
_MODEL = re.compile(r"(?<=[A-Z])(?:\d{3,}|-\d{5,})(?![\w]|[.,]\d)")  # BA2490
_GRADE = re.compile(r"(?<![\w+-])(AB|[A-FO])([+−-])(?![\w+−-])")
_CIRCA = re.compile(r"(?<![\w.])c\.(?= ?\d{3,4}(?!\d))")
_GROUPS = re.compile(r"(?<![\w-])(?:\d+(?:-\d+){2,}|\d{4}(?: \d{4}){2,})(?![\w-])")
_ZONE = re.compile(r"(?:(?<=\bUTC)|(?<=\bGMT))[-−–](?=\d)")
_CODE = re.compile(r"\b(?=[A-Z\d]*[A-Z])(?=(?:[A-Z]*\d){3})[A-Z\d]{8,}\b")
_FREEPHONE = re.compile(r"\b1-800-(?=[A-Z])")
_MARK_OF = re.compile(r"(?<![\w/.])(\d+\.\d+)/(\d+)(?![\w/]|\.\d)")
_QUOTIENT = re.compile(r"(?<=[\d)])\s/\s(?=\d)|(?<=\d)\s?÷\s?(?=\d)")
_SHORT_NUMBER = re.compile(r"\b[Nn]os?\.(?= ?\d)")
_PLAIN = re.compile(rf"(?<!\d){_NUMBER}|(?<![\w.])\.\d+|\d+")

_SET = {
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "50/50": "fifty fifty",
    "20/20": "twenty twenty",
}
_OUT_OF = (10, 100)  # 8/10 is a mark, not eight tenths
_FRACTIONS_BELOW = 16  # 18/20 is rather so many out of them


def speak_numbers(text: Aligned) -> None:
    """Every digit becomes English words."""
    text.sub(_VULGAR_SIGN, lambda found: f"{found[1]}{' ' if found[1] else ''}{_VULGAR[found[2]]}")
    text.sub(_FRACTION_SLASH, "/")
    text.sub(_GRADE, lambda found: f"{found[1]} {'plus' if found[2] == '+' else 'minus'}")
    text.apply(calendar.NAME_RULES)
    text.sub(_FOREIGN_DIGIT, lambda found: None if found[0].isascii() else _plain_digit(found[0]))
    if _DIGIT.search(text.text):
        text.apply(_FIRST)
        text.apply(calendar.RULES)
        text.apply(measures.RULES)
        text.sub(_POWER, _say_power)
        text.apply(_MIDDLE)
        text.apply(calendar.YEAR_RULES)
        text.apply(_LAST)
    else:
        text.sub(_POWER, _say_power)


def _plain_digit(char: str) -> str:
    value = unicodedata.digit(char, None)
    return "" if value is None else str(value)


def _say_power(found: re.Match[str]) -> str:
    exponent = found[1] or found[2].replace("⁻", "-").translate(_SUPERSCRIPTS)
    follows = " " if found.string[found.end() :][:1].isalnum() else ""
    if found.start() == 0 or not (found.string[found.start() - 1].isalnum() or ")" in found.string):
        return f" {integer(exponent)}" if exponent.isdecimal() else f" {exponent}"
    named = {"2": " squared", "3": " cubed"}.get(exponent)
    if named is None:
        sign, digits = ("minus ", exponent[1:]) if exponent[0] == "-" else ("", exponent)
        digits = integer(digits) if digits.isdecimal() else digits
        named = f" to the power of {sign}{digits}"
    return named + follows


def _say_telephone(found: re.Match[str]) -> str | None:
    digits = _DIGIT.findall(found[0])
    if not 7 <= len(digits) <= 15:
        return None
    groups = [digit_by_digit(group) for group in re.findall(r"\d+", found[0])]
    return ("plus " if found[0][0] == "+" else "") + ", ".join(groups)


def _say_code(found: re.Match[str]) -> str:
    """Letters and digits in turn, such as the number of a parcel."""
    runs = re.findall(r"[A-Z]+|\d+", found[0])
    return " ".join(digit_by_digit(run) if run.isdecimal() else run for run in runs)


def _say_groups(found: re.Match[str]) -> str | None:
    """A code in groups, such as an ISBN or the number of a card; a date is shorter."""
    groups = re.findall(r"\d+", found[0])
    if sum(map(len, groups)) < 9:
        return None
    return ", ".join(map(digit_by_digit, groups))


def _say_scientific(found: re.Match[str]) -> str:
    sign = "minus " if found[2].startswith("-") else ""
    return f"{decimal(found[1])} times ten to the power of {sign}{integer(found[2].strip('+-'))}"


def _say_fraction(found: re.Match[str]) -> str:
    whole, above, below = found[1], int(found[2]), int(found[3])
    if whole is None and below in _OUT_OF and above > 3:
        return f"{cardinal(above)} out of {cardinal(below)}"
    if 0 < above < below <= _FRACTIONS_BELOW and found[2][0] != "0":
        return (f"{integer(whole)} and " if whole else "") + fraction(above, below)
    if found[2][0] == "0" or found[3][0] == "0" or 0 < above <= 12 and above < below <= 31:
        said = f"{cardinal(above)} {cardinal(below)}"  # a month and a day
    elif above > below:
        said = f"{cardinal(above)} over {cardinal(below)}"
    else:
        said = f"{cardinal(above)} out of {cardinal(below)}"
    return (f"{integer(whole)} " if whole else "") + said


def _say_emergency(found: re.Match[str], ahead: str) -> str | None:
    is_number = is_count(last_word(ahead), int(found[0]), (found["after"] or "").strip())
    return None if is_number else digit_by_digit(found[0])


def _say_model(found: re.Match[str]) -> str:
    """Of an aircraft, a chip or a flight; FY2024 has a year."""
    digits = found[0].lstrip("-")
    is_year = len(digits) == 4 and int(digits) in RECENT_YEARS
    return f" {year(int(digits)) if is_year else digit_by_digit(digits)}"


def _say_version_letter(_: re.Match[str], ahead: str) -> str:
    return "" if last_word(ahead).lower() == "version" else "version "


def _say_postal(found: re.Match[str], ahead: str) -> str | None:
    """Behind the two letters of an American state."""
    if last_word(ahead) not in _STATES:
        return None
    return ", ".join(digit_by_digit(group) for group in found.groups() if group)


def _say_ordinal(found: re.Match[str]) -> str:
    plain = found[1].replace(",", "")
    said = ordinal(int(plain)) if len(plain) <= LARGEST_DIGITS else f"{digit_by_digit(plain)}th"
    return _apart(found, said + ("s" if found[0][-1] in "sS" else ""))


def _apart(found: re.Match[str], said: str) -> str:
    """Words in the place of digits, kept apart from letters that touched the digits."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return f"{' ' if before.isalpha() else ''}{said}{' ' if after.isalpha() else ''}"


def _spell(text: str) -> str:
    return " ".join(DIGITS[int(char)] if char.isdecimal() else char for char in text)


_FIRST: tuple[Rule, ...] = (
    (_SHORT_NUMBER, "number"),
    (_TENS, lambda found: {1: "tens", 2: "hundreds"}.get(found[1].count("0"), "thousands")),
    (_SIZES, lambda found: f" by {plural(integer(found[1]))}"),
    (_MILLIONS, " million"),
    (_CIRCA, "circa"),
    (_POSTAL, After(_say_postal)),
    (_RANK, "number "),
    (_ABOUT, "about "),
    (_HEX, lambda found: _spell(found[0])),
    (_ADDRESS, lambda found: " dot ".join(map(integer, found[0].split(".")))),
    (_PART, lambda found: _PARTS[found[0].lower()]),
    (_ZONE, " minus "),
    (_CODE, _say_code),
    (_FREEPHONE, "one, eight hundred, "),
    (_TELEPHONE, _say_telephone),
    (_GROUPS, _say_groups),
)
_MIDDLE: tuple[Rule, ...] = (
    (_SCIENTIFIC, _say_scientific),
    (_RECORD, lambda found: ", ".join(map(integer, found[0].split("-")))),
    (_VERSION_LETTER, After(_say_version_letter)),
    (_VERSION, lambda found: _apart(found, " point ".join(map(integer, found[0].split("."))))),
    (_EMERGENCY, After(_say_emergency)),
    (_ALWAYS, lambda found: _SET[found[0]]),
    (_MARK_OF, lambda found: f"{decimal(found[1])} out of {integer(found[2])}"),
    (_FRACTION, _say_fraction),
    (_ORDINAL, _say_ordinal),
    (_THOUSANDS, " thousand"),
    (_QUOTIENT, " divided by "),
    (_RATIO, " to "),
    (_PRODUCT, " times "),
    (_SIZE, " by "),
    (_TIMES, " times"),
    (_MODEL, _say_model),
    (_PLUS_BEHIND, " plus"),
    (_JOINED, " "),
    (_MINUS, "minus "),
    (_PLUS, "plus "),
    (_DIFFERENCE, " minus "),
    (_RANGE, " to "),
    (_SLASH, " slash "),
)
_LAST: tuple[Rule, ...] = ((_PLAIN, lambda found: _apart(found, decimal(found[0]))),)
