"""From positions in spoken text back to positions in display text."""

from __future__ import annotations

from bisect import bisect_right

from pipelines.text.chunker import Utterance


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
        return self._display_ends[bisect_right(self._spoken_ends, spoken_end) - 1]
