"""The shape of the codec that turns codes into sound and back.

The published checkpoint carries the codec's weights and not its configuration; the defaults here
are the published codec's. A checkpoint with a codec of another size says so in `config.json`, in a
section of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES, HiggsConfigError

SEMANTIC_RATE_HZ = 16_000  # HuBERT hears at this rate
SEMANTIC_STEP_SAMPLES = 320  # HuBERT makes a feature each 20 ms
SEMANTIC_FRAME_STEPS = FRAME_SAMPLES * SEMANTIC_RATE_HZ // CODEC_RATE_HZ // SEMANTIC_STEP_SAMPLES

SEMANTIC_FIELD_SAMPLES = 400  # what one feature is made of
# Half of the field less the step, so that a second has 50 features and not 49.
SEMANTIC_PAD_SAMPLES = 160

SECTION = "codec_config"  # of a checkpoint's config.json


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """Sizes in channels, unless they say otherwise.

    ratios: the strides of the acoustic encoder and decoder, both in this order; their product is
        FRAME_SAMPLES. Widths double at each stride of the encoder and halve at each of the decoder.
    position_groups: of the convolution that gives HuBERT's features their positions.
    Raises ValueError where the sizes do not fit together.
    """

    codebooks: int = 8
    codebook_size: int = 1024
    codebook_dim: int = 64
    ratios: tuple[int, ...] = (8, 5, 4, 2, 3)
    encoder_width: int = 64
    decoder_width: int = 1024
    acoustic_size: int = 256
    semantic_size: int = 768
    semantic_layers: int = 12
    semantic_heads: int = 12
    semantic_inner: int = 3072
    semantic_conv_width: int = 512
    position_groups: int = 16

    def __post_init__(self) -> None:
        if math.prod(self.ratios) != FRAME_SAMPLES:
            raise ValueError(f"ratios {self.ratios} do not multiply to {FRAME_SAMPLES}")
        if self.decoder_width % 2 ** len(self.ratios):
            raise ValueError(
                f"decoder_width {self.decoder_width} cannot be halved {len(self.ratios)} times"
            )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> CodecConfig:
        """What a `config.json` says of the codec, if anything. Raises HiggsConfigError."""
        section = content.get(SECTION) or {}
        try:
            given = dict(section)
            if "ratios" in given:
                given["ratios"] = tuple(given["ratios"])
            return cls(**given)
        except (TypeError, ValueError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise HiggsConfigError(f"{SECTION}: {error}; it may say: {known}") from error

    def section(self) -> dict[str, Any]:
        """For a `config.json`, what `of` reads there."""
        return {SECTION: asdict(self)}

    @property
    def hidden_size(self) -> int:
        """Acoustic and semantic features side by side."""
        return self.acoustic_size + self.semantic_size

    def decoder_channels(self, level: int) -> int:
        """Channels behind `level` strides of the acoustic decoder."""
        return self.decoder_width >> level


def frame_count(samples: int) -> int:
    """How many frames the codec makes of so many samples at 24 kHz, a second or more."""
    heard = -(-samples * SEMANTIC_RATE_HZ // CODEC_RATE_HZ) + 2 * SEMANTIC_PAD_SAMPLES
    features = (heard - SEMANTIC_FIELD_SAMPLES) // SEMANTIC_STEP_SAMPLES + 1
    return -(-features // SEMANTIC_FRAME_STEPS)


def tiny_codec_config() -> CodecConfig:
    """The published structure at a size that a CPU runs in a blink: 8 codebooks of 32 codes."""
    return CodecConfig(
        codebook_size=32,
        codebook_dim=8,
        encoder_width=2,
        decoder_width=64,
        acoustic_size=16,
        semantic_size=32,
        semantic_layers=2,
        semantic_heads=2,
        semantic_inner=48,
        semantic_conv_width=16,
    )
