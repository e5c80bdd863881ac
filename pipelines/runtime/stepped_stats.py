"""What a stepped stage looks like from outside, at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.ports import StageStats
from pipelines.runtime.capacity import CapacityMeter
from pipelines.runtime.latency import AbortLatency
from pipelines.runtime.stepped_stream import SteppedStream


def survey(
    name: str,
    streams: Sequence[SteppedStream[Any, Any, Any]],
    free_slots: int,
    meter: CapacityMeter | None,
    aborts: AbortLatency,
    now_s: float,
    *,
    has_lead: bool,
) -> StageStats:
    """has_lead: whether the outputs have a length. meter: None before the model was loaded."""
    in_slots = [stream for stream in streams if stream.slot is not None]
    leads_s = [stream.outlet.unread_s for stream in in_slots if stream.has_sounded and has_lead]
    slots = None if meter is None else meter.slots
    return StageStats(
        name=name,
        active=len(streams),
        queued=len(streams) - len(in_slots),
        slots=slots,
        slots_used=None if slots is None else slots - free_slots,
        paused=sum(stream.paused for stream in in_slots),
        steps_per_s=None if meter is None else meter.steps.per_second(now_s),
        audio_s_per_s=meter.audio.per_second(now_s) if meter is not None and has_lead else None,
        least_lead_s=min(leads_s, default=None),
        most_lead_s=max(leads_s, default=None),
        aborts=aborts.count,
        last_abort_ms=aborts.last_ms,
        worst_abort_ms=aborts.worst_ms,
        capacity=None if meter is None else meter.capacity(now_s),
    )
