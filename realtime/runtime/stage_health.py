"""Whether the stages can serve, in the words of whoever asks."""

from __future__ import annotations

from pipelines.ports import Cascade, StageStats


class StageHealth:
    """Of one cascade, at each moment. Without any one of its stages nobody can converse."""

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade

    def failure(self) -> str | None:
        """Why a stage cannot serve, for whoever runs the server; None while all can."""
        lost = self._lost_stage()
        return None if lost is None else lost.failure

    def apology(self) -> str | None:
        """The same for users, whom causes and paths do not concern."""
        lost = self._lost_stage()
        if lost is None:
            return None
        if lost.state == "restarting":
            return (
                f"The {lost.name} stage of this server is being restarted after a failure. Try "
                "again in a moment."
            )
        return f"The {lost.name} stage of this server is out of service. Its log has the cause."

    def listeners(self) -> dict[str, float]:
        """Of each stage that serves and was measured, for how many it does so in real time."""
        return {
            entry.name: entry.capacity.streams
            for entry in self._cascade.stats
            if entry.capacity is not None and entry.failure is None
        }

    def _lost_stage(self) -> StageStats | None:
        return next((entry for entry in self._cascade.stats if entry.failure), None)
