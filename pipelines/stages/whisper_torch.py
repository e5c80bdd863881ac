"""Whisper's network on PyTorch: on a GPU in half precision, as it was trained, or on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipelines.stages.whisper_alignment import align_tokens
from pipelines.stages.whisper_checkpoint import WhisperCheckpointError, load_checkpoint
from pipelines.stages.whisper_model import POSITIONS_PER_S, Decoded
from pipelines.stages.whisper_network import Decoding, encode

NO_SPEECH = ("nospeech", "nocaptions")  # the later and the earlier name


class TorchEngine:
    """`pipelines.stages.whisper_model.WhisperEngine`. Markers, time stamps too, are never written.

    folder: a checkpoint. device: as torch calls it. Raises WhisperCheckpointError,
    FileNotFoundError; RuntimeError where the device has no room or is not there.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self._device = torch.device(device)
        dtype = torch.float32 if self._device.type == "cpu" else torch.float16
        found = load_checkpoint(folder, device, dtype)
        self._network = found.network
        self.vocabulary = found.vocabulary
        self.is_multilingual = found.is_multilingual
        config = found.network.config
        self.bands = int(config.num_mel_bins)
        self._limit_tokens = int(config.max_target_positions)
        self._size = int(config.vocab_size)
        self._start = self._marker("startoftranscript")
        self._no_speech = self._marker(*NO_SPEECH)
        self._end = self.vocabulary.end
        if self._end >= self._size:
            raise WhisperCheckpointError(
                f"its tokenizer has {self._end} tokens of text, its weights {self._size} tokens"
            )
        self._languages = self._language_markers()
        self._following = found.following
        markers = range(self._end + 1, self._size)
        self._never = self._mask([*found.suppressed, *markers])
        self._never_first = self._never + self._mask(found.suppressed_first or (self._end,))

    @torch.inference_mode()
    def encode(
        self, features: npt.NDArray[np.float32], pause: Callable[[], None] = lambda: None
    ) -> Tensor:
        sound = torch.from_numpy(np.ascontiguousarray(features[None]))
        return encode(
            self._network.model.encoder, sound.to(self._device, self._network.dtype), pause
        )

    @torch.inference_mode()
    def detect_language(self, encoded: Tensor) -> int | None:
        if self._start is None or not self._languages:
            return None
        state = Decoding(self._network.model.decoder, encoded, 1).feed([self._start])
        scores = self._scores(state[-1])[self._languages]
        return self._languages[int(scores.argmax())]

    @torch.inference_mode()
    def decode(
        self,
        encoded: Tensor,
        start: Sequence[int],
        limit_tokens: int,
        pause: Callable[[], None] = lambda: None,
    ) -> Decoded:
        limit_tokens = min(limit_tokens, self._limit_tokens - len(start))
        decoding = Decoding(self._network.model.decoder, encoded, len(start) + limit_tokens)
        states = decoding.feed(start)
        no_speech = self._no_speech_probability(states, start)
        scores = self._scores(states[-1]) + self._never_first
        tokens: list[int] = []
        total = torch.zeros((), device=self._device)
        while True:
            logs = scores.log_softmax(-1)
            token = int(logs.argmax())
            total = total + logs[token]
            if token == self._end:
                break
            tokens.append(token)
            if len(tokens) >= limit_tokens:
                break
            pause()
            scores = self._scores(decoding.feed([token])[-1]) + self._never
        return Decoded(tokens, float(total) / max(1, len(tokens)), no_speech)

    @torch.inference_mode()
    def align(
        self, encoded: Tensor, start: Sequence[int], tokens: Sequence[int], frames: int
    ) -> list[float] | None:
        positions = min(frames // 2, encoded.shape[1])
        text = [*start, *tokens]
        if not positions or len(text) > self._limit_tokens:
            return None
        decoding = Decoding(self._network.model.decoder, encoded, len(text))
        looks = decoding.look(text, self._following, positions)
        # A token is written from the state before it; the last state writes the end.
        begins = align_tokens(looks[:, len(start) - 1 :].cpu().numpy())
        return [begin / POSITIONS_PER_S for begin in begins]

    def _scores(self, state: Tensor) -> Tensor:
        """[tokens], in full precision."""
        return self._network.proj_out(state).float()

    def _no_speech_probability(self, states: Tensor, start: Sequence[int]) -> float:
        if self._no_speech is None or self._start is None or self._start not in start:
            return 0.0
        scores = self._scores(states[list(start).index(self._start)])
        return float(scores.softmax(-1)[self._no_speech])

    def _marker(self, *names: str) -> int | None:
        found = (self.vocabulary.special(name) for name in names)
        return next((number for number in found if number is not None), None)

    def _language_markers(self) -> list[int]:
        """Those between the start of the transcript and the tasks."""
        tasks = self._marker("translate", "transcribe")
        if self._start is None or tasks is None:
            return []
        return list(range(self._start + 1, tasks))

    def _mask(self, tokens: Sequence[int]) -> Tensor:
        mask = torch.zeros(self._size, device=self._device)
        mask[list(tokens)] = -torch.inf
        return mask
