"""What a speech request asks for, with everything that it names found: the voice, the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.ports import Cascade
from pipelines.types import Drawing, SpeakRequest, StageError, Urgency, VoiceSample
from realtime.http.reception import FIELD_OF_FAULT, Refused, refuse, refuse_stage_error
from realtime.http.speech.refusal import refuse_problem
from realtime.http.speech.schema import SpeechBody, SpeechFields, conflict
from realtime.http.speech.sources import Sources
from realtime.protocol.problems import excerpt, listing
from realtime.voices.names import DEFAULT_VOICE, OPENAI_VOICES, find_name

DEFAULT_FORMAT = "mp3"
# They tell their length at their start, and some programs cannot read one that does not.
WHOLE_FORMATS = frozenset({"wav", "flac"})
# What programs written for other servers ask for: they get the default voice, without a change.
USUAL_VOICES = OPENAI_VOICES | {DEFAULT_VOICE}
MAX_NAMES_TOLD = 50  # in the message about an unknown voice


@dataclass(frozen=True, slots=True)
class SpeechOrder:
    """One speech, with nothing left to look up.

    is_whole: as a file whose lengths are exact, which can be sent only when all of it is made.
    is_events: as server-sent events instead of plain bytes.
    sample_field: which field of the request named the recording.
    root: of the fields' paths: "items[3]." in a batch.
    """

    text: str
    request: SpeakRequest
    format: str
    speed: float
    is_whole: bool
    is_events: bool
    sample_field: str | None
    root: str

    def blame(self, error: StageError) -> Refused:
        """A stage's error as an answer, which names the field that is at fault."""
        field = FIELD_OF_FAULT.get(error.code)
        if field == "references" and self.sample_field is not None:
            return refuse_stage_error(error, self.sample_field)
        return refuse_stage_error(error, f"{self.root}{field}" if field else None)


@dataclass(frozen=True, slots=True)
class _Recording:
    sample: VoiceSample
    field: str


class OrderDesk:
    """Takes orders. find, names: of uploaded voices; called in threads."""

    def __init__(
        self,
        cascade: Cascade,
        find: Callable[[str], VoiceSample | None],
        names: Callable[[], list[str]],
        sources: Sources,
    ) -> None:
        self._cascade = cascade
        self._find = find
        self._names = names
        self._sources = sources

    async def take(
        self, body: SpeechBody, request_id: str, *, root: str = "", is_file: bool = False
    ) -> SpeechOrder:
        """is_file: whatever the body says of streaming. Raises Refused, which names the field by
        its path below `root`."""
        voice, uploaded = await self._voice_of(body.voice, f"{root}voice")
        recording = await self._recording_of(body, root) or uploaded
        format = body.response_format or DEFAULT_FORMAT
        is_events = body.stream_format == "sse" and not is_file
        is_whole = is_file or not (is_events or _is_streamed(body, format))
        request = SpeakRequest(
            request_id=request_id,
            voice=voice,
            # Whoever gets a file hears nothing of it before the end: others may be first.
            urgency=Urgency.STEADY if is_whole else Urgency.FIRST_AUDIO,
            sample=recording.sample if recording else None,
            drawing=_drawing_of(body),
        )
        return SpeechOrder(
            text=body.input,
            request=request,
            format=format,
            speed=1.0 if body.speed is None else body.speed,
            is_whole=is_whole,
            is_events=is_events,
            sample_field=recording.field if recording else None,
            root=root,
        )

    async def _voice_of(self, name: str | None, field: str) -> tuple[str, _Recording | None]:
        """A voice of the stage's, and the uploaded recording where that is what was named."""
        known = self._cascade.voices
        if name is None:
            return known[0], None
        if (own := find_name(name, known)) is not None:
            return own, None
        sample = await asyncio.to_thread(self._find, name)
        if sample is not None:
            self._check_copying(field)
            return known[0], _Recording(sample, field)
        if name.casefold() in USUAL_VOICES:
            return known[0], None
        told = list(dict.fromkeys([*known, *await asyncio.to_thread(self._names)]))
        hidden = len(told) - MAX_NAMES_TOLD
        more = f" (and {hidden} more)" if hidden > 0 else ""
        raise refuse(
            400,
            "unknown_voice",
            f"Unknown voice {excerpt(name)}. The voices of this server are "
            f"{listing(told[:MAX_NAMES_TOLD])}{more}; names of OpenAI's voices, such as 'alloy', "
            f"stand for '{known[0]}'.",
            field,
        )

    async def _recording_of(self, body: SpeechFields, root: str) -> _Recording | None:
        wrong = conflict(body)
        if wrong is not None:
            raise refuse_problem(wrong, root)
        if body.ref_audio is not None:
            field = f"{root}ref_audio"
            self._check_copying(field)
            data = await self._sources.read_any(body.ref_audio, field)
            return _Recording(VoiceSample(data, body.ref_text), field)
        if body.references:
            reference, path = body.references[0], f"{root}references[0]"
            self._check_copying(path)
            data, field = await self._sources.read_reference(reference, path)
            return _Recording(VoiceSample(data, reference.text), field)
        return None

    def _check_copying(self, field: str) -> None:
        """Before anything is fetched for nothing."""
        if not self._cascade.copies_voices:
            raise refuse(
                400,
                "copying_unsupported",
                "The voice of this server cannot be copied from a recording: leave the recording "
                "out, or use a server whose voice can copy (stages.speaker of kind higgs).",
                field,
            )


def _is_streamed(body: SpeechFields, format: str) -> bool:
    """Where a request does not say: a WAV file without its length puzzles many programs, while in
    every other format nothing is lost by sending it at once."""
    return format not in WHOLE_FORMATS if body.stream is None else body.stream


def _drawing_of(body: SpeechFields) -> Drawing:
    return Drawing(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        seed=body.seed,
        most_frames=body.max_new_tokens,
        first_frames=body.initial_codec_chunk_frames,
    )
