"""Control tags to the places where the model was trained to see them.

Emotion, style, speed, pitch and expression stand at the start of a sentence and last for it. The
model forgets them with each piece of text, so a sentence that goes on in the next piece begins
there with its tags again. A pause is glued to the word before it, because with a space around it
the voice now and then swallows the next word; a sound is followed by how it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelines.higgs.text.tags import CONTROL_TAG, scrub, speakable
from pipelines.higgs.text.vocabulary import CONTROL_TAGS, ControlTag

_CLOSERS = "\"'”’»)\\]"
_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # written without spaces between sentences
_SENTENCE_END = re.compile(rf"(?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?:\s++|$|(?=[{_WIDE}]))|\n\s*+")
_SPACES = re.compile(r" {2,}")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:Mrs?|Ms|Dr|Prof|St|vs|e\.g|i\.e|[A-Z])\.\s*$")
_LATIN_START = re.compile(rf"(?:<\|[a-z:_]+\|>)*(?![{_WIDE}])\w")

# How each sound is written, and what else a writer may have put there.
_SOUNDS: dict[str, tuple[str, str]] = {
    "cough": ("Ahem", r"ahe+m|cough|koff"),
    "laughter": ("Haha", r"(?:ha|he|hi|ho){2,}h?|ha+h?|heh"),
    "crying": ("Boohoo", r"bo+-?ho+|wa+h*|sob"),
    "screaming": ("Ahh", r"a+h+|aa+|ee+k"),
    "burping": ("Burp", r"bu+rp"),
    "humming": ("Hmm", r"h*m{2,}"),
    "sigh": ("Uh", r"u+h+|a+h+|ha+h|phew|sigh"),
    "sniff": ("Sff", r"sf+|sniff?"),
    "sneeze": ("Achoo", r"ah?-?cho+"),
}
_WRITTEN = {
    name: re.compile(rf"(?:{shapes})s?(?![a-z])|([{_WIDE}])\1", re.IGNORECASE)
    for name, (_, shapes) in _SOUNDS.items()
}


@dataclass(frozen=True, slots=True)
class ActiveTags:
    """What the sentence at the end of a piece was told, for the next piece of the same reply."""

    tags: tuple[ControlTag, ...] = ()


@dataclass(frozen=True, slots=True)
class Directed:
    """text: empty if there is nothing to say in it. active: for the next piece."""

    text: str
    active: ActiveTags


@dataclass(slots=True)
class _Sentence:
    """tags: by aspect. body: text, sounds and pauses in order."""

    tags: dict[str, ControlTag] = field(default_factory=dict)
    body: list[str | ControlTag] = field(default_factory=list)

    def add(self, part: str | ControlTag) -> None:
        before = self.body[-1] if self.body else ""
        if isinstance(part, ControlTag):
            self.body.append(part)
        elif isinstance(before, ControlTag):
            if part.strip():  # the space behind a tag is the tag's own affair
                self.body.append(part)
        else:
            self.body[-1:] = [before + part]

    @property
    def is_begun(self) -> bool:
        return any(isinstance(part, str) and part.strip() for part in self.body)

    @property
    def is_worth_saying(self) -> bool:
        return any(isinstance(part, ControlTag) or speakable(part) for part in self.body)


def direct(
    text: str, active: ActiveTags = ActiveTags(), default: ControlTag | None = None
) -> Directed:
    """One piece of a reply's text as the tokenizer is to see it.

    default: a tag for every sentence that has none of its aspect.
    """
    clean = scrub(text)
    sentences = [_Sentence({tag.aspect: tag for tag in active.tags})]
    for part in CONTROL_TAG.split(clean):
        if part in CONTROL_TAGS:
            _place(CONTROL_TAGS[part], sentences)
            continue
        for said, ends in _sentences(part):
            sentences[-1].add(said)
            if ends and sentences[-1].is_begun:
                sentences.append(_Sentence())
    going_on = ActiveTags(tuple(sentences[-1].tags.values()))
    if not speakable(clean):
        return Directed("", going_on)
    written: list[str] = []
    for sentence in sentences:
        if default is not None:
            sentence.tags.setdefault(default.aspect, default)
        if sentence.is_worth_saying:
            said = _written(sentence)
            if written and not written[-1][-1:].isspace() and _LATIN_START.match(said):
                written.append(" ")
            written.append(said)
    return Directed(_SPACES.sub(" ", "".join(written)).strip(), going_on)


def _place(tag: ControlTag, sentences: list[_Sentence]) -> None:
    sentence = sentences[-1]
    if tag.is_pause and not sentence.body and len(sentences) > 1:
        sentences[-2].add(tag)  # it belongs to the word before it
    elif not tag.aspect:
        sentence.add(tag)
    elif sentence.is_begun:
        sentence.tags.setdefault(tag.aspect, tag)  # one of each lasts for a sentence
    else:
        sentence.tags[tag.aspect] = tag


def _sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Text in sentences, with the white space behind them, and whether each is at its end."""
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        last_word = text[max(begin, end.start() - 6) : end.end()]
        if "\n" not in last_word and _ABBREVIATION.search(last_word):
            continue
        yield text[begin : end.end()], True
        begin = end.end()
    if begin < len(text):
        yield text[begin:], False


def _written(sentence: _Sentence) -> str:
    out = ""
    body = sentence.body
    for place, part in enumerate(body):
        before = body[place - 1] if place else None
        if isinstance(part, str):
            out += _joined(out, part, before)
        elif part.is_sound:
            spaced = not out or out[-1].isspace() or out.endswith("|>")
            follows = body[place + 1] if place + 1 < len(body) else None
            out += ("" if spaced else " ") + part.text + _sound(part, follows)
        elif isinstance(before, ControlTag) and before.is_pause:
            if part.name == "long_pause":  # of pauses in a row, the longest stays
                out = out.removesuffix(before.text).removesuffix(part.text) + part.text
        else:
            out = out.rstrip() + part.text
    bare = out.lstrip()
    return out[: len(out) - len(bare)] + "".join(t.text for t in sentence.tags.values()) + bare


def _joined(out: str, text: str, before: str | ControlTag | None) -> str:
    """Text behind what was written so far."""
    if not isinstance(before, ControlTag):
        return text
    if before.is_pause:
        return f" {text}" if out and re.match(rf"(?![{_WIDE}])\w", text) else text
    bare = text.lstrip()
    if _WRITTEN[before.name].match(bare):
        return bare
    return f", {bare}" if bare[:1].isalnum() else bare


def _sound(tag: ControlTag, follows: str | ControlTag | None) -> str:
    """How the sound is written, if the writer did not."""
    written = isinstance(follows, str) and _WRITTEN[tag.name].match(follows.lstrip())
    return "" if written else _SOUNDS[tag.name][0]
