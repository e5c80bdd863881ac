"""What people and rooms do while an agent speaks, by category, from a folder of recordings.

Coughs and throats have no recordings: they are made here of shaped noise, a burst of air and a
rattle, which is what a detector of voices makes of them, not what a physician would. Short
backchannels and commands are few among recordings, so the embedded voice says some more; names of
made sounds begin with "made:".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from benchmarks.recordings import Recording, load, voiced_spans
from benchmarks.voice_to_voice import UNSUITABLE
from benchmarks.voicing import speak_all
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm

SEED = 20_250_103  # every run makes the same sounds
SPEECH_DBFS = -26.0  # of a person who speaks to the agent, over voiced windows
ASIDE_DB = -12.0  # quieter: somebody who has turned away
BEHIND_DB = -18.0  # quieter: somebody at another table
ASIDE_BELOW_HZ = 2500.0  # a voice from behind loses its treble
EXCERPT_MS = 3000  # of long recordings: the loudest stretch
SHORT_MS = 1600  # what is over so soon is one word or a few
SOFT_END_MS = 150
SPEEDS = (0.75, 1.0)
BACKCHANNELS = ("Mm-hm.", "Uh-huh.", "Yeah.", "Right.", "Okay.")
COMMANDS = ("Stop.", "Wait.", "Hold on.", "No, tell me more.")


class Category(StrEnum):
    INTERRUPTION_SHORT = "interruption, short"
    INTERRUPTION = "interruption, sentence"
    BACKCHANNEL = "backchannel"
    COUGH = "cough"
    NOISE = "noise"
    ASIDE = "to others"
    BEHIND = "background speech"

    @property
    def should_yield(self) -> bool:
        """Whether an agent that listens stops for it."""
        return self in (Category.INTERRUPTION_SHORT, Category.INTERRUPTION)


@dataclass(frozen=True, slots=True)
class Sound:
    """pcm: int16 [n] at WIRE_RATE_HZ, which begins with its onset."""

    category: Category
    name: str
    pcm: Pcm


def gather(folder: Path, count: int) -> list[Sound]:
    """Up to `count` sounds of every category for which the folder has recordings."""
    everything = [r for r in load(folder) if not r.derived_from]
    speech = [r for r in everything if not r.tags & UNSUITABLE and r.text]
    short = [r for r in speech if _voiced_ms(r.pcm) <= SHORT_MS]
    whole = [r for r in speech if _voiced_ms(r.pcm) > SHORT_MS]
    murmurs = [r for r in everything if "backchannel" in r.tags]
    noises = [r for r in everything if "no-speech" in r.tags and "silence" not in r.tags]
    babble = [r for r in noises if "background-speech" in r.tags]
    room = [r for r in noises if "background-speech" not in r.tags]
    pools: dict[Category, list[tuple[str, Pcm]]] = {
        Category.INTERRUPTION_SHORT: _said(_marked_first(short, "interrupt"), count)
        + _made_speech(COMMANDS, (1.0,)),
        Category.INTERRUPTION: _said(_marked_first(whole, "question"), count),
        Category.BACKCHANNEL: _said(murmurs, count) + _made_speech(BACKCHANNELS, SPEEDS),
        Category.COUGH: _made_coughs(count),
        Category.NOISE: _heard(_marked_first(room, "transient")),
        Category.ASIDE: _said(whole[::-1], count, ASIDE_DB, _muffled),
        Category.BEHIND: _heard(babble) + _said(whole[1:], count, BEHIND_DB),
    }
    return [
        Sound(category, name, pcm)
        for category, pool in pools.items()
        for name, pcm in _evenly(pool, count)
    ]


def _evenly(pool: list[tuple[str, Pcm]], count: int) -> list[tuple[str, Pcm]]:
    places = np.linspace(0, len(pool) - 1, min(count, len(pool))).round().astype(int)
    return [pool[place] for place in places]


def _marked_first(recordings: list[Recording], tag: str) -> list[Recording]:
    return sorted(recordings, key=lambda r: tag not in r.tags)


def _said(
    recordings: list[Recording],
    count: int,
    gain_db: float = 0.0,
    change: Callable[[Pcm], Pcm] = lambda pcm: pcm,
) -> list[tuple[str, Pcm]]:
    """Speech at its level, from its onset to its end."""
    return [
        (r.name, change(levelled(_trimmed(r.pcm), SPEECH_DBFS + gain_db)))
        for r in recordings[:count]
    ]


def _made_speech(texts: tuple[str, ...], speeds: tuple[float, ...]) -> list[tuple[str, Pcm]]:
    return [
        (f"made: {text} at {speed}", levelled(_trimmed(pcm), SPEECH_DBFS))
        for speed in speeds
        for text, pcm in zip(texts, speak_all(list(texts), speed), strict=True)
    ]


def _heard(recordings: list[Recording]) -> list[tuple[str, Pcm]]:
    """Noise as loud as it was recorded; talk of many as loud as talk behind somebody is."""
    return [
        (
            r.name,
            levelled(loudest(r.pcm), SPEECH_DBFS + BEHIND_DB)
            if "background-speech" in r.tags
            else loudest(r.pcm),
        )
        for r in recordings
    ]


def _voiced_ms(pcm: Pcm) -> float:
    spans = voiced_spans(pcm)
    return (spans[-1][1] - spans[0][0]) * 1000 / WIRE_RATE_HZ if spans else 0.0


def _trimmed(pcm: Pcm) -> Pcm:
    """From its onset to a little after its last voiced window: words end softly."""
    spans = voiced_spans(pcm)
    after = WIRE_RATE_HZ * SOFT_END_MS // 1000
    return pcm[spans[0][0] : spans[-1][1] + after] if spans else pcm


def levelled(pcm: Pcm, dbfs: float) -> Pcm:
    """The same sound with its voiced windows at a level; never louder than full scale."""
    voiced = [pcm[start:end] for start, end in voiced_spans(pcm)] or [pcm]
    rms = float(np.sqrt(np.mean(np.concatenate(voiced).astype(np.float64) ** 2)))
    if rms == 0:
        return pcm
    scaled = pcm * (32_768 * 10 ** (dbfs / 20) / rms)
    return np.clip(scaled, -32_768, 32_767).astype(np.int16)


def loudest(pcm: Pcm) -> Pcm:
    """The EXCERPT_MS of it that have the most energy."""
    length = WIRE_RATE_HZ * EXCERPT_MS // 1000
    if len(pcm) <= length:
        return pcm
    energy = np.concatenate([[0.0], np.cumsum(pcm.astype(np.float64) ** 2)])
    start = int(np.argmax(energy[length:] - energy[:-length]))
    return pcm[start : start + length]


def _muffled(pcm: Pcm) -> Pcm:
    return _band(pcm.astype(np.float64), 0.0, ASIDE_BELOW_HZ).astype(np.int16)


def _band(signal: np.ndarray, low_hz: float, high_hz: float) -> np.ndarray:
    """Without what lies outside [low_hz, high_hz)."""
    spectrum = np.fft.rfft(signal)
    at_hz = np.fft.rfftfreq(len(signal), 1 / WIRE_RATE_HZ)
    spectrum[(at_hz < low_hz) | (at_hz >= high_hz)] = 0
    return np.fft.irfft(spectrum, len(signal))


def _made_coughs(count: int) -> list[tuple[str, Pcm]]:
    """Coughs of one and two bursts and cleared throats, in turn, each a little different."""
    random = np.random.default_rng(SEED)
    makers = (("cough", 1, _cough), ("two coughs", 2, _cough), ("throat", 1, _throat))
    made: list[tuple[str, Pcm]] = []
    for place in range(count):
        name, times, make = makers[place % len(makers)]
        pieces: list[np.ndarray] = []
        for _ in range(times):
            pieces += [make(random), np.zeros(WIRE_RATE_HZ * 180 // 1000)]
        loud = np.concatenate(pieces[:-1])
        pcm = (loud / np.abs(loud).max() * 32_767 * 0.5).astype(np.int16)
        made.append((f"made: {name} {place // len(makers) + 1}", levelled(pcm, SPEECH_DBFS)))
    return made


def _cough(random: np.random.Generator) -> np.ndarray:
    """The burst in which the air breaks free, then its rush through the throat; 0.2 to 0.35 s."""
    burst = _noise(random, random.uniform(50, 90), 300, 6000)
    rush = _noise(random, random.uniform(150, 260), 200, 3000)
    rush *= np.exp(-np.linspace(0, 4, len(rush))) * 0.6
    burst *= np.minimum(1.0, np.linspace(0, 12, len(burst)))
    return np.concatenate([burst, rush])


def _throat(random: np.random.Generator) -> np.ndarray:
    """A rattle of the vocal folds: low noise in pulses; 0.3 to 0.5 s."""
    noise = _noise(random, random.uniform(300, 500), 120, 1800)
    at_s = np.arange(len(noise)) / WIRE_RATE_HZ
    pulses = 0.5 + 0.5 * np.sin(2 * np.pi * random.uniform(35, 60) * at_s)
    return noise * pulses * np.sin(np.linspace(0, np.pi, len(noise)))


def _noise(
    random: np.random.Generator, length_ms: float, low_hz: float, high_hz: float
) -> np.ndarray:
    noise = random.standard_normal(int(length_ms * WIRE_RATE_HZ / 1000))
    return _band(noise, low_hz, high_hz)
