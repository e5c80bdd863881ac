"""Dates, years and times of the day, in English words."""

from __future__ import annotations

import re

from pipelines.text.aligned import After, Rule, last_word
from pipelines.text.counts import is_count
from pipelines.text.marks import goes_on_behind
from pipelines.text.number_words import cardinal, digit_by_digit, integer, ordinal, plural, year

MONTHS = (
    "January February March April May June July August September October November December".split()
)
_ABBREVIATED = {month[:3].lower(): month for month in MONTHS} | {"sept": "September"}
_WEEKDAYS = {"mon": "Monday", "tue": "Tuesday", "tues": "Tuesday", "wed": "Wednesday"} | {
    "thu": "Thursday",
    "thur": "Thursday",
    "thurs": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
_MONTH = r"(?P<month>(?:" + "|".join(MONTHS) + r")\b|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov"
_MONTH += r"|Dec)\b\.?)"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_FREE = r"(?<![\w.,:/$€£¥-])"  # nothing that a number could be a part of stands before
_END = r"(?![\w/:]|[.,-]\d)"
_YEARS = r"10[1-9]\d|1[1-9]\d\d|20\d\d"
MONTH_WORD = re.compile(_MONTH)
MONTH_DAY = re.compile(rf"{_MONTH} {_DAY},$")  # a year may follow

_ISO = re.compile(r"(?<![\w/.-])(\d{4})-(\d\d)-(\d\d)(?:T(?=\d\d:)|(?![\w-]))")
_SLASHED = re.compile(r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d\d)(?![\w/-]|\.\d)")
_MONTH_SLASH_DAY = re.compile(r"(?<![\w/.,-])(\d{1,2})/(\d{1,2})(?![\w/%-]|[.,]\d)(?! of\b)")
_WHEN = frozenset(
    {"on", "due", *(f"{day}day" for day in "mon tues wednes thurs fri satur sun".split())}
)
_WHEN |= frozenset(_WEEKDAYS) | {f"{day}." for day in _WEEKDAYS}
_WHEN_OR_HOW_MUCH = frozenset("by until till before after from since to".split())  # by 1/2
_MONTH_FIRST = re.compile(rf"(?<!\w){_MONTH}\s{_DAY}(?![\w/%]|[.,:]\d)(?P<year>,?\s\d{{4}}{_END})?")
_DAY_FIRST = re.compile(rf"{_FREE}{_DAY}(?:\s(?:of\s)?){_MONTH}(?P<year>,?\s\d{{4}}{_END})?")
_MONTH_YEAR = re.compile(rf"(?<!\w){_MONTH}(?P<year>,?\s\d{{4}}){_END}")
_DECADE = re.compile(r"(?<![\w.,$€£¥])(?:['’]?(\d0)|(1\d\d0|20\d0))['’]?s\b")
_SPAN = re.compile(rf"{_FREE}({_YEARS})\s?[-–−]\s?({_YEARS}|\d\d)(?![\w%°]|[./,-]\d)")
_YEAR = re.compile(rf"{_FREE}({_YEARS})(?![\w%°$€£¥/]|[.,:]\d)(?=(?P<after> [a-z]+\b)?)")
_SHORT_YEAR = re.compile(r"(?<![\w'’])['’](\d\d)(?![\w'’])")
_SHORT_DAY = r"(Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)"
_SHORT_NAME = re.compile(
    r"(?<![\w.])(Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun(?=\.,)"
    r"|Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec)\."
)
_LONE_DAY = re.compile(r"(?<![\w.])(Tues?|Wed|Thur?s?|Fri|Mon(?=[^\w\s]))(?![\w.'’-])")
_DAY_SPAN = re.compile(rf"(?<!\w){_SHORT_DAY}\.?\s?[-–—]\s?{_SHORT_DAY}(?![\w-])(?:\.(?=[,;:)]))?")
_DAY_CELL = re.compile(rf"(?<![\w-]){_SHORT_DAY}(?![\w.-])")
SHORT_DAYS = frozenset("Mon Tue Tues Wed Thu Thur Thurs Fri".split())

_HALF_DAY = r"(?:\s?([ap])\.?m(?:\.(?![A-Za-z])|\b))"
_CLOCK = re.compile(rf"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?![\d:]){_HALF_DAY}?", re.I)
_CLOCK_SECONDS = re.compile(
    rf"(?<![\d:.,])(\d{{1,2}}):([0-5]\d):([0-5]\d)(?![\d:]){_HALF_DAY}?", re.I
)
_CLOCK_SPAN = re.compile(r"(?<=:\d\d)\s?[-–—]\s?(?=\d)|(?<=\d)\s?[-–—]\s?(?=\d{1,2}:\d\d)")
_HOUR = re.compile(rf"(?<![\w:.,])(1[0-2]|0?[1-9]){_HALF_DAY}(?!\w)", re.I)
_HALF_DAY_SPAN = re.compile(r"(?<=\d)\s?([ap])\.?m\.?\s?[-–—]\s?(?=\d)", re.I)
_HOUR_SPAN = re.compile(
    rf"(?<![\w:.,])(1[0-2]|[1-9])\s?[-–]\s?(?=(?:1[0-2]|[1-9])(?::\d\d)?{_HALF_DAY})", re.I
)


def _month(name: str) -> str:
    return _ABBREVIATED[name.rstrip(".").lower()[: 4 if name.lower().startswith("sept") else 3]]


def _say_date(year_digits: str, month: int, day: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{MONTHS[month - 1]} {ordinal(day)}, {_say_year(year_digits)}"


def _say_year(digits: str) -> str:
    if len(digits) == 2:
        return f"{'oh ' if digits[0] == '0' else ''}{cardinal(int(digits))}"
    return year(int(digits)) if digits[0] != "0" else digit_by_digit(digits)


def _say_iso(found: re.Match[str]) -> str | None:
    said = _say_date(found[1], int(found[2]), int(found[3]))
    return said + ", " if said and found[0].endswith("T") else said


def _say_slashed(found: re.Match[str]) -> str | None:
    """Month first, as Americans write it, unless only the other way is a date.

    With dots, as Europeans write it, the day is first.
    """
    first, second = int(found[1]), int(found[3])
    if found[2] == "/" and first <= 12:
        return _say_date(found[4], first, second)
    if found[2] == "/" or len(found[4]) == 4:
        return _say_date(found[4], second, first) or _say_date(found[4], first, second)
    return None


def _say_named(found: re.Match[str]) -> str:
    said = _month(found["month"])
    if "day" in found.re.groupindex:
        day = ordinal(int(found["day"]))
        of = "of " if " of " in found[0] else ""
        is_first = found.start("month") < found.start("day")
        said = f"{said} {day}" if is_first else f"{day} {of}{said}"
    if found["year"]:
        comma = "," if "," in found["year"] else ""
        said += f"{comma} {_say_year(found['year'].strip(' ,'))}"
    return said


def _say_decade(found: re.Match[str]) -> str:
    return plural(cardinal(int(found[1])) if found[1] else year(int(found[2])))


def _say_span(found: re.Match[str]) -> str | None:
    if len(found[2]) == 2 and int(found[2]) <= int(found[1][2:]):
        return None  # 2026-11 is no span of years
    return f"{_say_year(found[1])} to {_say_year(found[2])}"


def _half(letter: str | None) -> str:
    # Dotted: a voice reads "am" as the verb.
    return f" {letter.lower()}.m." if letter else ""


def _say_clock(found: re.Match[str]) -> str:
    hours, minutes, half = int(found[1]), int(found[2]), _half(found[3])
    if minutes:
        said = f"{cardinal(hours)} {'oh ' if minutes < 10 else ''}{cardinal(minutes)}"
    elif half:
        said = cardinal(hours)
    elif 1 <= hours <= 12:
        said = f"{cardinal(hours)} o'clock"
    else:
        said = f"{cardinal(hours)} hundred" if hours % 24 else "midnight"
    return said + half


def _say_seconds(found: re.Match[str]) -> str:
    parts = [f"{cardinal(int(found[1]))}"]
    parts += [
        f"{'oh ' if 0 < int(part) < 10 else ''}{cardinal(int(part))}"
        for part in (found[2], found[3])
    ]
    return " ".join(parts) + _half(found[4])


def _say_short_name(found: re.Match[str]) -> str:
    name = found[1].lower()
    dot = "" if goes_on_behind(found.string[found.end() :]) else "."
    return (_WEEKDAYS.get(name) or _month(name)) + dot


def _say_day(found: re.Match[str]) -> str:
    return " to ".join(_WEEKDAYS[name.lower()] for name in found.groups())


def _say_lone_year(found: re.Match[str], ahead: str) -> str | None:
    is_year = not is_count(last_word(ahead), int(found[1]), (found["after"] or "").strip())
    # Hundreds are said as a year is, whatever they count.
    return _say_year(found[1]) if is_year or int(found[1]) % 1000 and found[1][2:] == "00" else None


def _say_month_day(found: re.Match[str], ahead: str) -> str | None:
    """12/25 behind a word that says when."""
    month, day = int(found[1]), int(found[2])
    before = last_word(ahead).rstrip(",").lower()
    is_date = before in _WHEN or before in _WHEN_OR_HOW_MUCH and month > day
    if not is_date or not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{MONTHS[month - 1]} {ordinal(day)}"


RULES: tuple[Rule, ...] = (
    (_ISO, _say_iso),
    (_MONTH_SLASH_DAY, After(_say_month_day)),
    (_SLASHED, _say_slashed),
    (_CLOCK_SPAN, " to "),
    (_CLOCK_SECONDS, _say_seconds),
    (_HALF_DAY_SPAN, lambda found: f" {found[1].lower()}.m. to "),
    (_HOUR_SPAN, lambda found: f"{integer(found[1])} to "),
    (_CLOCK, _say_clock),
    (_HOUR, lambda found: cardinal(int(found[1])) + _half(found[2])),
    (_MONTH_FIRST, _say_named),
    (_DAY_FIRST, _say_named),
    (_MONTH_YEAR, _say_named),
    (_DECADE, _say_decade),
    (_SHORT_YEAR, lambda found: _say_year(found[1])),
    (_SPAN, _say_span),
)
# For text without digits too.
NAME_RULES: tuple[Rule, ...] = (
    (_DAY_SPAN, _say_day),
    (_SHORT_NAME, _say_short_name),
    (_LONE_DAY, _say_day),
)
CELL_RULES: tuple[Rule, ...] = ((_DAY_CELL, _say_day),)  # of a table
YEAR_RULES: tuple[Rule, ...] = ((_YEAR, After(_say_lone_year)),)
