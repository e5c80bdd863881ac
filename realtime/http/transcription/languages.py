"""The languages that a recording may be said to be in: those that Whisper's models know."""

from __future__ import annotations

# ISO 639-1; Hawaiian and Cantonese, of three letters, have no code of two.
_CODES = """
af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr
ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc
pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue
zh
"""
LANGUAGES = frozenset(_CODES.split())
TWO_LETTERS = 2


# Codes of ISO 639-1 that the models have under another one: Javanese, and Norwegian Bokmål.
OTHER_CODES = {"jv": "jw", "nb": "no"}


def find_language(code: str) -> str | None:
    """What models call the language of a code, in small letters; None: there is none of it. Of
    those of three letters (ISO 639-3) there are thousands: which of them it knows is for the
    recogniser to say."""
    known = OTHER_CODES.get(code, code)
    is_long = code.isascii() and code.isalpha() and len(code) > TWO_LETTERS
    return known if known in LANGUAGES or is_long else None
