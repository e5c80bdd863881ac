"""How a member's conversation is written: the items before, between and behind stretches of speech.

    preamble   chunk speech closing   chunk speech closing   ...

The engine sees items and speech; what the items mean is the member's own business.
"""

from __future__ import annotations

from typing import Protocol

from pipelines.higgs.rows import Codes
from pipelines.higgs.text.prompt import Item, Preamble, chunk_items, compose_preamble
from pipelines.higgs.text.tokenizer import HiggsTokenizer


class Script(Protocol):
    """A member's, bound to a checkpoint's tokenizer."""

    def preamble(
        self,
        reference_codes_delayed: Codes | None = None,
        transcript: str | None = None,
        scene: str | None = None,
    ) -> Preamble:
        """What stands before all text. scene: None where the caller said nothing.

        reference_codes_delayed: int32 [frames + codebooks - 1, codebooks], BOC and EOC included.
        """
        ...

    def chunk(self, text: str) -> tuple[Item, ...]:
        """The prompt of one piece of text; its last item draws the first row of its speech."""
        ...

    @property
    def closing(self) -> tuple[Item, ...]:
        """What follows the delayed rows of a chunk's speech before the next chunk may."""
        ...


class V3Script:
    """Higgs Audio v3: nothing stands between speech and the next text."""

    closing: tuple[Item, ...] = ()

    def __init__(self, tokenizer: HiggsTokenizer) -> None:
        self._tokenizer = tokenizer

    def preamble(
        self,
        reference_codes_delayed: Codes | None = None,
        transcript: str | None = None,
        scene: str | None = None,
    ) -> Preamble:
        """See Script. The model has no place for a scene: `refusal.check` refuses one before."""
        if scene:
            raise ValueError("v3 takes no description of a scene")
        return compose_preamble(self._tokenizer, reference_codes_delayed, transcript)

    def chunk(self, text: str) -> tuple[Item, ...]:
        """See Script. text: as `tags.direct` makes it."""
        return chunk_items(self._tokenizer, text)
