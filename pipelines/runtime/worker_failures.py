"""What is said when a stage's worker process fails: what happened, and what to do."""

from __future__ import annotations

import signal
import sys

from pipelines.runtime.messages import StartFailed
from pipelines.types import StageError


def exit_of(status: int) -> str:
    """The end of a process in words; a negative status is the number of the signal."""
    if status >= 0:
        return f"ended by itself with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    match name:
        case "SIGKILL":
            hint = ", as the system does when memory runs out"
        case "SIGSEGV" | "SIGBUS" | "SIGILL" | "SIGABRT" | "SIGFPE":
            hint = ": a fault in compiled code"
        case _:
            hint = ""
    return f"was ended by {name}{hint}"


def worker_crashed(stage: str, cause: str) -> StageError:
    return StageError(
        "worker_crashed",
        f"The process of the {stage} stage {cause}, and this request with it. It is being "
        "restarted: try again. If this repeats, the server's log has what the process said last.",
    )


def worker_restarting(stage: str) -> StageError:
    """For clients: the causes, with the server's paths in them, are in its log."""
    return StageError(
        "worker_restarting",
        f"The {stage} stage is being restarted after a failure: try again in a moment.",
    )


def worker_given_up(stage: str) -> StageError:
    """For clients, as above."""
    return StageError(
        "worker_given_up",
        f"The {stage} stage is out of service, because its restart has failed time and again. The "
        "server's log has the cause.",
    )


def worker_not_started(stage: str, cause: str) -> StageError:
    return StageError(
        "worker_not_started",
        f"The {stage} stage could not be started: its process {cause}. What the process said last "
        "is above, in the log.",
    )


def describe_failure(error: Exception) -> StartFailed:
    """What the worker tells of an exception that its stage could not be loaded for."""
    kind = type(error)
    return StartFailed(
        module=kind.__module__,
        kind=kind.__qualname__,
        code=error.code if isinstance(error, StageError) else "",
        message=error.message if isinstance(error, StageError) else str(error),
        is_plain=len(error.args) == 1 and isinstance(error.args[0], str),
    )


def rebuilt_failure(stage: str, failure: StartFailed) -> Exception:
    """The exception as it was raised in the worker, if somebody here could be waiting for it.

    A class that this process has never imported cannot be waited for; it becomes a StageError.
    """
    if failure.code:
        return StageError(failure.code, failure.message)
    kind = getattr(sys.modules.get(failure.module), failure.kind, None)
    if failure.is_plain and isinstance(kind, type) and issubclass(kind, Exception):
        error = kind(failure.message)
        if type(error) is kind and str(error) == failure.message:
            return error
    return worker_not_started(stage, f"reports {failure.kind}: {failure.message}")
