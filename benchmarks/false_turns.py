"""Silence, noise and music through a whole session, faster than real time: no turn may come of it.

The noise and the music are made here; with a folder, its recordings without speech follow.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import options
from benchmarks.recordings import load
from benchmarks.report import print_table, write_json
from pipelines.ports import Cascade
from pipelines.types import Samples, StageError
from pipelines.weights import WeightsError
from realtime.commands.wire_client import WIRE_RATE_HZ
from realtime.runtime.shell import SessionSetup
from realtime.runtime.simulate import simulate
from realtime.session.notices import InputCommitted, Notice, ResponseCreated, SpeechStarted
from realtime.session.settings import SessionType
from realtime.session_defaults import session_settings
from realtime.settings import Settings
from realtime.stages import create_cascade

SEED = 20_250_101  # every run makes the same noise
LEVEL = 10 ** (-30 / 20)  # of full scale: a loud room
NOTES_HZ = (220.0, 261.6, 329.6, 392.0, 440.0, 523.3)  # of a minor seventh chord and its octave
BEAT_S = 0.5


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="recordings tagged no-speech")
    parser.add_argument("--silence-minutes", type=float, default=30.0)
    parser.add_argument("--noise-minutes", type=float, default=10.0, help="noise and music in all")
    chosen = parser.parse_args()
    try:
        runs = asyncio.run(_listen(chosen))
    except (WeightsError, StageError) as error:
        sys.exit(str(error))
    print_table(
        ("heard", "minutes", "started", "turns", "responses", "times real time"),
        [tuple(asdict(run).values()) for run in runs],
    )
    turns = sum(run.turns for run in runs)
    print(f"\nturns committed: {turns}")
    write_json("false_turns", {"turns": turns, "runs": [asdict(r) for r in runs]}, chosen.json)
    if turns:
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one sound: turns begun, turns that became items, answers."""

    heard: str
    minutes: float
    started: int
    turns: int
    responses: int
    times_real_time: float


async def _listen(chosen: argparse.Namespace) -> list[Run]:
    settings = Settings()
    cascade = create_cascade(settings)
    await cascade.start(lambda _: None)
    share_s = chosen.noise_minutes * 60 / len(SOUNDS)
    silence: Samples = np.zeros(int(chosen.silence_minutes * 60 * WIRE_RATE_HZ), np.float32)
    sounds: dict[str, Samples] = {"silence": silence}
    random = np.random.default_rng(SEED)
    sounds |= {name: make(int(share_s * WIRE_RATE_HZ), random) for name, make in SOUNDS.items()}
    if chosen.folder is not None:
        clips = load(chosen.folder, frozenset({"no-speech"}))
        sounds |= {clip.name: clip.pcm.astype(np.float32) / np.float32(32_768) for clip in clips}
    try:
        return [await _run(name, audio, cascade, settings) for name, audio in sounds.items()]
    finally:
        await cascade.close()


async def _run(name: str, audio: Samples, cascade: Cascade, settings: Settings) -> Run:
    session = session_settings(
        settings.session,
        SessionType.REALTIME,
        model=cascade.model,
        voice=cascade.voices[0],
    )
    setup = SessionSetup(session, seed=SEED, drafts=settings.drafts)
    begin_s = time.monotonic()
    result = await simulate(audio, cascade, setup, quiet_ms=5000)
    took_s = time.monotonic() - begin_s
    minutes = len(audio) / WIRE_RATE_HZ / 60

    def count(kind: type[Notice]) -> int:
        return sum(isinstance(notice, kind) for _, notice in result.notices)

    return Run(
        name,
        round(minutes, 2),
        count(SpeechStarted),
        count(InputCommitted),
        count(ResponseCreated),
        round(minutes * 60 / took_s),
    )


def _white(count: int, random: np.random.Generator) -> Samples:
    return (random.standard_normal(count) * LEVEL).astype(np.float32)


def _coloured(exponent: float) -> Callable[[int, np.random.Generator], Samples]:
    """Noise whose power falls with frequency to the power of `exponent`."""

    def make(count: int, random: np.random.Generator) -> Samples:
        spectrum = np.fft.rfft(random.standard_normal(count))
        spectrum /= np.maximum(np.fft.rfftfreq(count), 1 / count) ** (exponent / 2)
        noise = np.fft.irfft(spectrum, count)
        return (noise / noise.std() * LEVEL).astype(np.float32)

    return make


def _hum(count: int, random: np.random.Generator) -> Samples:
    """Mains hum with its harmonics, and a little hiss."""
    at_s = np.arange(count) / WIRE_RATE_HZ
    hum = sum(np.sin(2 * np.pi * 50 * k * at_s) / k for k in range(1, 8))
    return (np.asarray(hum) * LEVEL + random.standard_normal(count) * LEVEL / 10).astype(np.float32)


def _music(count: int, random: np.random.Generator) -> Samples:
    """Plucked chords over a drum: pitches, onsets and harmonics, but no voice."""
    music = np.zeros(count)
    beat = int(BEAT_S * WIRE_RATE_HZ)
    at_s = np.arange(beat * 2) / WIRE_RATE_HZ
    for start in range(0, count - len(at_s), beat):
        for note_hz in random.choice(NOTES_HZ, 3, replace=False):
            tone = sum(np.sin(2 * np.pi * note_hz * k * at_s) / k**2 for k in range(1, 6))
            music[start : start + len(at_s)] += tone * np.exp(-3 * at_s)
        drum = random.standard_normal(len(at_s)) * np.exp(-40 * at_s)
        music[start : start + len(at_s)] += drum
    return (music / music.std() * LEVEL).astype(np.float32)


def _knocks(count: int, random: np.random.Generator) -> Samples:
    """Keys, clicks and doors: short bursts at random moments."""
    noise = random.standard_normal(count) * LEVEL / 20
    for start in random.integers(0, count - WIRE_RATE_HZ // 4, count // WIRE_RATE_HZ * 2):
        burst = random.standard_normal(WIRE_RATE_HZ // 20)
        noise[start : start + len(burst)] += burst * np.exp(-np.linspace(0, 8, len(burst))) * 0.3
    return noise.astype(np.float32)


SOUNDS: dict[str, Callable[[int, np.random.Generator], Samples]] = {
    "white noise": _white,
    "pink noise": _coloured(1.0),
    "brown noise": _coloured(2.0),
    "mains hum": _hum,
    "music": _music,
    "knocks": _knocks,
}


if __name__ == "__main__":
    main()
