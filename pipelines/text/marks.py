"""What ends a clause, and what must stay with the word that follows it."""

from __future__ import annotations

import re
import unicodedata

SENTENCE_MARKS = frozenset(".!?…")
CLAUSE_MARKS = frozenset(",;:")
DASHES = frozenset({"-", "–", "—", "--"})
WIDE_MARKS = frozenset("。！？；，、：．｡､")  # scripts without spaces end clauses with these
OPENERS = "\"'“‘«([{*_`~"
CLOSERS = "\"'”’»)]}*_`~」』）】》〉"

# Always followed by what they belong to, so nothing is cut after them. "No." is not here: in
# speech it is an answer far more often than a number.
LEADING = frozenset(
    "mr. mrs. ms. mx. dr. prof. sr. jr. st. mt. fr. rev. hon. gen. col. capt. lt. sgt. sen. rep. "
    "gov. vs. fig. approx. ca. cf. eq. vol. e.g. i.e.".split()
)
# Their full stop says nothing about the end of a sentence.
ABBREVIATIONS = LEADING | frozenset(
    "etc. al. inc. ltd. co. corp. dept. est. ave. blvd. rd. jan. feb. mar. apr. jun. jul. aug. "
    "sep. sept. oct. nov. dec. mon. tue. wed. thu. fri. hr. hrs. min. sec.".split()
)
INITIALS = re.compile(r"([^\W\d_]\.)+")  # "J.", "U.S.", "p.m."


SENTENCE_BEGINNING = re.compile(r"[A-Z][a-z'’]|[AI]\s")
_GOES_ON_BEHIND = re.compile(r"[,;:!?.…)\]]|\s+(?:[a-z\d(&]|[A-Z]{2})|[-–/\w]")


def goes_on_behind(rest: str) -> bool:
    """Whether a sentence goes on behind the full stop of an abbreviation."""
    return _GOES_ON_BEHIND.match(rest) is not None


def ends_clause(word: str) -> bool:
    """Whether a word, with its punctuation and followed by white space, ends a clause."""
    if word in DASHES:
        return True
    bare = word.rstrip(CLOSERS)
    if not bare:
        return False
    last = bare[-1]
    if last != ".":
        return last in SENTENCE_MARKS or last in CLAUSE_MARKS or last in WIDE_MARKS or last == "—"
    plain = bare.lstrip(OPENERS).lower()
    return plain not in ABBREVIATIONS and INITIALS.fullmatch(plain) is None


def leads(word: str) -> bool:
    """Whether a word belongs to the next one: titles, "e.g.", one initial of a name."""
    plain = word.lstrip(OPENERS)
    return plain.lower() in LEADING or (len(plain) == 2 and plain[0].isupper() and plain[1] == ".")


def may_go_on(word: str) -> bool:
    """Whether the last mark of a word may be inside it: "3." of "3.5", "www." of an address."""
    head = word[:-1]
    is_inner = head[-1:].isdigit() or head.lower() == "www" or any(c in head for c in "./@:")
    return word[-1:] in ".,:" and is_inner


def is_wide(char: str) -> bool:
    """Whether a character is of a script written without spaces between words."""
    code = ord(char)
    return (
        0x3040 <= code <= 0x30FF  # kana
        or 0x3400 <= code <= 0x9FFF  # CJK ideographs
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
    )


def joins_previous(char: str) -> bool:
    """Whether a character is drawn together with the one before it."""
    return char == "\u200d" or unicodedata.category(char).startswith("M")
