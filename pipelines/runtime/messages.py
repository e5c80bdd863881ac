"""What a server and the worker process of a stage say to each other.

A stream is known by a number that is never used again, so that whatever comes late about one
request cannot be taken for another's, even where requests share an id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pipelines.ports import StageStats
from pipelines.types import Urgency

# ---- to the worker -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Build the stage and load it.

    factory: "package.module:function"; called with `arguments`, it makes the stage.
    import_path: where modules are looked for, as `sys.path` of the server.
    output_window: outputs of one stream that may be on their way unread.
    """

    stage: str
    factory: str
    arguments: dict[str, object]
    import_path: tuple[str, ...]
    log_level: int
    output_window: int


@dataclass(frozen=True, slots=True)
class Open:
    stream: int
    request: object


@dataclass(frozen=True, slots=True)
class Push:
    stream: int
    item: object


@dataclass(frozen=True, slots=True)
class Finish:
    stream: int


@dataclass(frozen=True, slots=True)
class Abort:
    stream: int


@dataclass(frozen=True, slots=True)
class Hurry:
    stream: int
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class Read:
    """The reader took so many outputs: as many more may be sent."""

    stream: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Answered at once with a Pong, or the worker's loop hangs."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the stage and exit."""


# ---- from the worker -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The worker can be spoken to."""


@dataclass(frozen=True, slots=True)
class Loading:
    """One line of progress."""

    line: str


@dataclass(frozen=True, slots=True)
class Started:
    """The stage has loaded."""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The stage could not be built or loaded.

    module, kind: the exception's class. code: of a StageError, else empty.
    is_plain: the message is all that the exception was made of.
    """

    module: str
    kind: str
    code: str
    message: str
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Output:
    stream: int
    value: object


@dataclass(frozen=True, slots=True)
class Taken:
    """The stage took so many inputs: as many more may be pushed."""

    stream: int
    inputs: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The stream is over, and nothing of it is left in the worker."""

    stream: int


@dataclass(frozen=True, slots=True)
class Failed:
    """As Ended, with the StageError that ended it."""

    stream: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a Ping. stats: of a stage that is `pipelines.ports.Metered`."""

    stats: StageStats | None


ToWorker: TypeAlias = Start | Open | Push | Finish | Abort | Hurry | Read | Ping | Close
FromWorker: TypeAlias = (
    Hello | Loading | Started | StartFailed | Output | Taken | Ended | Failed | Pong
)
