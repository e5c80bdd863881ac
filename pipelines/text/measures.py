"""Units and money, in English words. Names and symbols of units come from the CLDR."""

from __future__ import annotations

import re

from babel.core import Locale
from babel.numbers import get_currency_name
from babel.units import format_unit

from pipelines.text.aligned import After, Rule
from pipelines.text.number_words import cardinal, decimal, integer

_ENGLISH = Locale("en", "US")
# CLDR units whose symbols mean nothing else behind a number.
_UNITS = """
length-kilometer length-meter length-centimeter length-millimeter length-micrometer
length-nanometer length-mile length-yard length-foot area-square-kilometer area-square-meter
area-square-centimeter area-square-mile area-square-foot area-hectare volume-cubic-meter
volume-cubic-centimeter volume-liter volume-milliliter volume-gallon volume-pint volume-quart
volume-tablespoon volume-teaspoon volume-fluid-ounce mass-kilogram mass-gram mass-milligram
mass-microgram mass-pound mass-ounce duration-hour duration-minute duration-second
duration-millisecond duration-microsecond duration-nanosecond speed-kilometer-per-hour
speed-mile-per-hour speed-meter-per-second speed-knot temperature-celsius temperature-fahrenheit
frequency-hertz frequency-kilohertz frequency-megahertz frequency-gigahertz digital-kilobyte
digital-megabyte digital-gigabyte digital-terabyte digital-petabyte digital-kilobit
digital-megabit digital-gigabit electric-volt electric-milliampere electric-ohm power-watt
power-kilowatt power-megawatt power-gigawatt power-horsepower energy-kilowatt-hour energy-joule
energy-kilojoule energy-kilocalorie pressure-pascal pressure-kilopascal pressure-hectopascal
pressure-pound-force-per-square-inch consumption-mile-per-gallon
""".split()
_NO_SYMBOL = {"m", "s", "h", "g", "#", "in", "′", "″", "c", "kt", "°", "C", "F", "B", "pt"}
_FURTHER = {
    "m": ("meter", "meters"),
    "s": ("second", "seconds"),
    "secs": ("second", "seconds"),
    "h": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "mins": ("minute", "minutes"),
    "g": ("gram", "grams"),
    "tbsp": ("tablespoon", "tablespoons"),
    "kgs": ("kilogram", "kilograms"),
    "lbs": ("pound", "pounds"),
    "l": ("liter", "liters"),
    "ml": ("milliliter", "milliliters"),
    "KB": ("kilobyte", "kilobytes"),
    "MiB": ("mebibyte", "mebibytes"),
    "GiB": ("gibibyte", "gibibytes"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "km/hr": ("kilometer per hour", "kilometers per hour"),
    "µm": ("micrometer", "micrometers"),
    "µs": ("microsecond", "microseconds"),
    "µg": ("microgram", "micrograms"),
    "kΩ": ("kilohm", "kilohms"),
    "mmHg": ("millimeter of mercury", "millimeters of mercury"),
    "mcg": ("microgram", "micrograms"),
    "IU": ("international unit", "international units"),
    "dL": ("deciliter", "deciliters"),
    "mmol": ("millimole", "millimoles"),
    "mAh": ("milliampere hour", "milliampere hours"),
    "Wh": ("watt hour", "watt hours"),
    "bpm": ("beat per minute", "beats per minute"),
    "yr": ("year", "years"),
    "yrs": ("year", "years"),
    "pts": ("point", "points"),
    "Tbsp": ("tablespoon", "tablespoons"),
    "dB": ("decibel", "decibels"),
    "rpm": ("R P M", "R P M"),
    "fps": ("frame per second", "frames per second"),
    "px": ("pixel", "pixels"),
    "º": ("degree", "degrees"),
    "°": ("degree", "degrees"),
    "° C": ("degree Celsius", "degrees Celsius"),
    "° F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "%": ("percent", "percent"),
    "‰": ("per mille", "per mille"),
}


def _names() -> dict[str, tuple[str, str]]:
    """Symbol to (one, many)."""
    found: dict[str, tuple[str, str]] = {}
    for unit in _UNITS:
        one, many = (format_unit(count, unit, "long", locale=_ENGLISH)[2:] for count in (1, 2))
        for length in ("short", "narrow"):
            symbol = format_unit(2, unit, length, locale=_ENGLISH)[1:].strip()
            if symbol not in _NO_SYMBOL:
                found.setdefault(symbol, (one, many.replace("-", " ")))
    return found | _FURTHER


UNITS = _names()
SCALES = ("hundred", "thousand", "million", "billion", "trillion")
_LONGEST_FIRST = sorted(UNITS, key=len, reverse=True)
_SYMBOL = "|".join(map(re.escape, _LONGEST_FIRST))
_NUMBER = r"(?:\d[\d,]*\d|\d)(?:\.\d+)?"
_UNIT = re.compile(
    rf"(?P<range>\d\s?(?:-|–|to)\s?)?(?P<number>(?<![\d.]){_NUMBER}|(?<!\d)\.\d+)"
    rf"(?P<scale>\s(?:{'|'.join(SCALES)}))?(?P<gap>[ \u00a0\u202f-]?)"
    rf"(?P<unit>{_SYMBOL})(?P<per>\s?/\s?(?:{_SYMBOL}|[a-z]{{3,}}))?"
    r"(?P<power>[²³]|\^[23])?(?![\w°'’])(?:\.(?=[,;:)]|\s+[a-z\d(]))?"
)
_SAME_UNIT = re.compile(rf"(?<=\d)(\s?(?:{_SYMBOL}))\s?[-–]\s?(?=[-−]?\d[\d.,]*\1(?!\w))")
_SQUARE = re.compile(r"(?<=\d )sq\.\s?(?=(?:ft|in|mi|m|km|yd)\b)")
# Of what is said in front of a number: the rest of a size, of a range or of a fraction.
_NUMBERS_BEFORE = re.compile(r"[\d.,/x×\s-]*$")
_PART_OF_ONE = re.compile(r"(?<![\d,.])(?:(\d+)\s)?(\d+)/$")
_FEET = re.compile(r"(?<![\w.])(\d{1,2})\s?['’′]\s?(\d{1,2})(?:\s?(?:\"|”|″|''))?(?!\w)")
_PRIME = re.compile(r"(?<=\d)([′″])")
_PER = {"h": "hour", "hr": "hour", "min": "minute", "s": "second", "sec": "second"} | {
    "wk": "week",
    "mo": "month",
    "yr": "year",
    "lb": "pound",
    "kg": "kilogram",
    "GB": "gigabyte",
}
_PER_SHORT = re.compile(r"(?<=\bper )(?:" + "|".join(_PER) + r")\b")
_HOURS_MINUTES = re.compile(r"(?<=\d)(\s?h(?:rs?)?\s?\d{1,2})\s?m\b")
_INCHES = re.compile(r"(?<=\d/\d)[\"″]|(?<=\d/\d\d)[\"″]")
INCH_MARK = "\ue000"  # in the place of a quotation mark behind a number that closes nothing
_LONE_INCHES = re.compile(rf"(?<![\d.])({_NUMBER})\s?{INCH_MARK}")
# (one, many), (one part, many parts)
_MONEY = {
    "$": (("dollar", "dollars"), ("cent", "cents")),
    "€": (("euro", "euros"), ("cent", "cents")),
    "£": (("pound", "pounds"), ("penny", "pence")),
    "¥": (("yen", "yen"), None),
    "₹": (("rupee", "rupees"), ("paisa", "paise")),
    "₩": (("won", "won"), None),
    "₽": (("ruble", "rubles"), ("kopek", "kopeks")),
}
_SIGN = "[" + "".join(_MONEY) + "]"
_SCALE_OF = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion"} | {
    "t": "trillion",
    "tn": "trillion",
}
_SCALE = rf"(?:\s?(?P<scale>{'|'.join(SCALES)}|(?:[kKMBTmb]|mn|[bB]n|tn)(?!\w)))?"
_PREFIXED = re.compile(
    rf"(?:(?<![A-Za-z])(?:US|A|C|CA|AU|NZ|HK)(?=\$))?(?P<sign>{_SIGN})\s?(?P<amount>{_NUMBER}|\.\d+)"
    rf"(?:\s?[-–]\s?{_SIGN}?(?P<upto>{_NUMBER}))?{_SCALE}(?P<per>\s?/\s?(?=[A-Za-z]))?"
)
_SUFFIXED = re.compile(rf"(?<![\w.])(?P<amount>{_NUMBER}){_SCALE}\s?(?P<sign>{_SIGN})(?!\d)")
_DEBT = re.compile(rf"(?<![\w)])[-−](?={_SIGN}\s?\.?\d)")
_CENTS = re.compile(rf"(?<![\w.])({_NUMBER})\s?¢")
CODES = ("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "CNY", "INR", "SEK", "NOK", "MXN", "BRL")
_CODE = "|".join(CODES)
_CODE_BEHIND = re.compile(rf"(?<=\d)(\s?)({_CODE})\b")
_CODE_BEFORE = re.compile(rf"\b({_CODE})\s?({_NUMBER})(?![\w,.]*\d)")
_DECIMAL_COMMA = re.compile(
    r"(?<![\w.,])(?:(?P<grouped>\d{1,3}(?:\.\d{3})+)|(?P<plain>\d+)),(?P<part>\d\d?)(?![\d,]|\.\d)"
)
_COUNTED = re.compile(rf"\s?(?:{_SYMBOL}|percent|{'|'.join(SCALES)}|{_CODE}|{_SIGN})(?!\w)")


def _is_attribute(found: re.Match[str], ahead: str) -> bool:
    """Whether it says what something is like, as in "a 5 km run", and so stays singular."""
    words = _NUMBERS_BEFORE.sub("", ahead).lower().split()
    follows = found.string[found.end() :].strip()[:1]
    return words[-1:] in (["a"], ["an"]) and (not follows or follows.isalpha() or follows in "(-")


def _say_inches(found: re.Match[str], ahead: str) -> str:
    is_one = found[1] == "1" or _is_attribute(found, ahead)
    return f"{found[1]} {'inch' if is_one else 'inches'}"


def _say_decimal_comma(found: re.Match[str]) -> str | None:
    """1.234,56, or 3,5 with what is counted: else it is two numbers."""
    before, after = found.string[: found.start()].rstrip(), found.string[found.end() :]
    is_amount = found["grouped"] or before[-1:] in _MONEY or _COUNTED.match(after)
    whole = (found["grouped"] or found["plain"]).replace(".", "")
    return f"{whole}.{found['part']}" if is_amount else None


def _say_unit(found: re.Match[str], ahead: str) -> str | None:
    unit, number = found["unit"], found["number"]
    is_one = number == "1" and not (found["range"] or found["scale"]) or found["gap"] == "-"
    is_one = is_one or _is_attribute(found, ahead)
    part = _PART_OF_ONE.search(found.string[: found.start()])
    if part and not part[1] and number.isdecimal() and int(part[2]) < int(number):
        is_one = True  # three quarters of one    # Glued letters are rather names, as in 5G.
    if unit in ("h", "s", "m", "g") and found["gap"] == "-":
        return None
    said = UNITS[unit][0 if is_one else 1]
    if found["per"]:
        per = found["per"].strip(" /")
        said += f" per {UNITS[per][0] if per in UNITS else per}"
    if found["power"]:
        is_square = found["power"][-1] in "²2"
        if " per " in said:
            said += " squared" if is_square else " cubed"
        else:
            said = f"{'square' if is_square else 'cubic'} {said}"
    return f"{found['range'] or ''}{number}{found['scale'] or ''} {said}"


def _say_amount(sign: str, amount: str, scale: str | None, *, is_attribute: bool = False) -> str:
    (one, many), parts = _MONEY[sign]
    if is_attribute:
        many, parts = one, parts and (parts[0], parts[0])
    whole, _, fraction = amount.partition(".")
    if scale or not parts or len(fraction) not in (0, 2):
        scaled = f" {_SCALE_OF.get(scale.lower(), scale)}" if scale else ""
        return f"{decimal(amount)}{scaled} {one if amount == '1' and not scale else many}"
    cents = int(fraction or "0")
    said_cents = f"{cardinal(cents)} {parts[0] if cents == 1 else parts[1]}"
    if cents and int(whole.replace(",", "") or "0") == 0:
        return said_cents
    said = f"{integer(whole or '0')} {one if whole == '1' else many}"
    return f"{said} and {said_cents}" if cents else said


def _say_prefixed(found: re.Match[str], ahead: str) -> str:
    is_attribute = _is_attribute(found, ahead)
    before = found.string[: found.start()]
    apart = " " if before[-1:].isalnum() else ""
    per = " per " if found["per"] else ""
    if not per and found.string[found.end() :][:1].isalnum():
        per = " "
    if found["upto"]:
        upto = _say_amount(found["sign"], found["upto"], found["scale"], is_attribute=is_attribute)
        return f"{apart}{decimal(found['amount'])} to {upto}{per}"
    said = _say_amount(found["sign"], found["amount"], found["scale"], is_attribute=is_attribute)
    return f"{apart}{said}{per}"


def _say_suffixed(found: re.Match[str]) -> str:
    return _say_amount(found["sign"], found["amount"], found["scale"])


def _currency(code: str, count: int) -> str:
    return get_currency_name(code, count=count, locale=_ENGLISH)


RULES: tuple[Rule, ...] = (
    (_DECIMAL_COMMA, _say_decimal_comma),
    (_DEBT, "minus "),
    (_PREFIXED, After(_say_prefixed)),
    (_SUFFIXED, _say_suffixed),
    (_CENTS, lambda found: f"{decimal(found[1])} {'cent' if found[1] == '1' else 'cents'}"),
    (_CODE_BEHIND, lambda found: f" {_currency(found[2], 2)}"),
    (_CODE_BEFORE, lambda found: f"{decimal(found[2])} {_currency(found[1], 2)}"),
    (_PER_SHORT, lambda found: _PER[found[0]]),
    (_HOURS_MINUTES, lambda found: f"{found[1]} minutes"),
    (_INCHES, " inch"),
    (_FEET, lambda found: f"{integer(found[1])} feet {integer(found[2])}"),
    (_LONE_INCHES, After(_say_inches)),
    (re.compile(INCH_MARK), " inches"),
    (_SQUARE, "sq "),
    (_SAME_UNIT, lambda found: f"{found[1]} to "),
    (_UNIT, After(_say_unit)),
    (_PRIME, lambda found: " minutes" if found[1] == "′" else " seconds"),
)
