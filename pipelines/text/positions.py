"""From positions in spoken text back to positions in display text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from pipelines.text.chunker import Utterance
from pipelines.types import WordEnd

FORGET_WORDS = 1_000  # at once: seldom, because what is left moves up


class Positions:
    """Remembers, word by word, which display characters the pushed characters stand for."""

    def __init__(self) -> None:
        self._spoken_ends = [0]  # of words, in all that was pushed
        self._display_ends = [0]  # covered from there on
        self._spoken_chars = 0
        self._has_words = False

    def add(self, utterance: Utterance) -> None:
        """The next utterance. One without words cannot be spoken: its text goes with what came
        before it."""
        for word in utterance.words:
            self._spoken_ends.append(self._spoken_chars + word.end)
            self._display_ends.append(word.display_end)
        self._spoken_chars += len(utterance.spoken)
        self._has_words = self._has_words or bool(utterance.words)
        if self._has_words:
            self._display_ends[-1] = utterance.end

    def to_display(self, spoken_end: int) -> int:
        """Display characters covered by the first `spoken_end` spoken ones; a word counts when all
        of it has been heard."""
        return self._display_ends[self._word_at(spoken_end)]

    def forget(self, spoken_end: int) -> None:
        """Less than that is not asked for any more; it may be, and is as much as is still known."""
        words = self._word_at(spoken_end)
        if words >= FORGET_WORDS:
            del self._spoken_ends[:words], self._display_ends[:words]

    def _word_at(self, spoken_end: int) -> int:
        return max(0, bisect_right(self._spoken_ends, spoken_end) - 1)


def displayed(
    words: tuple[WordEnd, ...], to_display: Callable[[int], int], said_end: int, shown_end: int
) -> tuple[WordEnd, ...]:
    """One end for each display word, and for each pause between them.

    A display word that is said as several, such as a number, ends with the last of these; what lies
    before that is one sound with it, its pauses too.

    to_display: from characters that were pushed to characters of the display.
    said_end, shown_end: how many of either were covered before the first word.
    """
    found: list[WordEnd] = []
    goes_on = False
    for word in words:
        is_pause = word.text_end == said_end
        covered = max(shown_end, to_display(word.text_end))
        if not is_pause:
            goes_on = covered == shown_end
        if not goes_on:
            found.append(WordEnd(word.samples, covered))
        said_end, shown_end = word.text_end, covered
    return tuple(found)
