"""The last guard before the tokenizer: of all that looks like a token, only control tags pass.

Text comes from a language model, so it may hold anything: `<|audio|>` in it would end the text and
begin the speech. Every special token begins with "<" and nothing but a control tag keeps one.
"""

from __future__ import annotations

import re
import unicodedata

from pipelines.higgs.text.vocabulary import CONTROL_TAGS, SPECIAL_IDS

NAME_CHARS = 64  # of what is taken for a token's name; more between two marks is text
NESTED = 8  # tokens inside tokens that are struck out whole; beyond, only their marks are

CONTROL_TAG = re.compile("(" + "|".join(map(re.escape, CONTROL_TAGS)) + ")")

_JOINERS = "\u200c\u200d"  # part of the spelling of several languages

# What a reader takes for the marks of a token.
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("＜﹤≮", "<"),
        **dict.fromkeys("＞﹥≯", ">"),
        **dict.fromkeys("｜∣ǀ│┃￨❘⏐¦", "|"),
    }
)
# The model was trained on text whose wide marks had been made plain.
_WIDE_MARKS = str.maketrans(
    {
        **dict.fromkeys("。．｡", "."),
        **dict.fromkeys("，、､﹑", ","),
        **dict.fromkeys("「」『』｢｣《》〈〉", '"'),
        **{"！": "!", "？": "?", "；": ";", "：": ":", "　": " ", "～": "~", "〜": "~"},
        **{"（": "(", "）": ")", "【": "[", "】": "]", "［": "[", "］": "]"},
    }
)

_NAMES = "|".join(
    re.escape(token.strip("</|>")) for token in sorted(SPECIAL_IDS, key=len, reverse=True)
)
_NAME = rf"(?:(?:{_NAMES})\b|(?:emotion|style|sfx|prosody|env)\s*:\s*\w{{0,{NAME_CHARS}}})"
_TOKEN = re.compile(rf"<\s?\|[^<|>]{{0,{NAME_CHARS}}}\|\s?>")
_MARKUP = re.compile(rf"</?[\w:.-]{{1,{NAME_CHARS}}}\s?/?>")
_OPENING = re.compile(rf"<\s?\|\s?{_NAME}", re.IGNORECASE)
_CLOSING = re.compile(rf"(?<!\w){_NAME}\s?\|\s?>", re.IGNORECASE)
_MARKS = re.compile(rf"[{_JOINERS}]*[<|>][<|>{_JOINERS}]*")
_SPACES = re.compile(r" {2,}")

_KEYCAP = re.compile(r"[0-9#*]\ufe0f?\u20e3")


def scrub(text: str) -> str:
    """Text that tokenises to no special token but control tags, whoever wrote it.

    Its form is NFC, as the tokenizer's is; what cannot be seen or encoded is left out.
    """
    visible = unicodedata.normalize("NFC", "".join(filter(_is_visible, text)))
    parts = CONTROL_TAG.split(visible)
    return _SPACES.sub(
        " ", "".join(part if part in CONTROL_TAGS else _without_tokens(part) for part in parts)
    )


def speakable(text: str) -> bool:
    """Whether a voice has anything to say of it: a letter or a digit outside of all tags."""
    words = _KEYCAP.sub("", CONTROL_TAG.sub(" ", scrub(text)))
    return any(char.isalnum() for char in words)


def _without_tokens(text: str) -> str:
    """Text between control tags, without "<", "|" and ">"."""
    text = text.translate(_WIDE_MARKS).translate(_LOOK_ALIKES)
    for _ in range(NESTED):
        text, struck = _TOKEN.subn(" ", text)
        if not struck:
            break
    for shape in (_MARKUP, _OPENING, _CLOSING, _MARKS):
        text = shape.sub(" ", text)
    return text


def _is_visible(char: str) -> bool:
    """Control and format characters, halves of surrogate pairs and private characters are not."""
    return char in "\t\n" or char in _JOINERS or unicodedata.category(char) not in _INVISIBLE


_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co"})
