"""A reply's display text, as it is written, to what the voice says and when."""

from __future__ import annotations

from pipelines.text.chunker import Chunker, Utterance, WordSpan
from pipelines.text.marks import WIDE_MARKS, ends_clause, is_wide, may_go_on
from pipelines.text.reading import Passage, Reader


class Narration:
    """Feed deltas, get utterances.

    Their words and borders depend on the text alone, not on where the deltas were split; only
    `pause` looks at the clock, on behalf of its caller, and `flush` cuts where it is called.
    """

    def __init__(self) -> None:
        self._reader = Reader()
        self._chunker = Chunker()

    @property
    def pending(self) -> bool:
        """Whether text waits that `pause` or `finish` might release."""
        return self._chunker.pending or bool(self._reader.buffer)

    def feed(self, delta: str) -> list[Utterance]:
        return self._cut(self._reader.feed(delta))

    def pause(self) -> list[Utterance]:
        """The writer pauses: release what is whole and long enough to be worth speaking."""
        return self._release_whole() + self._chunker.pause()

    def flush(self) -> list[Utterance]:
        """Release all that was read. More may follow, and stands apart from it."""
        return self._read_on() + self._chunker.finish()

    def break_off(self) -> list[Utterance]:
        """The writer failed: release the text up to its last clause end; the rest is dropped."""
        return self._release_whole() + self._chunker.break_off()

    def finish(self) -> list[Utterance]:
        """No more text comes: release the rest."""
        return self._cut(self._reader.finish()) + self._chunker.finish()

    def _release_whole(self) -> list[Utterance]:
        """What waits for more text is read as it is, if its last word looks whole."""
        word = (self._reader.buffer.split() or [""])[-1]
        is_word = any(char.isalnum() for char in word)
        if not is_word or not ends_clause(word) or may_go_on(word) or self._reader.is_open:
            return []
        return self._read_on()

    def _read_on(self) -> list[Utterance]:
        """What waits for more text is read as it is."""
        passages = self._reader.finish()
        for passage in passages:
            last = passage.words[-1] if passage.words else None
            if last and not (is_wide(last.text[-1]) or last.text[-1] in WIDE_MARKS):
                last.spaced = True  # whatever comes next stands apart
        return self._cut(passages)

    def _cut(self, passages: list[Passage]) -> list[Utterance]:
        return [utterance for passage in passages for utterance in self._chunker.read(passage)]


def narrate(text: str, start: int) -> Utterance:
    """A text that is there as a whole, and begins at a display position of its reply."""
    narration = Narration()
    spoken = ""
    words: list[WordSpan] = []
    for part in narration.feed(text) + narration.finish():
        words += (WordSpan(len(spoken) + word.end, start + word.display_end) for word in part.words)
        spoken += part.spoken
    return Utterance(spoken, tuple(words), start + len(text))
