"""What a server's counts and histograms are called outside, and what they say there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from realtime.observe.metrics import Count, Histogram, Metrics
from realtime.observe.prometheus import Family, Kind
from realtime.session.ledger import Stamp

_MS_PER_S = 1000
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class _Counter:
    """labels: their names, of a count that is told apart. per: what makes one of the unit."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    per: int = 1


COUNTERS: dict[Count, _Counter] = {
    Count.SESSIONS_OPENED: _Counter("sessions_opened_total", "Conversations that began."),
    Count.SESSIONS_CLOSED: _Counter("sessions_closed_total", "Conversations that are over."),
    Count.SESSIONS_CRASHED: _Counter(
        "sessions_crashed_total", "Conversations that a fault of the server ended."
    ),
    Count.SESSIONS_REFUSED: _Counter(
        "sessions_refused_total", "Conversations that found no room, by the code told.", ("code",)
    ),
    Count.SESSIONS_PARKED: _Counter(
        "sessions_parked_total", "Times that a session lost its client and waited for it."
    ),
    Count.SESSIONS_RESUMED: _Counter(
        "sessions_resumed_total", "Times that a client came back to its session."
    ),
    Count.CLIENTS_STALLED: _Counter(
        "clients_stalled_total", "Clients that were given up because they did not read."
    ),
    Count.TURNS: _Counter("turns_total", "Responses that ended, whichever way."),
    Count.TURNS_DRAFTED: _Counter(
        "turns_drafted_total", "Responses that began before the user's turn had ended."
    ),
    Count.RESPONSES: _Counter("responses_total", "Responses that ended, by status.", ("status",)),
    Count.SPEECH_STARTED: _Counter(
        "vad_speech_started_total", "Times that a user was heard to begin to speak."
    ),
    Count.SPEECH_STOPPED: _Counter(
        "vad_speech_stopped_total", "Times that a user was heard to stop speaking."
    ),
    Count.TURNS_COMMITTED: _Counter(
        "turns_committed_total", "Turns of users that became items of their conversation."
    ),
    Count.TURNS_TIMED_OUT: _Counter(
        "turns_timed_out_total", "Times that a user was silent for the idle timeout."
    ),
    Count.WORK_ABORTED: _Counter(
        "conversation_requests_aborted_total", "Requests to stages that conversations aborted."
    ),
    Count.WORK_FAILED: _Counter(
        "conversation_requests_failed_total", "Requests to stages that failed in conversations."
    ),
    Count.STALE_OUTPUTS_DROPPED: _Counter(
        "stale_outputs_dropped_total", "Outputs that came after the abort of their request."
    ),
    Count.STALE_FRAMES_DROPPED: _Counter(
        "stale_frames_dropped_total", "Frames of audio that an interruption kept from the socket."
    ),
    Count.RECORDS_CUT_SHORT: _Counter(
        "records_cut_short_total", "Records of sessions that could not be written whole."
    ),
    Count.SPEECH_REQUESTS: _Counter(
        "speech_requests_total",
        "Texts spoken without a conversation, by outcome: completed, failed or aborted.",
        ("outcome",),
    ),
    Count.RECOGNITIONS: _Counter(
        "recognitions_total",
        "Recordings and turns recognised, by outcome: completed, failed or aborted.",
        ("outcome",),
    ),
    Count.AUDIO_SPOKEN_US: _Counter(
        "audio_spoken_seconds_total",
        "Seconds of sound that the voice made, for replies and for speech requests.",
        ("use",),
        _US_PER_S,
    ),
    Count.AUDIO_RECOGNISED_US: _Counter(
        "audio_recognised_seconds_total",
        "Seconds of sound that the recogniser was given.",
        per=_US_PER_S,
    ),
    Count.HTTP_REQUESTS: _Counter(
        "http_requests_total",
        "Answers to HTTP requests; 101 is a WebSocket that was accepted.",
        ("method", "route", "status"),
    ),
    Count.HTTP_REFUSALS: _Counter(
        "http_refusals_total", "Answers that are errors, by the code in them.", ("code",)
    ),
    Count.RECEIVED_BYTES: _Counter(
        "received_bytes_total", "Bytes of bodies and messages from clients.", ("connection",)
    ),
    Count.SENT_BYTES: _Counter(
        "sent_bytes_total", "Bytes of bodies and messages to clients.", ("connection",)
    ),
}

