"""Text to the tokens of a checkpoint, with no special token that the text did not earn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from pipelines.higgs.text.tags import scrub
from pipelines.higgs.text.vocabulary import CONTROL_TAGS, NEEDED


class HiggsTokenizerError(ValueError):
    """The tokenizer is not of a Higgs TTS checkpoint; the message says what it lacks."""


class HiggsTokenizer:
    """Thread-safe: nothing in it changes. needed: the special tokens that prompts are made of."""

    def __init__(self, tokenizer: Tokenizer, needed: Iterable[str] = NEEDED) -> None:
        """Raises HiggsTokenizerError, naming the special tokens that are not one token each."""
        self._tokenizer = tokenizer
        self._specials: dict[str, int] = {}
        missing: list[str] = []
        for name in needed:
            token = tokenizer.token_to_id(name)
            if token is None or tokenizer.encode(name, add_special_tokens=False).ids != [token]:
                missing.append(name)
            else:
                self._specials[name] = token
        if missing:
            raise HiggsTokenizerError(
                f"the tokenizer does not know {', '.join(missing)} as single tokens: it is not "
                "that of a Higgs TTS checkpoint; use the tokenizer.json that came with the weights"
            )
        added = tokenizer.get_added_tokens_decoder()
        self._forbidden = frozenset(
            token for token, content in added.items() if content.content not in CONTROL_TAGS
        )

    @classmethod
    def of_folder(cls, folder: Path, needed: Iterable[str] = NEEDED) -> HiggsTokenizer:
        """Read `tokenizer.json` of a checkpoint. Raises HiggsTokenizerError, FileNotFoundError."""
        path = folder / "tokenizer.json"
        content = path.read_bytes()
        try:
            tokenizer = Tokenizer.from_buffer(content)
        except Exception as error:  # the library raises nothing narrower
            raise HiggsTokenizerError(f"{path} is no tokenizer: {error}") from error
        return cls(tokenizer, needed)

    def special(self, name: str) -> int:
        """The id of one of the needed tokens. Raises KeyError for any other."""
        return self._specials[name]

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of text that anybody may have written: of the special ones only control tags."""
        found = self._tokenizer.encode(scrub(text), add_special_tokens=False).ids
        # `scrub` knows the published tokens; a checkpoint may have more.
        return tuple(token for token in found if token not in self._forbidden)
