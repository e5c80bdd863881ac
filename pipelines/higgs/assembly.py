"""A checkpoint and a device to a voice that can be stepped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from pipelines.higgs.checkpoint.loading import codec_tensors, load
from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.codec.model import CodecModel
from pipelines.higgs.codec.plain import TorchCodec
from pipelines.higgs.codec.weights import CodecEncoder, load_codec
from pipelines.higgs.config import AudioConfig, HiggsConfig, HiggsConfigError
from pipelines.higgs.engine import HiggsEngine
from pipelines.higgs.member import V3, Member
from pipelines.higgs.model.decoder import TorchDecoder
from pipelines.higgs.model.delay import delay
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.ports import Codec, Decoder
from pipelines.higgs.reply.reading import Reading
from pipelines.higgs.reply.stream import SpeechStream
from pipelines.higgs.room import slot_count
from pipelines.higgs.rows import Codes, Sampling
from pipelines.higgs.text.prompt import Preamble
from pipelines.higgs.text.script import Script, V3Script
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.ports import Progress

ROW_LIMIT = 256  # of a step: a prompt of ten seconds of reference; more would hold up who speaks


@dataclass(frozen=True, slots=True)
class Size:
    """How much room a voice takes: streams at once, and positions of each.

    voices: configured ones, whose references stay in caches of their own.
    """

    streams: int
    positions: int
    voices: int = 0

    @property
    def slots(self) -> int:
        """Of the decoder: for streams and for references."""
        return slot_count(self.streams, self.voices)


@dataclass(frozen=True, slots=True)
class HiggsVoice:
    """An engine, and what it takes to open a reply on it."""

    engine: HiggsEngine
    audio: AudioConfig
    member: Member
    script: Script
    positions: int
    lag_samples: int
    encoder: CodecEncoder

    def preamble(self, codes: Codes | None = None, transcript: str | None = None) -> Preamble:
        """What stands before all text of replies in a voice; without codes the model makes one up.

        codes: int32 [frames, codebooks] of its reference; transcript: what is said there.
        """
        if codes is None:
            return self.script.preamble()
        rows = delay(codes, self.audio.begin_code, self.audio.end_code)
        return self.script.preamble(rows, transcript)

    def open(
        self,
        slot: int,
        preamble: Preamble,
        *,
        sampling: Sampling,
        seed: int,
        tag: str = "",
        most_frames: int | None = None,
        first_frames: int = 0,
    ) -> SpeechStream:
        """Begin a reply; the last two as SpeechStream takes them. Raises StageError."""
        stream = SpeechStream(
            slot,
            preamble,
            Reading(self.script, self.member, tag),
            self.audio,
            self.member,
            positions=self.positions,
            lag_samples=self.lag_samples,
            sampling=sampling,
            seed=seed,
            most_frames=most_frames,
            first_frames=first_frames,
        )
        self.engine.open(slot, stream)
        return stream


def assemble(
    config: HiggsConfig,
    parameters: HiggsParameters,
    codec: CodecModel,
    tokenizer: HiggsTokenizer,
    *,
    size: Size,
    device: str,
    is_native: bool = True,
) -> HiggsVoice:
    """The v3 voice of tensors that lie on `device`; is_native: as CudaDecoder takes it."""
    decoder: Decoder
    if torch.device(device).type == "cuda":
        from pipelines.higgs.cuda.decoder import CudaDecoder

        decoder = CudaDecoder(
            config,
            parameters,
            slots=size.slots,
            positions=size.positions,
            row_limit=ROW_LIMIT,
            device=device,
            is_native=is_native,
        )
    else:
        decoder = TorchDecoder(
            config,
            parameters,
            slots=size.slots,
            positions=size.positions,
            row_limit=ROW_LIMIT,
            device=device,
            is_rowwise=True,
        )
    return voice_around(
        decoder, codec, config.audio, V3, V3Script(tokenizer), size=size, device=device
    )


def voice_around(
    decoder: Decoder,
    codec: CodecModel,
    audio: AudioConfig,
    member: Member,
    script: Script,
    *,
    size: Size,
    device: str,
) -> HiggsVoice:
    """Any member's voice, around what draws its codes. Raises HiggsConfigError."""
    check_pair(audio, codec.config)
    sounding: Codec
    if torch.device(device).type == "cuda":
        from pipelines.higgs.codec.cuda import CudaCodec

        sounding = CudaCodec(codec, size.streams, device)
    else:
        sounding = TorchCodec(codec, size.streams, device)
    engine = HiggsEngine(decoder, sounding, streams=size.streams, codebooks=audio.codebooks)
    encoder = CodecEncoder(codec)
    lag_samples = sounding.lag_samples
    return HiggsVoice(engine, audio, member, script, size.positions, lag_samples, encoder)


def check_pair(audio: AudioConfig, codec: CodecConfig) -> None:
    """Whether the codec takes what the model draws. Raises HiggsConfigError."""
    if (codec.codebooks, codec.codebook_size) != (audio.codebooks, audio.begin_code):
        raise HiggsConfigError(
            f"the codec has {codec.codebooks} codebooks of {codec.codebook_size} codes, the model "
            f"draws {audio.codebooks} of {audio.begin_code}: they do not belong together"
        )


def load_v3(
    folder: Path,
    *,
    size: Size,
    device: str,
    progress: Progress,
    codec_config: CodecConfig,
) -> HiggsVoice:
    """The voice of a v3 checkpoint. Raises HiggsConfigError, CheckpointError, CodecWeightsError,
    HiggsTokenizerError, FileNotFoundError."""
    tokenizer = HiggsTokenizer.of_folder(folder)
    is_cuda = torch.device(device).type == "cuda"
    dtype = torch.bfloat16 if is_cuda else torch.float32
    config, parameters = load(folder, device, dtype, progress)
    progress("voice: loading the codec")
    codec = load_codec(codec_tensors(folder), codec_config).to(device)
    progress("voice: warming up")
    return assemble(config, parameters, codec, tokenizer, size=size, device=device)


def warm_up(voice: HiggsVoice, preambles: Iterable[Preamble]) -> None:
    """Say a few words in each voice: what is made at first use is made, and references are kept.

    Raises StageError.
    """
    for preamble in preambles:
        voice.open(0, preamble, sampling=voice.member.sampling, seed=0)
        voice.engine.feed(0, "Hello there.")
        voice.engine.feed(0, None)
        while True:
            outcome = voice.engine.step([0])[0]
            if outcome.is_ended or outcome.error is not None:
                break
        voice.engine.close(0)
        if outcome.error is not None:
            raise outcome.error