# What a server is at one moment.
GAUGES: dict[str, str] = {
    "ready": "1 while the server can serve, 0 while it loads, stops or lacks a stage.",
    "start_time_seconds": "When the server started, in unix time.",
    "sessions": "Conversations that live, those that wait for a lost client included.",
    "sessions_parked": "Those of them that wait for a lost client.",
    "sessions_limit": "Conversations that may live at once.",
    "conversation_requests": "Requests to stages that conversations have open.",
    "audio_requests": "Requests and sockets under /v1/audio that are being served.",
    "tasks": "Tasks of the event loop.",
}

# By what observes them, in milliseconds.
HISTOGRAMS: dict[str, tuple[str, str]] = {
    "speech_end_to_first_audio_ms": (
        "speech_end_to_first_audio_seconds",
        "From the user's last sound to the first audio of the answer on its way to the client.",
    ),
    "turn_end_to_first_audio_ms": (
        "turn_end_to_first_audio_seconds",
        "From the decision that the user's turn is over to the first audio on its way.",
    ),
    "response_first_audio_ms": (
        "response_first_audio_seconds",
        "From the beginning of a response to its first audio on its way to the client.",
    ),
    "voice_first_audio_ms": (
        "voice_first_audio_seconds",
        "In conversations: from the first words given to the voice to its first sound.",
    ),
    "speech_first_audio_ms": (
        "speech_first_audio_seconds",
        "Of speech requests: from the first text given to the voice to its first sound.",
    ),
    "speech_waited_ms_per_s": (
        "speech_real_time_factor",
        "Of speech requests whose text was there at once: seconds spent waiting for sound, per "
        "second of sound.",
    ),
    "recognition_ms": (
        "recognition_seconds",
        "From the end of a recording or turn to its transcript.",
    ),
    "judge_ms": ("judge_seconds", "What the end-of-turn judge takes for a verdict."),
    "loop_lag_ms": ("loop_lag_seconds", "How late the event loop is, sampled 20 times a second."),
}  # fmt: skip

_STATIONS = "turn_station_seconds"
_STATIONS_HELP = (
    "When a response passed each station, from the user's last sound, or from its creation where "
    "it answers no speech."
)


def server_families(metrics: Metrics, gauges: Mapping[str, float]) -> Iterator[Family]:
    """Everything counted and observed; what has not happened yet stands there as zero.

    gauges: a value for each of `GAUGES`.
    """
    for name, help_ in GAUGES.items():
        gauge = Family(f"parley_{name}", Kind.GAUGE, help_)
        gauge.put(gauges[name])
        yield gauge
    for count, told in COUNTERS.items():
        family = Family(f"parley_{told.name}", Kind.COUNTER, told.help)
        if told.labels:
            for values, number in metrics.labelled.get(count, {}).items():
                family.put(number / told.per, dict(zip(told.labels, values, strict=True)))
        else:
            family.put(metrics.counts[count] / told.per)
        yield family
    for observed, (name, help_) in HISTOGRAMS.items():
        family = Family(f"parley_{name}", Kind.HISTOGRAM, help_)
        _put(family, metrics.histograms.get(observed) or Histogram())
        yield family
    stations = Family(f"parley_{_STATIONS}", Kind.HISTOGRAM, _STATIONS_HELP)
    for stamp in Stamp:
        station = stamp.name.lower()
        passed = metrics.histograms.get(f"turn_{station}_ms")
        if passed is not None:
            _put(stations, passed, {"station": station})
    yield stations


def _put(family: Family, histogram: Histogram, labels: dict[str, str] | None = None) -> None:
    buckets = [(bound_ms / _MS_PER_S, count) for bound_ms, count in histogram.buckets()]
    family.put_histogram(buckets, histogram.total_ms / _MS_PER_S, labels)
