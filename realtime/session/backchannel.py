"""Words that a listener murmurs to say: go on. They are no wish to speak."""

from __future__ import annotations

import re

MOST_WORDS = 12  # whoever says more has something to say, or is misheard

_WORDS = frozenset(
    "ah aha ahh absolutely alright awesome cool definitely exactly fine good gotcha great ha haha "
    "hm hmm hmmm huh indeed interesting k lovely m mhm mm mmhm mmhmm mmm mm-hm mm-hmm nice oh ok "
    "okay okey oof ooh perfect really right sure totally true uh uh-huh uhhuh uhm um wonderful wow "
    "ya yay yeah yep yes yup "
    # As people of other languages murmur, also into English speech.
    "aja ach claro d'accord eh genau ja jo oui sí si vale はい うん ええ 嗯 对 好".split()
)
_PHRASES = tuple(
    sorted(
        (
            tuple(phrase.split())
            for phrase in (
                "i see",
                "i know",
                "i understand",
                "got it",
                "got you",
                "of course",
                "that's right",
                "that's true",
                "that's good",
                "that's great",
                "that's nice",
                "that's interesting",
                "makes sense",
                "that makes sense",
                "good to hear",
                "good to know",
                "glad to hear",
                "glad to hear it",
                "glad to hear that",
                "fair enough",
                "no way",
                "no kidding",
                "sounds good",
                "thank you",
                "thanks",
                "very good",
                "very nice",
                "all right",
                "uh huh",
                "mm hm",
                "mm hmm",
            )
        ),
        key=len,
        reverse=True,
    )
)
_NOT_A_WORD = re.compile(r"[^\w'\-]+")


def is_backchannel(text: str) -> bool:
    """Whether a short utterance says nothing but: I am listening. No words at all say as much."""
    return _is_murmur(_words_of(text), may_go_on=False)


def is_interruption(text: str) -> bool:
    """Whether words heard of speech that goes on show already that it is no backchannel.

    A single word may still be half of another one, so it takes two that begin no murmur.
    """
    words = _words_of(text)[:-1]  # the last one may be cut
    return len(words) >= 2 and not _is_murmur(words, may_go_on=True)


def _is_murmur(words: list[str], *, may_go_on: bool) -> bool:
    if len(words) > MOST_WORDS:
        return False
    place = 0
    while place < len(words):
        step = _matched(words, place)
        if not step:
            rest = tuple(words[place:])
            return may_go_on and any(phrase[: len(rest)] == rest for phrase in _PHRASES)
        place += step
    return True


def _words_of(text: str) -> list[str]:
    cleaned = _NOT_A_WORD.sub(" ", text.lower().replace("\u2019", "'"))
    return [word.strip("-'") for word in cleaned.split() if word.strip("-'")]


def _matched(words: list[str], place: int) -> int:
    """How many words from `place` on make one murmur; 0: none."""
    for phrase in _PHRASES:
        if tuple(words[place : place + len(phrase)]) == phrase:
            return len(phrase)
    return 1 if words[place] in _WORDS else 0
