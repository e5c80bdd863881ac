"""The voice of a checkpoint, of whichever member of the family it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pipelines.higgs import assembly
from pipelines.higgs.assembly import HiggsVoice, Size
from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.config import read_config
from pipelines.higgs.member import V2, V3, member_of
from pipelines.higgs.v2 import assembly as v2_assembly
from pipelines.ports import Progress


class _Loader(Protocol):
    def __call__(
        self,
        folder: Path,
        *,
        size: Size,
        device: str,
        progress: Progress,
        codec_config: CodecConfig,
    ) -> HiggsVoice: ...


_LOADERS: Mapping[str, _Loader] = {V3.name: assembly.load_v3, V2.name: v2_assembly.load_v2}


def load_voice(
    folder: Path,
    *,
    size: Size,
    device: str,
    progress: Progress,
) -> HiggsVoice:
    """`config.json` says which member it is.

    Raises HiggsConfigError, CheckpointError, CodecWeightsError, HiggsTokenizerError,
    FileNotFoundError.
    """
    content = read_config(folder)
    member = member_of(content)
    codec_config = CodecConfig.of(content)
    return _LOADERS[member.name](
        folder, size=size, device=device, progress=progress, codec_config=codec_config
    )
