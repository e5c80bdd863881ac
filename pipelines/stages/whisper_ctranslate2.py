"""Whisper's network on CTranslate2, in whole numbers of 8 bits on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.stages.openmp import import_sleeping
from pipelines.stages.whisper_model import FRAMES_PER_S, POSITIONS_PER_S, Decoded
from pipelines.stages.whisper_vocabulary import Vocabulary


class CTranslate2Engine:
    """`pipelines.stages.whisper_model.WhisperEngine`. What decodes cannot be broken off.

    folder: model.bin, config.json and vocabulary.txt. Raises RuntimeError or ValueError.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._library = import_sleeping("ctranslate2")
        self._model = self._library.models.Whisper(
            str(folder),
            device="cpu",
            compute_type="int8",
            intra_threads=threads,
            inter_threads=1,
        )
        self.vocabulary = Vocabulary.of_lines(folder / "vocabulary.txt")
        self._without_times = self.vocabulary.special("notimestamps")

    @property
    def bands(self) -> int:
        return int(self._model.n_mels)

    @property
    def is_multilingual(self) -> bool:
        return bool(self._model.is_multilingual)

    def encode(self, features: npt.NDArray[np.float32], pause: Callable[[], None]) -> Any:
        batch = np.ascontiguousarray(features[None])
        return self._model.encode(self._library.StorageView.from_array(batch))

    def detect_language(self, encoded: Any) -> int | None:
        guesses = self._model.detect_language(encoded)[0]
        return self.vocabulary.special(guesses[0][0].strip("<|>"))

    def decode(
        self, encoded: Any, start: Sequence[int], limit_tokens: int, pause: Callable[[], None]
    ) -> Decoded:
        result = self._model.generate(
            encoded,
            [list(start)],
            beam_size=1,
            # It writes at most half of this, and at most this less what precedes.
            max_length=max(2 * limit_tokens, limit_tokens + len(start)),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        return Decoded(result.sequences_ids[0], result.scores[0], result.no_speech_prob)

    def align(
        self, encoded: Any, start: Sequence[int], tokens: Sequence[int], frames: int
    ) -> list[float]:
        without = [token for token in start if token != self._without_times]  # it is put in anew
        found = self._model.align(encoded, without, [list(tokens)], frames)[0].alignments
        begins_s: list[float] = []
        for token, at in found:  # each token lasts for one position or more
            if token == len(begins_s):
                begins_s.append(at / POSITIONS_PER_S)
        end_s = frames / FRAMES_PER_S
        return begins_s + [end_s] * (len(tokens) + 1 - len(begins_s))
