"""The errors that the runtime itself gives to a request."""

from __future__ import annotations

from pipelines.types import StageError

DRAFT_EVICTED = "draft_evicted"


def stage_failed(stage: str, code: str, cause: str) -> StageError:
    return StageError(
        code,
        f"The {stage} stage failed on this request ({cause}). Other requests go on; the server's "
        "log has the trace.",
    )


def stage_closed(stage: str) -> StageError:
    return StageError("stage_closed", f"The {stage} stage is closed: the server is stopping.")


def stage_timeout(stage: str, silence_s: float) -> StageError:
    return StageError(
        "stage_timeout",
        f"The {stage} stage gave nothing for {silence_s:g} s, so this request was ended. The "
        "machine is overloaded or the model hangs: try a smaller model or fewer sessions.",
    )


def no_free_slot(stage: str, waited_s: float) -> StageError:
    return StageError(
        "no_free_slot",
        f"No slot of the {stage} stage became free within {waited_s:g} s, so this request was "
        "ended. All are taken by others: give the stage more slots in the configuration, if the "
        "device's memory allows, or let fewer sessions in.",
    )


def draft_evicted(stage: str) -> StageError:
    return StageError(
        DRAFT_EVICTED,
        f"The {stage} stage ended this draft, because a turn that is answered needed its slot.",
    )


def input_too_long(stage: str, limit: int) -> StageError:
    return StageError(
        "input_too_long",
        f"The {stage} stage takes at most {limit} pieces of input in one request: send less.",
    )


def reader_stalled(stage: str, silence_s: float) -> StageError:
    return StageError(
        "reader_stalled",
        f"Nobody took the output of the {stage} stage for {silence_s:g} s, so this request was "
        "ended to free the model: read it, or abort it.",
    )
