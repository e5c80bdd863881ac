"""When each word of an utterance is over, from how long its phonemes last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.stages.phonemes import Pronounced
from pipelines.types import WordEnd

PAUSE_MS = 60  # of silence between words: shorter than any syllable, longer than a plosive's


@dataclass(frozen=True, slots=True)
class Spelling:
    """What a voice is given to say.

    ids: its units, phonemes with a pad after each.
    sounds: for each word, its text_end and the units [first, last) of its sound, without spaces,
        marks of punctuation and whatever else is silent. Words without a sound are left out.
    """

    ids: list[int]
    sounds: list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class WordSound:
    """start, end: samples of the utterance between which a word sounds."""

    start: int
    end: int
    text_end: int


def spell(words: Sequence[Pronounced], alphabet: dict[str, list[int]]) -> Spelling:
    """Phonemes to a voice's units; those that the voice does not know are left out.

    alphabet: units by phoneme, with the pad "_", the beginning "^" and the end "$".
    """
    pad = alphabet["_"]
    ids = [*alphabet["^"], *pad]
    sounds: list[tuple[int, int, int]] = []
    ipa = " ".join(word.ipa for word in words)
    lead, tail = len(ipa) - len(ipa.lstrip()), len(ipa.rstrip())
    at = 0
    for word in words:
        first = last = 0
        for phoneme in word.ipa + " ":
            if lead <= at < tail and phoneme in alphabet:
                if phoneme.isalpha() and not last:
                    first = len(ids)
                ids += [*alphabet[phoneme], *pad]
                if phoneme.isalpha():
                    last = len(ids)
            at += 1
        if last:
            sounds.append((word.text_end, first, last))
    return Spelling([*ids, *alphabet["$"]], sounds)


def word_sounds(
    spelling: Spelling, durations: npt.NDArray[np.float32], samples: int
) -> tuple[WordSound, ...]:
    """The words of an utterance of `samples` samples; durations: float32 [units], in hops.

    Empty if the durations are not those of the units, or do not add up to the samples.
    """
    hops = int(durations.sum())
    if len(durations) != len(spelling.ids) or hops <= 0 or samples % hops:
        return ()
    over = np.concatenate([[0], np.cumsum(durations)]) * (samples // hops)
    return tuple(
        WordSound(int(over[first]), int(over[last]), text_end)
        for text_end, first, last in spelling.sounds
    )


def word_ends(
    sounds: Sequence[WordSound], rate_hz: int, trimmed_samples: int = 0, text_start: int = 0
) -> tuple[WordEnd, ...]:
    """Of the words of an utterance that begins `text_start` characters into the text, and whose
    first `trimmed_samples` are not played; with the ends of the pauses between them.

    Sounds that take the text no further are the beginning of the word that does.
    """
    pause_samples = PAUSE_MS * rate_hz // 1000
    found: list[WordEnd] = []
    last = WordEnd(0, text_start)
    goes_on = False
    for sound in sounds:
        start, end = (max(last.samples, at - trimmed_samples) for at in (sound.start, sound.end))
        if start - last.samples >= pause_samples and not goes_on:
            found.append(WordEnd(start, last.text_end))
        goes_on = text_start + sound.text_end == last.text_end
        if not goes_on:
            last = WordEnd(end, text_start + sound.text_end)
            found.append(last)
    return tuple(found)
