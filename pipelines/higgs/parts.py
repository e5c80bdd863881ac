"""What must lie in a voice's folder beside weights and configuration. Reads no weights."""

from __future__ import annotations

from pathlib import Path

from pipelines.higgs.config import HiggsConfigError, read_config
from pipelines.higgs.member import V2, member_of

TOKENIZER = "tokenizer.json"
CODEC_FOLDER = "codec"


def codec_folder(folder: Path) -> Path | None:
    """Where a model's codec has a folder of its own; None: it lies within the model's weights.

    v2 is published without its codec, which is a checkpoint of its own.
    """
    try:
        member = member_of(read_config(folder))
    except (HiggsConfigError, OSError):
        return None  # what is wrong with it is said when it is loaded
    return folder / CODEC_FOLDER if member is V2 else None
