"""A v2 checkpoint and a device to a voice that can be stepped, by the same engine as any other."""

from __future__ import annotations

from pathlib import Path

import torch

from pipelines.higgs.assembly import ROW_LIMIT, HiggsVoice, Size, voice_around
from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.weights import load_codec
from pipelines.higgs.member import V2
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.v2.checkpoint import codec_tensors, load
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.decoder import V2TorchDecoder
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.prompt import NEEDED, V2Script
from pipelines.ports import Progress


def assemble(
    config: V2Config,
    parameters: DualParameters,
    codec: CodecModel,
    tokenizer: HiggsTokenizer,
    *,
    size: Size,
    device: str,
) -> HiggsVoice:
    """The voice of tensors that lie on `device`.

    v2 has no graphs: it runs in plain torch on every device.
    """
    decoder = V2TorchDecoder(
        config,
        parameters,
        slots=size.slots,
        positions=size.positions,
        row_limit=ROW_LIMIT,
        device=device,
        is_rowwise=torch.device(device).type != "cuda",
        repetition=V2.repetition,
    )
    script = V2Script(tokenizer, config.audio)
    return voice_around(decoder, codec, config.audio, V2, script, size=size, device=device)


def load_v2(
    folder: Path,
    *,
    size: Size,
    device: str,
    progress: Progress,
    codec_config: CodecConfig,
) -> HiggsVoice:
    """The voice of a v2 checkpoint, with its codec in the folder `codec` within.

    Raises HiggsConfigError, CheckpointError, CodecWeightsError, HiggsTokenizerError,
    FileNotFoundError.
    """
    tokenizer = HiggsTokenizer.of_folder(folder, NEEDED)
    dtype = torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32
    config, parameters = load(folder, device, dtype, progress)
    progress("voice: loading the codec")
    codec = load_codec(codec_tensors(folder), codec_config).to(device)
    progress("voice: warming up")
    return assemble(config, parameters, codec, tokenizer, size=size, device=device)
