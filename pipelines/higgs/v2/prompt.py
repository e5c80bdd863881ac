"""What the v2 decoder is fed around speech: a conversation in Llama 3's form.

    system: the instruction, and the scene in its marks
    user: what the reference says      assistant: <|audio_out_bos|> its rows <|audio_eos|>
    user: text                         assistant: <|audio_out_bos|> rows ...

Speech begins with a row of begin codes alone and, where it is history, ends with a row of end codes
alone. The first of them is fed and not drawn: the model would have no choice. It is the last item
of a chunk's prompt, so it draws the chunk's first row, as any prompt's last item does.

Verified against transformers' processor: how rows of a reference lie, and the marks around them.
Taken from the published generation code and not verified on the model: the words of the
instruction and of the scene, that a description of the manner of speaking may stand in the scene,
and that text goes on behind speech in a turn of its own, which is how the authors speak long texts.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.text.prompt import KEY_BYTES, Item, Preamble
from pipelines.higgs.text.tags import CONTROL_TAG

if TYPE_CHECKING:
    from pipelines.higgs.config import AudioConfig
    from pipelines.higgs.rows import Codes
    from pipelines.higgs.text.tokenizer import HiggsTokenizer

BEGIN_OF_TEXT = "<|begin_of_text|>"
HEADER_START = "<|start_header_id|>"
HEADER_END = "<|end_header_id|>"
TURN_END = "<|eot_id|>"
AUDIO_BEGIN = "<|audio_out_bos|>"
AUDIO_END = "<|audio_eos|>"
SCENE_START = "<|scene_desc_start|>"
SCENE_END = "<|scene_desc_end|>"

NEEDED = (
    *(BEGIN_OF_TEXT, HEADER_START, HEADER_END, TURN_END),
    *(AUDIO_BEGIN, AUDIO_END, SCENE_START, SCENE_END),
)

# The model was trained with these words; they belong to its interface as its tokens do.
INSTRUCTION = "Generate audio following instruction."
SCENE = "Audio is recorded from a quiet room."


class V2Script:
    """`script.Script` for v2; the tokenizer must know NEEDED."""

    def __init__(self, tokenizer: HiggsTokenizer, audio: AudioConfig) -> None:
        self._tokenizer = tokenizer
        self._begin_row = (audio.begin_code,) * audio.codebooks
        self._end_row = (audio.end_code,) * audio.codebooks

    def preamble(
        self,
        reference_codes_delayed: Codes | None = None,
        transcript: str | None = None,
        scene: str | None = None,
    ) -> Preamble:
        """reference_codes_delayed: int32 [frames + codebooks - 1, codebooks], with BOC and EOC.

        scene: where the speech is heard and how it is spoken; None: a quiet room. Raises
        ReferenceRefused for a reference without a transcript.
        """
        items = self._system(SCENE if scene is None else scene)
        if reference_codes_delayed is not None and len(reference_codes_delayed):
            if not (transcript or "").strip():
                raise ReferenceRefused(
                    "transcript", "is needed: v2 copies a voice only with it; write what is said"
                )
            items += self.chunk(transcript or "")
            items += [tuple(row) for row in reference_codes_delayed.tolist()]
            items += self.closing
        return Preamble(tuple(items), _key(items))

    def chunk(self, text: str) -> tuple[Item, ...]:
        """The prompt of one piece of text; its last item draws the first row of its speech.

        Control tags are left out: the model would read them aloud.
        """
        words = CONTROL_TAG.sub(" ", text).strip()
        return (*self._turn("user", words), *self._header("assistant"), *self._speech_start())

    @property
    def closing(self) -> tuple[Item, ...]:
        """What stands behind the delayed rows of speech that is history."""
        return (self._end_row, self._special(AUDIO_END), self._special(TURN_END))

    def _system(self, scene: str) -> list[Item]:
        items: list[Item] = [self._special(BEGIN_OF_TEXT), *self._header("system")]
        if not scene.strip():
            return [*items, *self._tokenizer.encode(INSTRUCTION), self._special(TURN_END)]
        return [
            *items,
            # The break belongs to the sentence's last token.
            *self._tokenizer.encode(f"{INSTRUCTION}\n\n"),
            self._special(SCENE_START),
            *self._tokenizer.encode(f"\n{scene.strip()}\n"),
            self._special(SCENE_END),
            self._special(TURN_END),
        ]

    def _turn(self, role: str, words: str) -> tuple[Item, ...]:
        return (*self._header(role), *self._tokenizer.encode(words), self._special(TURN_END))

    def _header(self, role: str) -> tuple[Item, ...]:
        start, end = self._special(HEADER_START), self._special(HEADER_END)
        return (start, *self._tokenizer.encode(role), end, *self._tokenizer.encode("\n\n"))

    def _speech_start(self) -> tuple[Item, ...]:
        return (self._special(AUDIO_BEGIN), self._begin_row)

    def _special(self, name: str) -> int:
        return self._tokenizer.special(name)


def _key(items: list[Item]) -> str:
    digest = blake2b(digest_size=KEY_BYTES)
    for item in items:
        if isinstance(item, int):
            digest.update(b"t" + item.to_bytes(4, "little"))
        else:
            digest.update(b"c" + b"".join(code.to_bytes(2, "little") for code in item))
    return digest.hexdigest()
