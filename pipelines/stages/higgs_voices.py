"""The configured voices of a Higgs speaker: what is wrong with one is told by its setting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.higgs.cloning.recording import ReferenceRefused, read_recording_file
from pipelines.higgs.cloning.reference import ReferenceRequest
from pipelines.types import Samples, StageError


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """A voice to speak with: a few seconds of it, and what is said there."""

    name: str
    audio: Path
    transcript: str | None = None

    @property
    def place(self) -> str:
        """Where it stands in the configuration."""
        return f"stages.speaker.voices.{self.name}"

    @property
    def path(self) -> Path:
        """Of the recording, from the root on: a reader may be in another folder."""
        return self.audio.expanduser().absolute()

    @property
    def request(self) -> ReferenceRequest:
        return ReferenceRequest(path=self.path, transcript=self.transcript)


def voice_refused(file: VoiceFile, error: ReferenceRefused) -> StageError:
    """Names the setting, the file, what is wrong with it and what to do."""
    if error.field == "transcript":
        message = f"{file.place}.transcript: {error.message} in {file.path}."
    else:
        message = f"{file.place}.audio: {error.message}."
    return StageError("tts_voice_refused", message)


def voice_too_long(file: VoiceFile, why: str) -> StageError:
    """why: of `sequence.SequenceTooLong`."""
    message = f"{file.place}.audio: {file.path}: {why} (stages.speaker.positions)."
    return StageError("tts_voice_refused", message)


def listen(file: VoiceFile) -> Samples:
    """The recording, float32 [n] at 24 kHz. Raises StageError."""
    try:
        return read_recording_file(file.path, "path")
    except ReferenceRefused as error:
        raise voice_refused(file, error) from error


def problems_of_voices(files: Iterable[VoiceFile]) -> list[str]:
    """What is wrong with recordings, a line for each that cannot be used."""
    problems: list[str] = []
    for file in files:
        try:
            listen(file)
        except StageError as error:
            problems.append(error.message)
    return problems
