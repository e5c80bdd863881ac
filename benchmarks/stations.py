"""Where each millisecond between a question and its answer went."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from realtime.commands.turns import Step, Turn
from realtime.session.ledger import Stamp, TurnTimeline

# What is waited for until a station is reached: by the server's ledger, then by the client.
SERVER_PARTS = {
    Stamp.SPEECH_END: "voice activity",  # it goes on a little after the voice
    Stamp.TRANSCRIPT: "recognition",
    Stamp.TURN_END: "end of turn",
    Stamp.COMMITTED: "commit",
    Stamp.CREATED: "response",
    Stamp.FIRST_TEXT: "first words",
    Stamp.FIRST_AUDIO: "first speech",
    Stamp.FIRST_SENT: "sending",
}
CLIENT_PARTS = {
    Step.STOPPED: "speech_stopped",
    Step.CREATED: "response.created",
    Step.FIRST_AUDIO: "arrival",
    Step.FIRST_SOUND: "silence at the start",
}
# What a figure shows: parts that take next to nothing together, as the way to the listener.
WAY = ("commit", "response", "sending", "speech_stopped", "response.created", "arrival")
PARTS = (*SERVER_PARTS.values(), *CLIENT_PARTS.values())


def time_spent(turn: Turn, speech_end_ms: float, timeline: TurnTimeline | None) -> dict[str, float]:
    """Where each millisecond from the end of speech to the first sound went.

    The time up to each station of server and client, from the station before it: both read the
    clock of one machine. Stations that were passed before the speech was over took no time.
    """
    stations = (
        {}
        if timeline is None
        else {SERVER_PARTS[s]: at for s, at in timeline.stamps_ms if s in SERVER_PARTS}
    )
    stations |= {CLIENT_PARTS[s]: at for s, at in turn.steps_ms.items() if s in CLIENT_PARTS}
    end_ms = turn.steps_ms.get(Step.FIRST_SOUND)
    if end_ms is None:
        return {}
    parts: dict[str, float] = {}
    before_ms = speech_end_ms
    for name, at_ms in sorted(stations.items(), key=lambda station: station[1]):
        until_ms = min(max(at_ms, before_ms), end_ms)
        parts[name] = until_ms - before_ms
        before_ms = until_ms
    return parts


def part_figures(known: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Median and mean of every part, in the order of PARTS. The means add up to the latency's."""
    figures: dict[str, dict[str, float]] = {}
    for name in PARTS:
        if any(name in parts for parts in known):
            values = [parts.get(name, 0.0) for parts in known]
            figures[name] = {"median": statistics.median(values), "mean": statistics.fmean(values)}
    return figures


def shown_parts(figures: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean parts for a figure, few enough to tell apart; they add up to the mean latency."""
    shown: dict[str, float] = {}
    for name, part in figures.items():
        label = "way to the listener" if name in WAY else name
        shown[label] = shown.get(label, 0.0) + part["mean"]
    return shown
