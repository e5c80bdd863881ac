"""The codec's network: what of the checkpoint's codec is needed to encode and to decode.

Modules carry the checkpoint's names. It is the arithmetic of transformers'
`HiggsAudioV2TokenizerModel`, without its training-only branch (fc1, decoder_semantic) and without
its need of torchaudio; the DAC and HuBERT parts are transformers' own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import DacConfig, HubertConfig, HubertModel
from transformers.models.dac.modeling_dac import DacDecoder, DacEncoder

from pipelines.higgs.codec.config import (
    SEMANTIC_FRAME_STEPS,
    SEMANTIC_PAD_SAMPLES,
    CodecConfig,
)
from pipelines.higgs.codec.resample import to_semantic_rate
from pipelines.higgs.config import CODEC_RATE_HZ, FRAME_SAMPLES


class CodecModel(nn.Module):
    """Always float32: the transposed convolutions are audibly unstable in bfloat16."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        acoustic = _dac_config(config)
        self.acoustic_encoder = DacEncoder(acoustic)
        self.acoustic_decoder = DacDecoder(acoustic)
        _adapt(self.acoustic_decoder)
        self.semantic_model = HubertModel(_hubert_config(config))
        _plain_positions(self.semantic_model)
        self.encoder_semantic = SemanticEncoder(config.semantic_size)
        self.fc = nn.Linear(config.hidden_size, config.hidden_size)
        self.fc2 = nn.Linear(config.hidden_size, config.acoustic_size)
        self.quantizer = ResidualQuantizer(config)
        self.requires_grad_(False)
        self.eval()

    @torch.inference_mode()
    def encode(self, samples: Tensor) -> Tensor:
        """float32 [L] at 24 kHz, a second or more, to int64 codes [T, codebooks]."""
        semantic = self.encoder_semantic(self._semantic_features(samples).transpose(1, 2))
        waveform = samples[None, None]
        if _encoded_frames(self.config, len(samples)) != semantic.shape[2]:
            waveform = F.pad(waveform, (FRAME_SAMPLES // 2, FRAME_SAMPLES // 2))
        acoustic = self.acoustic_encoder(waveform)
        features = torch.cat([acoustic, semantic], dim=1).transpose(1, 2)
        return self.quantizer.encode(self.fc(features)[0])

    @torch.inference_mode()
    def decode(self, codes: Tensor) -> Tensor:
        """Codes [T, codebooks] to float32 [T * FRAME_SAMPLES] at 24 kHz, all at once."""
        features = self.fc2(self.quantizer.decode(codes))
        return self.acoustic_decoder(features.T[None])[0, 0]

    def _semantic_features(self, samples: Tensor) -> Tensor:
        heard = F.pad(to_semantic_rate(samples), (SEMANTIC_PAD_SAMPLES, SEMANTIC_PAD_SAMPLES))
        layers = self.semantic_model(heard[None], output_hidden_states=True).hidden_states
        return torch.stack(layers, dim=1).mean(dim=1)[:, ::SEMANTIC_FRAME_STEPS]


class SemanticEncoder(nn.Module):
    """Two residual blocks over HuBERT's features [B, C, T], at the codec's frame rate."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(size, size, kernel_size=3, padding=1, bias=False)
        self.conv_blocks = nn.ModuleList([SemanticBlock(size), SemanticBlock(size)])

    def forward(self, features: Tensor) -> Tensor:
        features = self.conv(features)
        for block in self.conv_blocks:
            features = block(features)
        return features


class SemanticBlock(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.res_units = nn.ModuleList([SemanticUnit(size), SemanticUnit(size)])
        self.conv = nn.Conv1d(size, size, kernel_size=3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        for unit in self.res_units:
            features = unit(features)
        return self.conv(features)


class SemanticUnit(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(size, size, kernel_size=3, padding=1, bias=False)
        self.conv2 = nn.Conv1d(size, size, kernel_size=1, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.conv2(F.elu(self.conv1(F.elu(features))))


class ResidualQuantizer(nn.Module):
    """Each codebook codes what those before it left over. Works on [T, hidden]."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.quantizers = nn.ModuleList(Quantizer(config) for _ in range(config.codebooks))

    def encode(self, features: Tensor) -> Tensor:
        codes: list[Tensor] = []
        for quantizer in self.each():
            codes.append(quantizer.encode(features))
            features = features - quantizer.decode(codes[-1])
        return torch.stack(codes, dim=1)

    def decode(self, codes: Tensor) -> Tensor:
        parts = [q.decode(codes[:, index]) for index, q in enumerate(self.each())]
        return torch.stack(parts).sum(dim=0)

    def each(self) -> Iterable[Quantizer]:
        return cast("Iterable[Quantizer]", self.quantizers)


class Quantizer(nn.Module):
    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.codebook = Codebook(config.codebook_size, config.codebook_dim)
        self.project_in = nn.Linear(config.hidden_size, config.codebook_dim)
        self.project_out = nn.Linear(config.codebook_dim, config.hidden_size)

    def encode(self, features: Tensor) -> Tensor:
        return self.codebook.nearest(self.project_in(features))

    def decode(self, codes: Tensor) -> Tensor:
        return self.project_out(self.codebook.embed[codes])


class Codebook(nn.Module):
    embed: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(size, dim))

    def nearest(self, features: Tensor) -> Tensor:
        """By Euclidean distance; the feature's own length is the same for all codes."""
        distance = self.embed.square().sum(1) - 2 * features @ self.embed.T
        return distance.argmin(dim=1)


def _dac_config(config: CodecConfig) -> DacConfig:
    sizes: dict[str, Any] = {
        "encoder_hidden_size": config.encoder_width,
        "downsampling_ratios": list(config.ratios),
        "decoder_hidden_size": config.decoder_width,
        "upsampling_ratios": list(config.ratios),
        "hidden_size": config.acoustic_size,
        "sampling_rate": CODEC_RATE_HZ,
    }
    return DacConfig(**sizes)


def _hubert_config(config: CodecConfig) -> HubertConfig:
    """HuBERT-base but for the sizes; features are never masked outside training."""
    return HubertConfig(
        hidden_size=config.semantic_size,
        num_hidden_layers=config.semantic_layers,
        num_attention_heads=config.semantic_heads,
        intermediate_size=config.semantic_inner,
        conv_dim=(config.semantic_conv_width,) * 7,
        num_conv_pos_embedding_groups=config.position_groups,
        mask_time_prob=0.0,
    )


def _adapt(decoder: nn.Module) -> None:
    """Make each frame exactly FRAME_SAMPLES, and leave the sound as the last layer makes it."""
    for module in decoder.modules():
        if isinstance(module, nn.ConvTranspose1d):
            module.output_padding = (module.stride[0] % 2,)
    decoder.tanh = nn.Identity()


def _plain_positions(hubert: Any) -> None:
    """Undo the weight norm that transformers puts on: the weights are loaded without it."""
    nn.utils.parametrize.remove_parametrizations(hubert.encoder.pos_conv_embed.conv, "weight")


def _encoded_frames(config: CodecConfig, samples: int) -> int:
    """How many frames the acoustic encoder makes of so many samples."""
    for ratio in config.ratios:
        samples = (samples + 2 * -(-ratio // 2) - 2 * ratio) // ratio + 1
    return samples
