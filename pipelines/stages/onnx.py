"""ONNX Runtime sessions for small models that share few cores with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from pipelines.runtime.ticket import Ticket
from pipelines.types import StageError

# onnxruntime's severity scale: 0 verbose to 4 fatal.
LOG_ERRORS_ONLY = 3
LOG_FATAL_ONLY = 4  # a run that is ended on purpose is an error to it


def open_session(model: Path | bytes, threads: int) -> onnxruntime.InferenceSession:
    """A session on the CPU whose idle threads sleep: spinning ones would starve the neighbours.

    model: a file, or the content of one.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = LOG_ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    content = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # It would keep a second copy of the weights, to open itself again on another device.
    session._model_bytes = None
    return session


@contextmanager
def first_use(model: Path) -> Iterator[None]:
    """Around the opening and the first run of a model, which show whether it is the right one.

    Raises StageError for whatever goes wrong inside: the runtime's errors have no class in common.
    """
    try:
        yield
    except StageError:
        raise
    except Exception as error:
        message = f"The model {model} could not be used: {error}. Correct its path, or fetch it."
        raise StageError("model_unusable", message) from error


def run(
    session: onnxruntime.InferenceSession,
    inputs: Mapping[str, npt.NDArray[Any]],
    ticket: Ticket | None = None,
) -> list[npt.NDArray[np.float32]]:
    """All outputs of a model whose outputs are float32 arrays.

    ticket: of a run that takes long: an abort ends it at the model's next operation, and raises
    Aborted.
    """
    if ticket is None:
        return session.run(None, dict(inputs))  # pyright: ignore[reportReturnType]
    options = onnxruntime.RunOptions()
    options.log_severity_level = LOG_FATAL_ONLY

    def end() -> None:
        options.terminate = True

    forget = ticket.on_abort(end)
    try:
        return session.run(None, dict(inputs), options)  # pyright: ignore[reportReturnType]
    except Exception:  # the runtime's errors have no class in common
        ticket.check()
        raise
    finally:
        forget()
