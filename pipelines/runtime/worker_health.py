"""Whether the worker of a stage serves and, where it does not, why: for whoever runs the server."""

from __future__ import annotations


class WorkerHealth:
    """Told of every life of a worker. Times are in seconds, of one clock that never goes back.

    patience_s: how long a worker may be away before that is a failure: requests wait so long.
    """

    def __init__(self, stage: str, patience_s: float) -> None:
        self._stage = stage
        self._patience_s = patience_s
        self._has_served = False
        self._is_given_up = False
        self._cause = ""  # of the last end; goes on from "the process"
        self._failed_starts = 0  # in a row
        self._away_since_s: float | None = None

    @property
    def is_given_up(self) -> bool:
        """Whether nobody tries to start it any more."""
        return self._is_given_up

    def serve(self) -> None:
        """The stage has loaded."""
        self._has_served = True
        self._failed_starts = 0
        self._away_since_s = None

    def lose(self, cause: str, failed_starts: int, now_s: float) -> None:
        """A life has ended. failed_starts: the restarts until now that did not load, in a row."""
        self._cause = cause
        self._failed_starts = failed_starts
        if self._away_since_s is None:
            self._away_since_s = now_s

    def give_up(self, cause: str) -> None:
        """It is not started again."""
        self._cause = cause
        self._is_given_up = True

    def state(self, is_serving: bool, is_silent: bool) -> str:
        """As `pipelines.ports.StageStats` has it."""
        if self._is_given_up:
            return "out_of_service"
        if is_serving:
            return "silent" if is_silent else "serving"
        return "restarting" if self._has_served else "loading"

    def failure(self, now_s: float) -> str | None:
        """Why the stage cannot serve; None while it does, or is to be back in a moment."""
        process = f"The process of the {self._stage} stage {self._cause.removesuffix('.')}"
        if self._is_given_up:
            return (
                f"{process}. It is not started again, and the stage is out of service: mend the "
                "cause, which is in the log, then restart the server."
            )
        if self._failed_starts:
            times = "once" if self._failed_starts == 1 else f"{self._failed_starts} times"
            return f"{process}. Its restart has failed {times} and is tried again."
        if self._away_since_s is not None and now_s - self._away_since_s > self._patience_s:
            return f"{process}. It is being restarted, for {now_s - self._away_since_s:.0f} s now."
        return None
