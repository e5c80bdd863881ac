"""Signs, abbreviations and pictures: said as words where they have some, else dropped."""

from __future__ import annotations

import re
import unicodedata

import emoji

from pipelines.text.aligned import Aligned, Rule
from pipelines.text.calendar import MONTHS
from pipelines.text.marks import SENTENCE_BEGINNING, goes_on_behind
from pipelines.text.measures import INCH_MARK

_SHORT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "etc.": "et cetera",
    "vs.": "versus",
    "cf.": "compare",
    "approx.": "approximately",
    "avg.": "average",
    "ca.": "around",
    "et al.": "and others",
    "and/or": "and or",
    "he/she": "he or she",
    "his/her": "his or her",
    "a.k.a.": "also known as",
    "Mr.": "Mister",
    "Mrs.": "Missus",
    "Ms.": "Miz",
    "Dr.": "Doctor",
    "Prof.": "Professor",
    "Jr.": "Junior",
    "Sr.": "Senior",
    "Mt.": "Mount",
    "Rev.": "Reverend",
    "Gen.": "General",
    "Col.": "Colonel",
    "Capt.": "Captain",
    "Lt.": "Lieutenant",
    "Sgt.": "Sergeant",
    "Sen.": "Senator",
    "Gov.": "Governor",
    "Inc.": "Incorporated",
    "Ltd.": "Limited",
    "Corp.": "Corporation",
    "Dept.": "Department",
    "Ave.": "Avenue",
    "Blvd.": "Boulevard",
    "Rd.": "Road",
    "Apt.": "Apartment",
    "Blvd": "Boulevard",
    "Ctrl": "Control",
    "Cmd": "Command",
    "Fig.": "Figure",
    "Vol.": "Volume",
    "Eq.": "Equation",
}
# Their full stop is often that of a sentence, unless this goes on behind them.
_MAY_END = frozenset("etc. et al. Inc. Ltd. Corp. Dept. Ave. Blvd. Rd.".split()) | {"et al."}
_LOWER = {short.lower(): said for short, said in _SHORT.items()}
_ABBREVIATION = re.compile(
    r"(?<![\w.])(?:"
    + "|".join(re.escape(short) for short in sorted(_SHORT, key=len, reverse=True))
    + r"|E\.g\.|I\.e\.|Approx\.)(?:(?<=\W)|(?!\w))|\b(?:and/or|[Hh]e/she|[Hh]is/her)\b|\bvs\b"
)
_AVENUE = re.compile(r"(?<![\w.])Ave(?=,)")
# A saint stands before a name, a street behind one.
_SAINT = re.compile(r"(?<![\w.])St\.(?= (?!(?:The|It|We|He|She|They|Then|In|On|At|You)\b)[A-Z])")
_STREET = re.compile(r"(?<![\w.])(?:St|Ave)\.(?!\w)")
_DRIVE = re.compile(
    r"(?<![\w.])Dr\.(?!\w| ?[\W_]*[A-Z]| (?:de|van|von|al)\b)"
)  # a doctor has a name

_AFTERNOON = re.compile(r"(?<![\w.])(?:pm|PM)\b\.?")
# A comma pauses behind the hours of a sentence that has ended.
_HOURS_END = re.compile(
    r"(?<= [ap])\.m\.(?=\s(?!\w+day\b|(?:Eastern|Central|Mountain|Pacific|"
    rf"{'|'.join(MONTHS)})\b)(?:{SENTENCE_BEGINNING.pattern}))"
)
_WITHOUT = re.compile(r"(?<![\w/])w/o\b")
_WITH = re.compile(r"(?<![\w/])w/(?!\w/)")
_HEART = re.compile(r"(?<!\S)(?:<3|:-?[()DP]|;-?\))(?=[\s.,!?]|$)")  # a picture in letters
_END_OF_SENTENCE = re.compile(r"(?<=[a-z]{2})([.!?])(?=[A-Z][a-z])")

_NAMED = {"C++": "C plus plus", "C#": "C sharp", "F#": "F sharp"}
_NAME = re.compile(r"(?<!\w)(?:C\+\+|[CF]#)(?!\w)")

