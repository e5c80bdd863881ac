"""Addresses of pages, mailboxes, files and people, as they are said."""

from __future__ import annotations

import re

from pipelines.text.aligned import Rule

_URL = re.compile(r"<?((?:[a-z][a-z0-9+.-]{1,9}://|www\.)[^\s<>\"']+)>?", re.IGNORECASE)
_MAILTO = re.compile(r"\bmailto:(?=\S+@)")
_MAIL = re.compile(r"<?(?<![\w@])([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)>?")
_HANDLE = re.compile(r"(?<![\w@.])@(?=\w)")
_TAG = re.compile(r"(?<![\w#&])#(?=[^\W\d_])")
_ENDINGS = (
    "com org net edu gov io ai dev app co uk de fr eu info me us ca "
    "py js ts jsx tsx json md txt csv html css yaml yml toml xml pdf png jpg jpeg gif svg zip gz "
    "exe sh rs go java cpp rb php sql ini cfg log docx xlsx pptx wav mp3 mp4 "
    "conf env ipynb ps1 tex bin"
).split()
# "example.com" and "main.py", but not "end.Next", nor "e.g." or "U.S."
_DOTTED = re.compile(
    r"(?<![\w./@-])(?:[\w-]+\.)*[\w-]{2,}(?:\.(?:" + "|".join(_ENDINGS) + r"))+\b(?:/[\w./~%-]*)?"
    r"(?![\w@]|\.\w)"
)
_FILE = re.compile(r"(?<=/)[\w-]+(?:\.[A-Za-z]\w{0,4})+(?![\w/]|\.\w)")  # at the end of its path
_TRAILING = ".,!?;:*_`~)]}|'\""
_HYPHENS = re.compile(r"[-_+]+")


def _say_url(found: re.Match[str]) -> str:
    """The host alone: nobody wants to hear a path."""
    whole = found[1]
    address = whole.rstrip(_TRAILING)
    if address.count("(") > address.count(")") and whole[len(address) :].startswith(")"):
        address += ")"
    host = re.sub(r"^(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?(?:www\.)?", "", address, flags=re.I)
    host = re.split(r"[/?#:\\]", host, maxsplit=1)[0]
    return dots(host) + _marks(whole[len(address) :])


def _marks(tail: str) -> str:
    return "".join(char for char in tail if char in ".,!?;:)")


def _say_mail(found: re.Match[str]) -> str:
    person = found[1].lstrip(".+-")
    return f"{dots(person)} at {dots(found[2])}"


def _say_dotted(found: re.Match[str]) -> str:
    if "/" in found[0]:
        return dots(found[0].split("/")[0])
    return dots(found[0])


def dots(name: str) -> str:
    said = (
        name.replace("+", " plus ").replace("_", " ").replace(".", " dot ").replace("-", " dash ")
    )
    return " ".join(said.split())


RULES: tuple[Rule, ...] = (
    (_MAILTO, ""),
    (_URL, _say_url),
    (_MAIL, _say_mail),
    (_DOTTED, _say_dotted),
    (_FILE, lambda found: dots(found[0])),
)
NAME_RULES: tuple[Rule, ...] = ((_HANDLE, "at "), (_TAG, "hashtag "))
