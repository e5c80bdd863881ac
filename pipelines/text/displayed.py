"""Word ends of what is said, as word ends of the display text."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.types import WordEnd


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
