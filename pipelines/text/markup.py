"""Markdown, HTML and LaTeX marks inside one segment of text: what they say, without them."""

from __future__ import annotations

import html
import re

from pipelines.text.aligned import Aligned, Rule
from pipelines.text.formula import say_code, say_formula
from pipelines.text.number_words import cardinal

# What may open a line, in this order: quotes; a heading, a bullet with its box, or a number.
LINE_OPENING = re.compile(
    r"[ \t]*(?:>[ \t]?)*[ \t]*(?:(?P<heading>#{1,6}(?=[ \t]))|(?P<bullet>[-*+•‣◦](?=[ \t]))"
    r"|\(?(?P<number>\d{1,2})[.)](?=[ \t])|(?P<row>\|))?[ \t]*(?P<box>\[[ xX]\](?=[ \t]))?[ \t]*"
)

CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^\n]*?[^`\n])\1(?!`)")
# A dollar that is no money: nothing but a formula hugs both of its signs.
MATH = re.compile(
    r"\$\$([^$]+)\$\$|\\\((.+?)\\\)|\\\[(.+?)\\\]"
    r"|(?<![\w$\\])\$(?!\s)(?!\d[\d,.]*(?:[\s),;:!?]|$|[kKmMbBT%/-]))([^$\n]*[^$\s\\])\$(?![\w$])",
    re.DOTALL,
)
TAG = re.compile(r"<(?:!--.*?--|/?[A-Za-z][\w-]*(?:\s+[^<>]*|/)?)>", re.DOTALL)
_BREAKS = re.compile(r"</?(?:br|p|div|li|tr|td|h\d)\b", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,} ")

_REFERENCE = re.compile(
    r"\[\^[^\]\s]+\]:?|(?<=[\w.,;:!?)\"'*`])\[\d{1,3}(?:[,–-] ?\d{1,3})*\](?![(\[])"
)
_DESTINATION = re.compile(
    r"\]\((?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_OPEN_DESTINATION = re.compile(r"\]\((?=\S)")
_LABEL = re.compile(r"\]\[[^\[\]]*\]")
_IMAGE = re.compile(r"!(?=\[)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z]{2,24}\d{0,2});")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_TIMES = re.compile(r"(?<=[\d)])\s?(?<!\*)\*(?!\*)\s?(?=[\d(])")
_LONE_TIMES = re.compile(r"(?<=[\w)]) \* (?=[\w(])")
_STARS = re.compile(r"\*+|~~+|`+|(?<!\w)_+|_+(?!\w)")
_INNER = re.compile(r"_+")


def drop_line_opening(text: Aligned) -> None:
    """Takes the mark away that opens a line; the number of a list stays, before its item."""
    found = LINE_OPENING.match(text.text)
    if found is None or not found.end():
        return
    number = f"{cardinal(int(found['number']))}, " if found["number"] else ""
    text.sub(re.compile(re.escape(found[0])), lambda one: number if one.start() == 0 else None)


def _say_tag(found: re.Match[str]) -> str:
    return " " if _BREAKS.match(found[0]) else ""


def _say_math(found: re.Match[str]) -> str | None:
    source = next(group for group in found.groups() if group is not None)
    return f" {say_formula(source)} " if is_formula(source) else None


def is_formula(source: str) -> bool:
    """Whether what stands between two dollars is a formula, and not two sums in a sentence."""
    return "\\" in source or _WORDS.search(source + " ") is None


MARKUP_RULES: tuple[Rule, ...] = (
    (CODE, lambda found: say_code(found[2])),
    (MATH, _say_math),
    (TAG, _say_tag),
    (_ENTITY, lambda found: html.unescape(found[0])),
    (_REFERENCE, ""),
    (_DESTINATION, ""),
    (_OPEN_DESTINATION, " "),
    (_LABEL, ""),
    (_IMAGE, ""),
)
# After addresses were read, which may contain such characters.
EMPHASIS_RULES: tuple[Rule, ...] = (
    (_ESCAPE, ""),
    (_TIMES, " times "),
    (_LONE_TIMES, " times "),
    (_STARS, ""),
    (_INNER, " "),
)
