"""The codec's network is transformers', and its weights are found under all their names."""

from __future__ import annotations

import importlib
import sys
import types
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pipelines.higgs.codec.config import CodecConfig, tiny_codec_config
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.resample import to_semantic_rate
from pipelines.higgs.codec.weights import CodecEncoder, CodecWeightsError, load_codec, random_codec

POSITIONS = "semantic_model.encoder.pos_conv_embed.conv."


@cache
def model() -> CodecModel:
    return random_codec(tiny_codec_config(), seed=11)


def noise(samples: int) -> Tensor:
    return 0.1 * torch.randn(samples, generator=torch.Generator().manual_seed(samples))


@cache
def transformers_model() -> Any:
    """transformers' class with the same weights, and this project's resampler for torchaudio's."""
    torchaudio: Any = types.ModuleType("torchaudio")
    torchaudio.functional = types.SimpleNamespace(
        resample=lambda x, _from, _to: to_semantic_rate(x[0, 0])[None, None]
    )
    place = "transformers.models.higgs_audio_v2_tokenizer."
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torchaudio", torchaudio)
        modeling = importlib.import_module(place + "modeling_higgs_audio_v2_tokenizer")
    configuration = importlib.import_module(place + "configuration_higgs_audio_v2_tokenizer")
    parts = model()
    config = configuration.HiggsAudioV2TokenizerConfig(
        target_bandwidths=[1.0],  # of 8 codebooks: 25 frames a second of 5 bits each
        codebook_size=parts.config.codebook_size,
        codebook_dim=parts.config.codebook_dim,
        acoustic_model_config={
            "model_type": "dac",
            "encoder_hidden_size": parts.config.encoder_width,
            "downsampling_ratios": [8, 5, 4, 2, 3],
            "decoder_hidden_size": parts.config.decoder_width,
            "upsampling_ratios": [8, 5, 4, 2, 3],
            "hidden_size": parts.config.acoustic_size,
        },
        semantic_model_config={
            "model_type": "hubert",
            "hidden_size": parts.config.semantic_size,
            "num_hidden_layers": parts.config.semantic_layers,
            "num_attention_heads": parts.config.semantic_heads,
            "intermediate_size": parts.config.semantic_inner,
            "conv_dim": [parts.config.semantic_conv_width] * 7,
            "mask_time_prob": 0.0,
        },
    )
    theirs = modeling.HiggsAudioV2TokenizerModel(config).eval()
    weights = dict(parts.state_dict())
    positions = weights.pop(POSITIONS + "weight")
    length = torch.linalg.vector_norm(positions, dim=(0, 1), keepdim=True)
    weights[POSITIONS + "parametrizations.weight.original0"] = length
    weights[POSITIONS + "parametrizations.weight.original1"] = positions
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected
    training_only = ("fc1.", "decoder_semantic.", ".inited", ".cluster_size", ".embed_avg")
    assert all(any(part in name for part in training_only) for name in missing)
    return theirs


def test_the_published_codec_has_the_published_shape() -> None:
    with torch.device("meta"):
        shapes = {
            name: tensor.shape for name, tensor in CodecModel(CodecConfig()).named_parameters()
        }
    assert shapes["fc.weight"] == (1024, 1024)
    assert shapes["fc2.weight"] == (256, 1024)
    assert shapes["quantizer.quantizers.7.project_out.weight"] == (1024, 64)
    assert shapes["acoustic_encoder.conv1.weight"] == (64, 1, 7)
    assert shapes["acoustic_decoder.conv1.weight"] == (1024, 256, 7)
    strides = [shapes[f"acoustic_decoder.block.{n}.conv_t1.weight"] for n in range(5)]
    assert strides == [(1024, 512, 16), (512, 256, 10), (256, 128, 8), (128, 64, 4), (64, 32, 6)]
    assert shapes["semantic_model.encoder.layers.11.feed_forward.intermediate_dense.weight"] == (
        3072,
        768,
    )


@pytest.mark.parametrize("samples", [24_000, 24_001, 31_337, 48_480])
def test_codes_are_those_of_transformers(samples: int) -> None:
    heard = noise(samples)
    with torch.no_grad():
        theirs = transformers_model().encode(heard[None, None]).audio_codes[0].T
    codes = model().encode(heard)
    assert abs(len(codes) - samples / 960) < 1
    assert len(codes.unique()) > 8
    assert torch.equal(codes, theirs)


