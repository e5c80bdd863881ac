"""What the stages do at this moment, as metrics: the same figures as in `/health`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pipelines.ports import Capacity, StageStats
from realtime.observe.prometheus import Family, Kind

_MS_PER_S = 1000

Figure = tuple[str, Kind, str, Callable[[StageStats], float | None]]


def _of_capacity(read: Callable[[Capacity], float]) -> Callable[[StageStats], float | None]:
    return lambda entry: None if entry.capacity is None else read(entry.capacity)


# What a stage does not know is left out.
FIGURES: tuple[Figure, ...] = (
    (
        "up",
        Kind.GAUGE,
        "1 while a stage can serve, 0 while it cannot.",
        lambda entry: float(entry.failure is None),
    ),
    ("active_requests", Kind.GAUGE, "Requests that are open.", lambda entry: entry.active),
    (
        "queued_requests",
        Kind.GAUGE,
        "Requests that wait for a slot.",
        lambda entry: entry.queued,
    ),
    ("slots", Kind.GAUGE, "Requests that are worked on at once.", lambda entry: entry.slots),
    ("slots_used", Kind.GAUGE, "Slots with a request.", lambda entry: entry.slots_used),
    (
        "slots_paused",
        Kind.GAUGE,
        "Slots whose request is ahead of its reader and waits for it.",
        lambda entry: entry.paused,
    ),
    (
        "steps_per_second",
        Kind.GAUGE,
        "Steps of the model, over the last half minute.",
        lambda entry: entry.steps_per_s,
    ),
    (
        "audio_seconds_per_second",
        Kind.GAUGE,
        "Seconds of sound made in a second, over the last half minute.",
        lambda entry: entry.audio_s_per_s,
    ),
    (
        "lead_least_seconds",
        Kind.GAUGE,
        "Sound made and not read, of the request that has least of it.",
        lambda entry: entry.least_lead_s,
    ),
    (
        "lead_most_seconds",
        Kind.GAUGE,
        "Sound made and not read, of the request that has most of it.",
        lambda entry: entry.most_lead_s,
    ),
    (
        "capacity_streams",
        Kind.GAUGE,
        "Listeners that can be served in real time at once, as measured.",
        _of_capacity(lambda capacity: capacity.streams),
    ),
    (
        "delivered_streams",
        Kind.GAUGE,
        "Listeners on average, over the last half minute.",
        _of_capacity(lambda capacity: capacity.delivers),
    ),
    (
        "could_deliver_audio_seconds_per_second",
        Kind.GAUGE,
        "Seconds of sound that would be made in a second with every slot at work.",
        _of_capacity(lambda capacity: capacity.could_deliver),
    ),
    (
        "aborts_total",
        Kind.COUNTER,
        "Requests that were aborted and of which nothing is left.",
        lambda entry: entry.aborts,
    ),
    (
        "abort_last_seconds",
        Kind.GAUGE,
        "From the latest abort to the end of all work for its request.",
        lambda entry: entry.last_abort_ms / _MS_PER_S,
    ),
    (
        "abort_worst_seconds",
        Kind.GAUGE,
        "The same of the slowest abort so far.",
        lambda entry: entry.worst_abort_ms / _MS_PER_S,
    ),
    (
        "restarts_total",
        Kind.COUNTER,
        "Times that the stage's own process was started again.",
        lambda entry: entry.restarts,
    ),
)


def stage_families(stats: Sequence[StageStats]) -> Iterator[Family]:
    """A family for each figure, with a sample of each stage that knows it; and their states."""
    for name, kind, help_, read in FIGURES:
        family = Family(f"parley_stage_{name}", kind, help_)
        for entry in stats:
            value = read(entry)
            if value is not None:
                family.put(value, {"stage": entry.name})
        yield family
    states = Family("parley_stage_state", Kind.GAUGE, "1 for the state that a stage's process has.")
    for entry in stats:
        if entry.state is not None:
            states.put(1, {"stage": entry.name, "state": entry.state})
    yield states
