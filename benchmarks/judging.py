"""The judge of turn ends over recordings, without a server: what it says at each silence.

Silero hears a recording as a session does, frame by frame. In every pause that it sees, and after
the end, Smart Turn is asked as the silence grows, and a policy can be tried on its answers without
running a model again. Silence is counted from where the detector last heard voice, as a session
counts it; a pause's own length comes from the sound.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import soxr

from benchmarks.pauses import Kind, length_class, overlaps
from benchmarks.recordings import Recording, voiced_spans
from pipelines.stages.turn_smart import SmartTurnJudge
from pipelines.stages.vad_silero import SileroDetector, SileroStream
from pipelines.types import DETECTOR_FRAME_SAMPLES, HEARING_RATE_HZ, Samples
from pipelines.weights import WeightsError
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm
from realtime.session.policy import PROFILES, SAMPLES_PER_MS
from realtime.session.voice import Voice, VoiceChange

SILENCES_MS = (192, 320, 448, 576, 768, 960, 1150)
FINISHED_AT = 0.5  # the judge's own threshold
TAIL_MS = 2000  # of quiet room after the last voiced sample: recordings are cut tightly
QUIETEST_PERCENT = 10  # of a recording's windows are its room without the voice
FLOOR_DBFS = (-80.0, -55.0)  # a room is neither digitally silent nor as loud as a voice
HANGOVER_MS = 250  # the detector goes on so long at most; beyond, the sound's end was too soft
SEED = 20_250_102  # every run adds the same noise


@dataclass(frozen=True, slots=True)
class Silence:
    """One silence. Times are ms of the recording.

    begin_ms: the end of the last voiced window of the sound.
    heard_ms: where the detector last heard voice, from which sessions count.
    length_ms: of the sound's silence; None at the end.
    heard_length_ms: from `heard_ms` to where the detector hears voice again; None at the end.
    spoken_ms: how long the turn has lasted at `begin_ms`.
    verdicts: the judge's probability that the speaker has finished, by ms of silence.
    """

    kind: Kind
    begin_ms: int
    heard_ms: int
    length_ms: int | None
    heard_length_ms: int | None
    spoken_ms: int
    verdicts: dict[int, float] = field(default_factory=dict[int, float])


@dataclass(frozen=True, slots=True)
class Heard:
    """A voice as the detector saw it: samples at HEARING_RATE_HZ, [start, end) by span."""

    spans: tuple[tuple[int, int], ...]


def judge_all(recordings: list[Recording]) -> list[dict[str, Any]]:
    """A row for every pause and every end, ready for JSON."""
    try:
        return asyncio.run(_judge_all(recordings))
    except WeightsError as error:
        sys.exit(str(error))


def judgement_table(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """(kind, length class, n, share called finished at each of SILENCES_MS), sorted.

    The share is of all silences of the class; one that is over by then was not called finished.
    """
    classes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["kind"], row["length_ms"] or 0)):
        length_ms = row["length_ms"]
        label = "" if length_ms is None else length_class(length_ms)
        classes.setdefault((row["kind"], label), []).append(row)
    table: list[tuple[object, ...]] = []
    for (kind, label), members in classes.items():
        shares = [
            sum(row["probability"].get(str(ms), 0.0) >= FINISHED_AT for row in members)
            / len(members)
            for ms in SILENCES_MS
        ]
        table.append((kind, label, len(members), *(f"{share:.2f}" for share in shares)))
    return table


async def _judge_all(recordings: list[Recording]) -> list[dict[str, Any]]:
    detector, judge = SileroDetector(), SmartTurnJudge()
    await detector.start(lambda _: None)
    await judge.start(lambda _: None)
    rows: list[dict[str, Any]] = []
    try:
        for recording in recordings:
            audio = prepare(recording.pcm)
            stream = detector.open()
            heard = await _detect(stream, audio)
            stream.close()
            for silence in silences(recording, heard):
                await _ask(judge, audio, heard, silence)
                rows.append(_row(recording, silence))
    finally:
        await detector.close()
        await judge.close()
    return rows


def prepare(pcm: Pcm) -> Samples:
    """float32 at HEARING_RATE_HZ, with quiet room until TAIL_MS after the last voiced sample."""
    samples = pcm.astype(np.float32) / np.float32(32_768)
    spans = voiced_spans(pcm)
    last = spans[-1][1] if spans else len(pcm)
    missing = last + TAIL_MS * WIRE_RATE_HZ // 1000 - len(pcm)
    if missing > 0:
        noise = np.random.default_rng(SEED).standard_normal(missing) * _room_level(samples)
        samples = np.concatenate([samples, noise.astype(np.float32)])
    return soxr.resample(samples, WIRE_RATE_HZ, HEARING_RATE_HZ).astype(np.float32)


def _room_level(samples: Samples) -> float:
    """The level of the quietest moments, as a share of full scale."""
    window = WIRE_RATE_HZ // 100
    frames = samples[: len(samples) // window * window].reshape(-1, window)
    quiet = float(np.percentile(np.sqrt(np.mean(frames**2, axis=1)), QUIETEST_PERCENT))
    low, high = (10 ** (dbfs / 20) for dbfs in FLOOR_DBFS)
    return min(max(quiet, low), high)


async def _detect(stream: SileroStream, audio: Samples) -> Heard:
    policy = PROFILES["browser"]
    up, down = policy.voice_thresholds(None)
    voice = Voice()
    spans: list[tuple[int, int]] = []
    for start in range(0, len(audio) - DETECTOR_FRAME_SAMPLES + 1, DETECTOR_FRAME_SAMPLES):
        speech = await stream.step(audio[start : start + DETECTOR_FRAME_SAMPLES])
        position = start + DETECTOR_FRAME_SAMPLES
        change = voice.hear(position, speech, up, down, policy.voice_down_ms)
        if change is VoiceChange.DOWN and voice.voiced_ms >= policy.resume_confirm_ms:
            spans.append((voice.since, voice.quiet_since))
    if voice.is_up:
        spans.append((voice.since, voice.quiet_since))
    return Heard(tuple(spans))


def silences(recording: Recording, heard: Heard) -> list[Silence]:
    """Every silence that the detector saw, with its length in the sound."""
    if not heard.spans:
        return []
    per_ms = WIRE_RATE_HZ // 1000
    sound = [(start // per_ms, end // per_ms) for start, end in voiced_spans(recording.pcm)]
    first_ms = heard.spans[0][0] // SAMPLES_PER_MS
    found: list[Silence] = []
    for (_, end), (start, _) in zip(heard.spans, heard.spans[1:], strict=False):
        end_ms, start_ms = end // SAMPLES_PER_MS, start // SAMPLES_PER_MS
        kind, (begin_ms, over_ms) = _pause(recording, sound, end_ms, start_ms)
        found.append(
            Silence(
                kind, begin_ms, end_ms, over_ms - begin_ms, start_ms - end_ms, begin_ms - first_ms
            )
        )
    heard_ms = heard.spans[-1][1] // SAMPLES_PER_MS
    last_ms = max(sound[-1][1] if sound else heard_ms, heard_ms - HANGOVER_MS)
    found.append(Silence(Kind.END, last_ms, heard_ms, None, None, last_ms - first_ms))
    return found


def _pause(
    recording: Recording, sound: list[tuple[int, int]], end_ms: int, start_ms: int
) -> tuple[Kind, tuple[int, int]]:
    """What the detector's silence [end_ms, start_ms) is, and from when to when it lasts."""
    put = recording.put_pause_ms
    if put is not None and overlaps(put, end_ms, start_ms):
        is_whole = "two-utterances" in recording.tags
        return (Kind.TWO_UTTERANCES if is_whole else Kind.MID_PAUSE), put
    gaps = [(before[1], after[0]) for before, after in zip(sound, sound[1:], strict=False)]
    shared = [gap for gap in gaps if overlaps(gap, end_ms, start_ms)]
    begin, over = max(shared, key=lambda gap: gap[1] - gap[0], default=(end_ms, start_ms))
    return Kind.NATURAL, (max(begin, end_ms - HANGOVER_MS), over)


async def _ask(judge: SmartTurnJudge, audio: Samples, heard: Heard, silence: Silence) -> None:
    begin = max(0, heard.spans[0][0] - PROFILES["browser"].onset_padding_ms * SAMPLES_PER_MS)
    for silence_ms in SILENCES_MS:
        if silence.heard_length_ms is not None and silence_ms > silence.heard_length_ms:
            break
        end = (silence.heard_ms + silence_ms) * SAMPLES_PER_MS
        silence.verdicts[silence_ms] = round(await judge.ask(audio[begin:end]), 4)


def _row(recording: Recording, silence: Silence) -> dict[str, Any]:
    return {
        "recording": recording.name,
        "tags": sorted(recording.tags),
        "derived_from": list(recording.derived_from),
        "text": recording.text,
        "kind": silence.kind,
        "continues": silence.kind is not Kind.END,
        "length_ms": silence.length_ms,
        "heard_length_ms": silence.heard_length_ms,
        "begin_ms": silence.begin_ms,
        "heard_ms": silence.heard_ms,
        "spoken_ms": silence.spoken_ms,
        "probability": {str(ms): p for ms, p in silence.verdicts.items()},
    }