def test_sound_is_that_of_transformers() -> None:
    codes = torch.randint(0, 32, (13, 8), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        theirs = transformers_model().decode(codes.T[None]).audio_values[0, 0]
    sound = model().decode(codes)
    assert sound.shape == (13 * 960,)
    assert sound.std() > 0.1
    assert torch.allclose(sound, theirs, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_load_in_float32(dtype: torch.dtype) -> None:
    stored = {name: tensor.to(dtype) for name, tensor in model().state_dict().items()}
    loaded = load_codec(stored | {"fc1.weight": torch.zeros(1)}, tiny_codec_config())
    for name, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, stored[name].float())


@pytest.mark.parametrize(
    "names",
    [("weight_g", "weight_v"), tuple(f"parametrizations.weight.original{n}" for n in (0, 1))],
)
@pytest.mark.parametrize(
    ("stem", "axes"),
    [
        (POSITIONS, (0, 1)),
        ("acoustic_decoder.conv1.", (1, 2)),
        ("acoustic_decoder.block.2.conv_t1.", (1, 2)),
        ("acoustic_decoder.conv2.", (1, 2)),
    ],
)
def test_weight_norm_is_undone(stem: str, axes: tuple[int, ...], names: tuple[str, ...]) -> None:
    stored = dict(model().state_dict())
    weight = stored.pop(stem + "weight")
    stored[stem + names[0]] = torch.linalg.vector_norm(weight, dim=axes, keepdim=True)
    stored[stem + names[1]] = 3 * weight  # a direction of any length
    loaded = load_codec(stored, tiny_codec_config()).state_dict()[stem + "weight"]
    assert torch.allclose(loaded, weight, atol=1e-6)


def test_missing_tensors_are_named() -> None:
    stored = dict(model().state_dict())
    del stored["quantizer.quantizers.3.codebook.embed"], stored["fc2.bias"]
    with pytest.raises(CodecWeightsError, match=r"lacks 2 .*fc2\.bias, quantizer\.quantizers\.3"):
        load_codec(stored, tiny_codec_config())
    with pytest.raises(CodecWeightsError, match=r"lacks .*, \.\.\.$"):
        load_codec({}, tiny_codec_config())


def test_a_wrong_shape_is_named() -> None:
    stored = dict(model().state_dict()) | {"fc2.bias": torch.zeros(5)}
    with pytest.raises(CodecWeightsError, match=r"fc2\.bias has shape \[5\], not \[16\]"):
        load_codec(stored, tiny_codec_config())


def test_short_sound_is_padded_to_a_second() -> None:
    encoder = CodecEncoder(model())
    heard = noise(9_000).numpy()
    codes = encoder.encode(heard)
    assert codes.dtype == np.int32 and codes.shape == (25, 8)
    assert np.array_equal(codes, encoder.encode(np.pad(heard, (0, 15_000))))


def test_resampling_is_a_windowed_sinc() -> None:
    """Against the definition, a sum over the samples around each output."""
    heard = noise(300).double()
    at = torch.arange(200, dtype=torch.float64)[:, None] * 1.5
    crossings = (torch.arange(300) - at) * (0.99 * 2 / 3)
    window = torch.cos(crossings * torch.pi / 12).square() * (crossings.abs() < 6)
    wanted = (torch.sinc(crossings) * window * (0.99 * 2 / 3)) @ heard
    assert torch.allclose(to_semantic_rate(heard.float()).double(), wanted, atol=1e-6)


@pytest.mark.parametrize(("hz", "passes"), [(440, True), (6_000, True), (11_000, False)])
def test_resampling_keeps_what_16_khz_can_hold(hz: int, passes: bool) -> None:
    tone = torch.sin(torch.arange(24_000) * (2 * torch.pi * hz / 24_000))
    heard = to_semantic_rate(tone)
    wanted = torch.sin(torch.arange(16_000) * (2 * torch.pi * hz / 16_000)) * passes
    assert (heard - wanted)[100:-100].abs().max() < 0.02


@pytest.mark.parametrize("samples", [1, 2, 3, 24_000, 24_001])
def test_resampling_rounds_lengths_up(samples: int) -> None:
    assert len(to_semantic_rate(noise(samples))) == -(-samples * 2 // 3)


@pytest.mark.parametrize(
    ("sizes", "words"), [({"ratios": (8, 5, 4, 2)}, "multiply"), ({"decoder_width": 40}, "halved")]
)
def test_sizes_that_do_not_fit(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CodecConfig(**sizes)
