"""Voices that come with a request, as a recording."""

from __future__ import annotations

from pipelines.higgs.cloning.preambles import ReferencePreambles
from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.cloning.reference import ReferenceRequest
from pipelines.higgs.member import Member
from pipelines.higgs.refusal import Refusal, Wish, check
from pipelines.higgs.reply.sequence import SequenceTooLong
from pipelines.higgs.text.prompt import Preamble
from pipelines.types import StageError, VoiceSample


def preamble_of(sample: VoiceSample, member: Member, preambles: ReferencePreambles) -> Preamble:
    """Blocking, for as long as a recording takes to be encoded, unless it was before.

    Raises StageError `voice_sample_refused`, saying what is wrong with it and what to do.
    """
    try:
        check(member, Wish(references=1, transcript=sample.transcript))
        return preambles.of(ReferenceRequest(data=sample.data, transcript=sample.transcript))
    except Refusal as refusal:
        raise _refused(refusal.message) from refusal
    except ReferenceRefused as refused:
        if refused.field == "transcript":
            raise _refused(f"The transcript of the voice's sample {refused.message}.") from refused
        raise _refused(f"The voice's sample cannot be used: {refused.message}.") from refused
    except SequenceTooLong as error:
        raise _refused(
            f"The voice's sample is too long for this server: {error} (stages.speaker.positions)."
        ) from error


def _refused(message: str) -> StageError:
    return StageError("voice_sample_refused", message)
