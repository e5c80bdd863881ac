"""Display text to spoken text, for the voice alone."""

from __future__ import annotations

from pipelines.text.chunker import Chunker, Utterance
from pipelines.text.reading import Reader


def spoken(display: str) -> str:
    """What to say for a whole piece of display text; "" if nothing of it can be said.

    The result has single spaces, and none at its ends. What is spoken text already stays as it is.
    """
    reader, chunker = Reader(), Chunker()
    found: list[Utterance] = []
    for passage in reader.feed(display) + reader.finish():
        found += chunker.read(passage)
    return "".join(one.spoken for one in found + chunker.finish()).strip()
