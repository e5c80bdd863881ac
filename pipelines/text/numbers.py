"""Numbers in English words."""

from __future__ import annotations

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (10**2, "hundred"))
LARGEST = 10**12 - 1  # above it, and with leading zeros, numbers are codes: read digit by digit
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(value: int) -> str:
    """0 <= value <= LARGEST, such as "three hundred forty two thousand five"."""
    if value < 20:
        return SMALL[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return TENS[tens] + (f" {SMALL[ones]}" if ones else "")
    for scale, name in SCALES:
        if value >= scale:
            head, rest = divmod(value, scale)
            return f"{cardinal(head)} {name}" + (f" {cardinal(rest)}" if rest else "")
    raise ValueError(f"{value} is not a number that has a name here")


def ordinal(value: int) -> str:
    head, _, last = cardinal(value).rpartition(" ")
    if last in ORDINALS:
        last = ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last = f"{last}th"
    return f"{head} {last}".strip()


def digit_by_digit(digits: str) -> str:
    return " ".join(SMALL[int(digit)] for digit in digits)


def integer(digits: str) -> str:
    """A run of ASCII digits, as a number where it can be one, else digit by digit."""
    is_code = (len(digits) > 1 and digits[0] == "0") or len(digits) > len(str(LARGEST))
    return digit_by_digit(digits) if is_code else cardinal(int(digits))


def decimal(whole: str, fraction: str) -> str:
    """The digits before and after a decimal point; `fraction` may be empty."""
    return integer(whole) + (f" point {digit_by_digit(fraction)}" if fraction else "")


def clock_time(hours: int, minutes: int) -> str:
    if minutes == 0:
        return f"{cardinal(hours)} o'clock"
    return f"{cardinal(hours)} {'oh ' if minutes < 10 else ''}{cardinal(minutes)}"
