"""Whether a folder holds a voice that can be loaded: all that is known before a weight is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.higgs.assembly import check_pair
from pipelines.higgs.checkpoint import loading as v3_checkpoint
from pipelines.higgs.codec.config import CodecConfig, frame_count
from pipelines.higgs.codec.weights import SHORTEST_ENCODED_SAMPLES, check_codec
from pipelines.higgs.config import AudioConfig, read_config
from pipelines.higgs.member import V2, member_of
from pipelines.higgs.model.delay import delay
from pipelines.higgs.text.script import Script, V3Script
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.v2 import checkpoint as v2_checkpoint
from pipelines.higgs.v2.prompt import NEEDED as NEEDED_BY_V2
from pipelines.higgs.v2.prompt import V2Script


@dataclass(frozen=True, slots=True)
class InspectedVoice:
    """What prompts are made of."""

    audio: AudioConfig
    script: Script

    def preamble_rows(self, samples: int, transcript: str | None) -> int:
        """How many positions a reference of so many samples at 24 kHz takes.

        Raises ReferenceRefused where the model cannot use it as it is.
        """
        frames = frame_count(max(samples, SHORTEST_ENCODED_SAMPLES))
        codes = np.zeros((frames, self.audio.codebooks), np.int32)
        rows = delay(codes, self.audio.begin_code, self.audio.end_code)
        return len(self.script.preamble(rows, transcript).items)


def inspect(folder: Path) -> InspectedVoice:
    """Configuration, tokenizer, and the headers of all tensors; seconds at most.

    Raises what `loading.load_voice` does: HiggsConfigError, CheckpointError, CodecWeightsError,
    HiggsTokenizerError, FileNotFoundError.
    """
    content = read_config(folder)
    member = member_of(content)
    codec = CodecConfig.of(content)
    if member is V2:
        tokenizer = HiggsTokenizer.of_folder(folder, NEEDED_BY_V2)
        audio = v2_checkpoint.inspect(folder)[0].audio
        shapes = v2_checkpoint.codec_shapes(folder)
        script: Script = V2Script(tokenizer, audio)
    else:
        tokenizer = HiggsTokenizer.of_folder(folder)
        audio = v3_checkpoint.inspect(folder)[0].audio
        shapes = v3_checkpoint.codec_shapes(folder)
        script = V3Script(tokenizer)
    check_codec(shapes, codec)
    check_pair(audio, codec)
    return InspectedVoice(audio, script)
