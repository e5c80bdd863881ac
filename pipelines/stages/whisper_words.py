"""When each word was said: the tokens of a text, put together to words and laid on the audio.

The network tells where it looked as it wrote each token (cross-attention, aligned by dynamic time
warping). That places the beginning of a word well and its end badly, as a word lasts until the
next begins: so words are drawn in to where there is sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.stages.speech_pauses import FRAMES_PER_S, levels, quiet_level
from pipelines.stages.whisper_vocabulary import Vocabulary
from pipelines.types import HeardWord, Samples

# Languages written without spaces between words: there, each character stands for a word.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue", "bo", "km"})
WORD_AT_LEAST_S = 0.02  # a frame: no word ends as it begins


@dataclass(frozen=True, slots=True)
class Spelled:
    """A word as it is written, and how many tokens write it."""

    text: str
    tokens: int


def spell_words(
    tokens: Sequence[int], vocabulary: Vocabulary, language: str | None
) -> list[Spelled]:
    """Words of a text, with the marks beside them. Joined as they were, they are the text."""
    words: list[Spelled] = []
    written = b""
    count = 0
    for token in tokens:
        piece = vocabulary.spell(token)
        if count and _ends_before(written, piece, language):
            words.append(Spelled(_text(written), count))
            written, count = b"", 0
        written += piece
        count += 1
    if count:
        words.append(Spelled(_text(written), count))
    return words


def place_words(words: Sequence[Spelled], begins_s: Sequence[float]) -> list[HeardWord]:
    """begins_s: of each token, and last the end of the last one."""
    placed: list[HeardWord] = []
    at = 0
    for word in words:
        start_s, end_s = begins_s[at], begins_s[at + word.tokens]
        at += word.tokens
        if word.text:
            placed.append(HeardWord(word.text, start_s, end_s))
    return placed


def fit_to_sound(words: Sequence[HeardWord], audio: Samples) -> list[HeardWord]:
    """Words without the quiet at their edges; they stay in order and apart."""
    of_frames = levels(audio)
    loud = of_frames >= quiet_level(of_frames)
    return [_fitted(word, loud) for word in words]


def _fitted(word: HeardWord, loud: npt.NDArray[np.bool_]) -> HeardWord:
    first = int(word.start_s * FRAMES_PER_S)
    last = max(first + 1, round(word.end_s * FRAMES_PER_S))
    sounding = np.flatnonzero(loud[first:last])
    if not len(sounding):
        return HeardWord(word.text, word.start_s, max(word.end_s, word.start_s + WORD_AT_LEAST_S))
    start_s = max(word.start_s, (first + int(sounding[0])) / FRAMES_PER_S)
    end_s = min(word.end_s, (first + int(sounding[-1]) + 1) / FRAMES_PER_S)
    return HeardWord(word.text, start_s, max(end_s, start_s + WORD_AT_LEAST_S))


def _ends_before(written: bytes, piece: bytes, language: str | None) -> bool:
    if not written.strip():
        return False
    if piece[:1].isspace():
        return True
    if language not in UNSPACED:
        return False
    # A token may be part of a character, and marks belong to what precedes them.
    return _is_whole(written) and (not _is_whole(piece) or piece.decode()[:1].isalnum())


def _is_whole(written: bytes) -> bool:
    try:
        written.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(written: bytes) -> str:
    return written.decode("utf-8", "replace").strip()