_BETWEEN = {"+": "plus", "=": "equals", "<": "less than", ">": "greater than", "==": "equals"} | {
    "≤": "less than or equal to",
    "≥": "greater than or equal to",
    "<=": "less than or equal to",
    ">=": "greater than or equal to",
    "!=": "not equal to",
    "≠": "not equal to",
    "≈": "approximately",
    "×": "times",
    "÷": "divided by",
    "±": "plus or minus",
    "∞": "infinity",
    "√": "the square root of",
    "−": "minus",
    "^": "to the power of",
}
_VARIABLE = re.compile(r"\$(?=[A-Za-z_{])|\${2,}")
_OPERATOR = re.compile(
    r"(?<!\S)[+<>](?!\S)|(?<!\S)[<>](?=\w)|(?<=\w)[<>](?=\w)|(?<=[\w)])\+(?=[\w(])"
    r"|<=|>=|!=|=+|[≤≥≠≈×÷±∞√−^]"
)
_SIGNS = {"&": "and", "@": "at", "°": "degrees", "º": "degrees", "%": "percent", "‰": "per mille"}
_SIGNS |= {"€": "euros", "£": "pounds", "$": "dollar", "¥": "yen", "¢": "cents", "₹": "rupees"}
_SIGNS |= {
    "§": "section",
    "#": "",
    "©": "copyright",
    "™": "",
    "®": "",
    "₩": "won",
    "₽": "rubles",
    "/": "slash",
}
_SIGN = re.compile("&+|[" + "".join(_SIGNS) + "]")
_PATH = re.compile(r"(?<=[\w:])\\+(?=\w)")
_PER = re.compile(r"(?<=[a-z])/(?=(?:second|minute|hour|day|week|month|year|night|person)\b)")
_ARROW = re.compile(r"\s*(?:[←-⇿➔-➾⟵-⟿]\ufe0f?|<?[-=]{1,2}>)\s*")
_DASH = re.compile(r"(?<=\w)\s*(?:—|--+)\s*(?=\w)|(?<=\w)\s–\s(?=\w)")
_SPAN = re.compile(r"(?<=\w)–(?=\w)")
_LEFT = re.compile(r"[*`~|\\<>\[\]{}#_^+=@%°$€£¥¢]+|--+|(?<!\w)-(?!\w)")
_MARKUP = re.compile(r"[*`~|\\<>\[\]{}#_^]+")
_BAR = re.compile(r"\s*\|+\s*(?=\S)")
_UNSPEAKABLE = re.compile(
    r"[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd]"
)
_SAID = "°©№™®"  # pictures by category that have words, or are dropped with the other signs
_JOINERS = "\u200c\u200d"  # of emoji; and, behind a letter, of Persian and Indian scripts
_MODIFIER = re.compile(r"[\u20e3\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
_DROPPED = "\0"
_DROPPED_RUN = re.compile(r"\0+")
_SPACED_MARK = re.compile(r"\s+(?=[.,!?;:…)]+(?:\s|$))")
_COMMA = re.compile(r"(?<=[a-z]),(?=[a-z])")
_OPEN_MARK = re.compile(r"(?<=[(])\s+")


def _say_road(found: re.Match[str], name: str) -> str:
    return name + ("" if goes_on_behind(found.string[found.end() :]) else ".")


def _say_short(found: re.Match[str]) -> str:
    said = _LOWER.get(found[0].lower(), "versus")
    if found[0][0].isupper() and found[0].lower().startswith(("he/", "his/")):
        said = said.capitalize()
    rest = found.string[found.end() :]
    has_ended = found[0] in _MAY_END and (rest[:1] == "." or not goes_on_behind(rest))
    return said + ("." if has_ended else "")


ABBREVIATION_RULES: tuple[Rule, ...] = (
    (_SAINT, "Saint"),
    (_STREET, lambda found: _say_road(found, "Street" if found[0] == "St." else "Avenue")),
    (_DRIVE, lambda found: _say_road(found, "Drive")),
    (_AVENUE, "Avenue"),
    (_ABBREVIATION, _say_short),
    (_AFTERNOON, "p.m."),
    (_WITHOUT, "without"),
    (_WITH, "with "),
    (_NAME, lambda found: _NAMED[found[0]]),
)
SIGN_RULES: tuple[Rule, ...] = (
    (_VARIABLE, ""),
    (_PATH, " "),
    (_PER, " per "),
    (_ARROW, ", "),
    (_DASH, ", "),
    (_SPAN, " "),
    (_OPERATOR, lambda found: f" {_BETWEEN.get(found[0], 'equals')} "),
    (_SIGN, lambda found: f" {_SIGNS[found[0][0]]} " if _SIGNS[found[0][0]] else ""),
    (_BAR, ", "),
    (_LEFT, ""),
)
# Text in another script keeps its digits, and the signs that belong to them.
FOREIGN_RULES: tuple[Rule, ...] = ((re.compile(INCH_MARK), '"'), (_BAR, ", "), (_MARKUP, ""))
SPACE_RULES: tuple[Rule, ...] = (
    (_HOURS_END, ".m.,"),
    (_END_OF_SENTENCE, lambda found: f"{found[1]} "),
    (_COMMA, ", "),
    (_SPACED_MARK, ""),
    (_OPEN_MARK, ""),
)


def drop_pictures(text: Aligned) -> None:
    """Emoji, in the sequences that Unicode lists, then whatever is a picture by its category."""
    text.sub(_UNSPEAKABLE, "")
    text.sub(_HEART, "")
    if text.text.isascii():
        return
    chars = list(text.text)
    for found in emoji.emoji_list(text.text):
        if found["emoji"] not in _SAID:
            start, end = found["match_start"], found["match_end"]
            chars[start:end] = _DROPPED * (end - start)
    for index, char in enumerate(chars):
        if _is_picture(char) or (char in _JOINERS and not chars[max(0, index - 1)].isalnum()):
            chars[index] = _DROPPED
    text.text = "".join(chars)
    text.sub(_DROPPED_RUN, "")


def _is_picture(char: str) -> bool:
    if char.isascii() or char in _SAID or _ARROW.match(char):
        return False
    category = unicodedata.category(char)
    return category in ("So", "Cn", "Co", "Cs") or _MODIFIER.match(char) is not None
