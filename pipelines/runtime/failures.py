"""The errors that the runtime itself gives to a request."""

from __future__ import annotations

from pipelines.types import StageError


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
