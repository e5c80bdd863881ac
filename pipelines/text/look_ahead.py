"""What cannot be said before more is read: open constructs, and numbers with their units."""

from __future__ import annotations

import re

from pipelines.text.calendar import MONTH_DAY, MONTH_WORD
from pipelines.text.counts import COUNTS, is_plural
from pipelines.text.marks import CLOSERS, OPENERS, SENTENCE_BEGINNING, goes_on_behind
from pipelines.text.markup import CODE, MATH, TAG, is_formula
from pipelines.text.measures import CODES, SCALES, UNITS

HELD_CHARS = 200  # that a construct may stay open for; then its marks are marks without meaning

OPENER = re.compile(r"`{1,3}|\$\$?|\\\(|\\\[|<|\]\(")
_DESTINATION = re.compile(
    r"\]\((?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)
_DESTINATION_SO_FAR = re.compile(r"\]\([^\s()]*(?:\([^\s()]*\)?[^\s()]*)*(?:\s+(?:[\"'][^\n]*)?)?$")
_TAG_SO_FAR = re.compile(r"<(?:!(?:-.*)?|/?(?:[A-Za-z][\w-]*(?:\s[^<>]*|/)?)?)$", re.DOTALL)

_DIGIT = re.compile(r"[\d²³¼-¾⅐-⅞]")
_DONE = re.compile(r"\d[^\w\s]*[.!?;:][^\w\s]*$")  # a number, and the end of its sentence
_GOES_ON = re.compile(
    r"[-–−—+±×*/=<>≤≥≈^~(]*(?:[.,]?\d|[$€£¥₹](?:\d|$))|[-–−—+×*/=<>≤≥≈±]+$|\+?\(?\d"
)
# What may stand behind a number and say what it counts, or lead to a second one.
_WORDS_ON = {*UNITS, *SCALES, *CODES} | set("am pm AM PM a.m p.m A.M P.M sq fl C F".split())
_WORDS_ON |= set("k K M B T mn bn $ € £ of to x percent".split())
_LEADS_NUMBER = {*CODES} | set("No. Nos. no. p. pp. ch. Ch. sec. Sec. c. ~ $ € £ ¥ # №".split())
_HALF_DAYS = {"am", "pm", "a.m.", "p.m.", "am.", "pm."}
_HALF_UNITS = {"sq", "fl", "sq.", "fl.", "°"}  # before ft, oz, C
_NAMES_ON = {"St.", "Dr."}
# Their full stop may also be that of a sentence.
_MAY_END = set(
    "etc. al. inc. ltd. corp. ave. blvd. rd. dept. mon. tue. tues. wed. thu. thur.".split()
)
_MAY_END |= set(
    "thurs. fri. sat. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec.".split()
)
_MAY_END_MEASURE = set(
    "min. hr. hrs. sec. tsp. tbsp. oz. lb. lbs. ft. mi. yd. pt. qt. gal.".split()
)
_SCRAPED = OPENERS + CLOSERS + "|>"


def construct_end(buffer: str, at: int, opener: str) -> int | None:
    """Where the construct that may open here ends; 0: there is none; None: it is not closed yet."""
    rest = buffer[at : at + HELD_CHARS]
    match opener:
        case "<":
            found, pending = TAG.match(buffer, at), _TAG_SO_FAR.match(rest) is not None
        case "](":
            found = _DESTINATION.match(buffer, at)
            pending = _DESTINATION_SO_FAR.match(rest) is not None
        case "`" | "``" | "```":
            found, pending = CODE.match(buffer, at), "\n" not in rest
        case r"\(" | r"\[" | "$$":
            found, pending = MATH.match(buffer, at), True
        case _:
            found = MATH.match(buffer, at)
            inner = rest[1:]
            pending = (
                not inner
                or "\n" not in inner
                and not inner[0].isspace()
                and _DIGIT.match(inner) is None
                and "$" not in inner
                and is_formula(inner)
            )
    if found and found.end() <= at + HELD_CHARS:
        return found.end()
    return None if pending and len(rest) < HELD_CHARS else 0


def goes_on(line: str, word: str, rest: str, final: bool) -> bool | None:
    """Whether a word must be read with the one behind it; None if that must be read to tell."""
    bare = word.strip(_SCRAPED) or (word if word in ("*", "~", "-") else "")
    if not bare:
        return False
    is_number = _DIGIT.search(bare) is not None and _DONE.search(bare) is None
    is_month = MONTH_WORD.fullmatch(bare) is not None
    is_name = bare in _NAMES_ON
    leads = bare in _LEADS_NUMBER
    if bare in _HALF_UNITS and _DIGIT.search(line):
        return True
    if bare.lower() in _HALF_DAYS and _DIGIT.search(line):
        if not rest.strip():
            return None if not final else False
        return rest.lstrip()[0] in "-–—" or _begins_sentence(rest.lstrip(" "), final)
    if bare.lower() in _MAY_END or (bare in _MAY_END_MEASURE and _DIGIT.search(line)):
        head = rest.lstrip(" ")
        if not head:
            return False if final else None
        return goes_on_behind(f" {head}") if len(head) > 1 or not head.isalpha() or final else None
    if bare in SCALES and _DIGIT.search(line):
        head, blank, _ = rest.partition(" ")
        if not blank and "\n" not in head and not final:
            return None
        return re.split(r"[-/.,;:!?)\s]", head, maxsplit=1)[0] in UNITS
    if bare in UNITS and not is_number and _DIGIT.search(line):
        head = rest.lstrip(" ")
        if not head:
            return False if final or rest else None
        return head[0] in "x×-–−" and (len(head) < 2 or not head[1].isalpha())
    if not (is_number or is_month or is_name or leads):
        # A sign between two numbers was joined to the first: now it waits for the second.
        is_sign = _DIGIT.search(line) is not None and re.fullmatch(r"[-–−—+×*/=<>x]|to|of", bare)
        return _follows_number(rest, final) if is_sign else False
    if bare.endswith(",") and not MONTH_DAY.search(line.rstrip(_SCRAPED)):
        return False
    following = rest if rest.startswith("* ") else rest.lstrip(_SCRAPED + " ")
    head, blank, _ = following.partition(" ")
    head = re.split(r"\s", head, maxsplit=1)[0]
    if rest[:1] == "\n" or (final and not head):
        return False
    is_whole = final or blank != "" or any(char.isspace() for char in following)
    if not head:
        return None if not is_whole else False
    if is_name:
        return True
    if leads or is_month or bare.endswith(","):
        return head[0].isdigit()
    if not is_whole:
        return None
    plain = head.strip(_SCRAPED + ".,!?;:")
    return (
        plain in _WORDS_ON
        or re.split("[-–—]", plain, maxsplit=1)[0].rstrip(".") in _WORDS_ON
        or plain.split("/")[0] in UNITS
        or _GOES_ON.match(head) is not None
        or MONTH_WORD.match(plain) is not None
        or (COUNTS.fullmatch(bare) is not None and is_plural(plain))
    )


def _begins_sentence(rest: str, final: bool) -> bool | None:
    """Whether a word stands there that a sentence may begin with."""
    if rest[:1].isupper() and len(rest) == 1 and not final:
        return None
    return SENTENCE_BEGINNING.match(rest) is not None


def _follows_number(rest: str, final: bool) -> bool | None:
    head = rest.lstrip(_SCRAPED + " ")
    if not head:
        return False if final or "\n" in rest else None
    return head[0].isdigit() or head[0] in "$€£¥-−+(" or MONTH_WORD.match(head) is not None
