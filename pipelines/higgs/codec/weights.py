"""The codec's weights, and sound to codes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor

from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.precision import keep_float32_exact
from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.higgs.rows import Codes
from pipelines.types import Samples

# Shorter sound leaves the encoder's convolutions nothing to work on.
SHORTEST_ENCODED_SAMPLES = CODEC_RATE_HZ

# A weight-normed weight is stored as a length and a direction, named in either of two ways.
LENGTH_AND_DIRECTION = (
    ("weight_g", "weight_v"),
    ("parametrizations.weight.original0", "parametrizations.weight.original1"),
)
NAMES_SHOWN = 5  # of the missing tensors, in a message


class CodecWeightsError(ValueError):
    """Tensors are missing or of another shape; the message names them."""


def load_codec(tensors: Mapping[str, Tensor], config: CodecConfig | None = None) -> CodecModel:
    """Build the codec of a checkpoint, in float32 on the CPU; `config`: the published one's.

    Tensors of the training-only parts are passed over. Raises CodecWeightsError.
    """
    model = _outline(config or CodecConfig())
    _check({name: tuple(tensor.shape) for name, tensor in tensors.items()}, model)
    ready = {name: _weight(tensors, name) for name in model.state_dict()}
    model.load_state_dict(ready, assign=True)
    return model.requires_grad_(False)


def check_codec(shapes: Mapping[str, tuple[int, ...]], config: CodecConfig) -> None:
    """Whether tensors of these shapes, by name, make the codec. Raises CodecWeightsError."""
    _check(shapes, _outline(config))


def _outline(config: CodecConfig) -> CodecModel:
    """The codec without memory for its weights."""
    with torch.device("meta"):
        return CodecModel(config)


def _check(shapes: Mapping[str, tuple[int, ...]], model: CodecModel) -> None:
    wanted = model.state_dict()
    sources = {name: _sources(shapes, name) for name in wanted}
    missing = [name for name, found in sources.items() if not found]
    if missing:
        shown = ", ".join(missing[:NAMES_SHOWN])
        raise CodecWeightsError(
            f"the checkpoint lacks {len(missing)} of the codec's {len(wanted)} tensors: {shown}"
            + (", ..." if len(missing) > NAMES_SHOWN else "")
        )
    for name, found in sources.items():
        shape, whole = shapes[found[-1]], tuple(wanted[name].shape)  # a direction has it too
        if shape != whole:
            raise CodecWeightsError(
                f"the codec's {name} has shape {list(shape)}, not {list(whole)}"
            )


def random_codec(config: CodecConfig, seed: int = 0) -> CodecModel:
    """A codec whose random weights give sound of about full scale: for tests and measurements."""
    model = _outline(config)
    generator = torch.Generator().manual_seed(seed)
    random = {
        name: _random_tensor(name, tensor.shape, generator)
        for name, tensor in model.state_dict().items()
    }
    return load_codec(random, config)


class CodecEncoder:
    """Sound to codes, with a model that lies on any device. Any thread may call it.

    One sound at a time; on a GPU on a stream of its own, beside those who speak.
    """

    def __init__(self, model: CodecModel) -> None:
        self._model = model
        self._device = model.fc.weight.device
        keep_float32_exact(self._device)
        self._lock = threading.Lock()
        self._stream: torch.cuda.Stream | None = None
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)  # the weights have come
            self._stream = torch.cuda.Stream(self._device)

    @property
    def config(self) -> CodecConfig:
        return self._model.config

    def encode(self, samples: Samples) -> Codes:
        """float32 [n] at 24 kHz to int32 [frames, codebooks]; padded with silence to a second."""
        padding = max(SHORTEST_ENCODED_SAMPLES - len(samples), 0)
        heard = torch.from_numpy(np.pad(np.asarray(samples, np.float32), (0, padding)))
        with self._lock, torch.cuda.stream(self._stream):
            return self._model.encode(heard.to(self._device)).cpu().numpy().astype(np.int32)


def _sources(stored: Collection[str], name: str) -> tuple[str, ...]:
    """The stored tensors that a weight is made of: itself, or length and direction, or none."""
    if name in stored:
        return (name,)
    stem = name.removesuffix("weight")
    for length, direction in LENGTH_AND_DIRECTION:
        if stem + length in stored and stem + direction in stored:
            return stem + length, stem + direction
    return ()


def _weight(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """The tensor of that name in float32, put together where it is stored weight-normed."""
    parts = [tensors[source].to(torch.float32) for source in _sources(tensors.keys(), name)]
    if len(parts) == 1:
        return parts[0]
    g, v = parts
    over = [axis for axis in range(v.dim()) if g.shape[axis] == 1]
    return v * (g / torch.linalg.vector_norm(v, dim=over, keepdim=True))


def _random_tensor(name: str, shape: torch.Size, generator: torch.Generator) -> Tensor:
    noise = torch.randn(shape, generator=generator)
    if name.endswith("alpha"):
        return 1.0 + 0.3 * noise.abs()
    if name.endswith("bias"):
        return 0.1 * noise
    if name.endswith("embed"):
        return noise
    if len(shape) == 1:  # the gains of norms
        return 1.0 + 0.1 * noise
    inputs = shape[1:].numel()
    if "conv_t1" in name:  # [in, out, 2 * stride]: an output sums 2 taps of each input
        inputs = 2 * shape[0]
    # Residual branches add up over the levels; this keeps the sound within a full scale or so.
    gain = 0.5 if "res_unit" in name else 0.8
    return noise * (gain / inputs**0.5)
