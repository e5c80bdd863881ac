"""What the decoder is fed before it speaks: text tokens, and rows of codes that were heard before.

    <|tts|> [<|ref_text|> transcript] [<|ref_audio|> delayed rows]  <|text|> words <|audio|> ...

There are no separators, and without `<|tts|>` the model speaks fluently, but not the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.model.delay import delay
from pipelines.higgs.rows import Codes
from pipelines.higgs.text.tags import scrub
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.text.vocabulary import AUDIO, REF_AUDIO, REF_TEXT, TEXT, TTS

Item = int | tuple[int, ...]  # a text token, or one row of delayed codes

KEY_BYTES = 16  # of a key: enough that no two voices ever share one


@dataclass(frozen=True, slots=True)
class Preamble:
    """What stands before all text of a reply. key: equal only for equal items."""

    items: tuple[Item, ...]
    key: str


def compose_preamble(
    tokenizer: HiggsTokenizer,
    reference_codes_delayed: Codes | None = None,
    transcript: str | None = None,
) -> Preamble:
    """reference_codes_delayed: int32 [frames + codebooks - 1, codebooks], BOC and EOC included.

    The transcript is what the reference says; without a reference it is left out.
    """
    items: list[Item] = [tokenizer.special(TTS)]
    if reference_codes_delayed is None or not len(reference_codes_delayed):
        return Preamble(tuple(items), _key(None, ()))
    said = tokenizer.encode(scrub(transcript or "").strip())
    if said:
        items += [tokenizer.special(REF_TEXT), *said]
    items.append(tokenizer.special(REF_AUDIO))
    items += _rows(reference_codes_delayed)
    return Preamble(tuple(items), _key(reference_codes_delayed, said))


def chunk_items(tokenizer: HiggsTokenizer, text: str) -> tuple[int, ...]:
    """The prompt of one piece of text; its last token draws the first row of its speech.

    text: as `direction.direct` makes it.
    """
    return (tokenizer.special(TEXT), *tokenizer.encode(text), tokenizer.special(AUDIO))


def history_items(chunk: Sequence[Item], codes: Codes, audio: AudioConfig) -> tuple[Item, ...]:
    """A piece of text that was spoken: its `chunk_items`, and the frames that were heard of it.

    codes: int32 [frames, codebooks], not delayed.
    """
    return (*chunk, *_rows(delay(codes, audio.begin_code, audio.end_code)))


def _rows(codes: Codes) -> list[Item]:
    return [tuple(row) for row in codes.tolist()]


def _key(codes: Codes | None, transcript: tuple[int, ...]) -> str:
    """Of the codes, two bytes each, and of the transcript's tokens, which need four."""
    digest = blake2b(digest_size=KEY_BYTES)
    if codes is not None:
        digest.update(np.array(codes.shape, "<u4").tobytes())
        digest.update(np.asarray(codes, "<u2").tobytes())
        digest.update(np.array(transcript, "<u4").tobytes())
    return digest.hexdigest()
