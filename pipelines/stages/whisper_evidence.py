"""Tells what Whisper heard from what it made up.

Given noise, Whisper writes something all the same: the phrases that end its training videos, or a
fluent sentence about nothing. Its own doubt gives that away: its probability that nobody speaks is
high and its mean probability per token is low, both at once. Real answers of one word have one of
the two at most. The thresholds are set on recordings of rooms, machines, music and murmur against
answers, commands and murmured assents of people, near and far.
"""

from __future__ import annotations

import re

import numpy as np

from pipelines.stages.whisper_model import Hearing
from pipelines.types import HEARING_RATE_HZ, Samples

SILENT_PEAK = 3e-4  # -70 dBFS: below the noise of any microphone that is on
LIKELY_NO_SPEECH = 0.5
UNLIKELY_LOG_PROBABILITY = -0.8
HOPELESS_NO_SPEECH = 0.6  # so clear that no second hearing is worth its time ...
HOPELESS_LOG_PROBABILITY = -1.0
IMPOSSIBLE_LOG_PROBABILITY = -1.5  # no clip of speech comes near, even wrongly heard
VOICELESS_S = 0.06  # three frames: a clap or a click, no vowel
VOICELESS_NO_SPEECH = 0.3
LOOP_RATIO = 2.4  # of zlib's compression; Whisper's own threshold

FRAME_SAMPLES = 640  # 40 ms: two periods of the lowest voice
HOP_SAMPLES = 320  # 20 ms
HOP_S = HOP_SAMPLES / HEARING_RATE_HZ
VOICED_PEAK = 0.6  # of the normalised autocorrelation
LOWEST_VOICE_HZ = 60
HIGHEST_VOICE_HZ = 400

# What Whisper writes into silence, from the subtitles that it was trained on.
_MADE_UP = frozenset(
    {
        "",
        "bye",
        "bye bye",
        "i'm sorry",
        "music",
        "please subscribe",
        "subscribe",
        "subtitles by the amara org community",
        "thank you",
        "thank you for watching",
        "thank you so much",
        "thank you very much",
        "thanks for watching",
        "thanks for watching and i'll see you next time",
        "the end",
        "you",
    }
)
_MARKS_ONLY = re.compile(r"[\[(*♪].*[\])*♪]")  # [Music], (applause), ♪♪


def is_silent(audio: Samples) -> bool:
    """Whether there is nothing at all to hear."""
    return not len(audio) or float(np.abs(audio).max()) < SILENT_PEAK


def is_hopeless(hearing: Hearing) -> bool:
    """Whether a first hearing shows so little speech that a second one is not worth its time."""
    return (
        hearing.no_speech > HOPELESS_NO_SPEECH
        and hearing.log_probability < HOPELESS_LOG_PROBABILITY
    )


def is_made_up(hearing: Hearing, audio: Samples) -> bool:
    """Whether the text of a hearing was most likely never said."""
    if is_hopeless(hearing) or hearing.log_probability < IMPOSSIBLE_LOG_PROBABILITY:
        return True
    likely_nobody = hearing.no_speech > LIKELY_NO_SPEECH
    unlikely_text = hearing.log_probability < UNLIKELY_LOG_PROBABILITY
    if likely_nobody and unlikely_text:
        return True
    if hearing.compression > LOOP_RATIO and (likely_nobody or unlikely_text):
        return True
    if _is_known_invention(hearing.text) and (likely_nobody or unlikely_text):
        return True
    if hearing.no_speech > VOICELESS_NO_SPEECH or unlikely_text:
        return voiced_s(audio) < VOICELESS_S
    return False


def voiced_s(audio: Samples) -> float:
    """Seconds of periodic sound with the pitch of a voice (autocorrelation; Boersma, 1993)."""
    if len(audio) < FRAME_SAMPLES:
        return 0.0
    frames = np.lib.stride_tricks.sliding_window_view(audio, FRAME_SAMPLES)[::HOP_SAMPLES]
    frames = (frames - frames.mean(axis=1, keepdims=True)) * _WINDOW
    correlation = np.fft.irfft(np.abs(np.fft.rfft(frames, 2 * FRAME_SAMPLES)) ** 2)
    shortest = HEARING_RATE_HZ // HIGHEST_VOICE_HZ
    longest = HEARING_RATE_HZ // LOWEST_VOICE_HZ
    # Dividing by the window's own autocorrelation undoes its decay with the lag.
    lags = correlation[:, shortest:longest] / _WINDOW_CORRELATION[shortest:longest]
    power = correlation[:, :1] / _WINDOW_CORRELATION[0]
    peaks = (lags / np.maximum(power, SILENT_PEAK**2)).max(axis=1)
    return float((peaks > VOICED_PEAK).sum()) * HOP_S


def _is_known_invention(text: str) -> bool:
    if _MARKS_ONLY.fullmatch(text.strip()):
        return True
    words = re.sub(r"[^\w' ]+", " ", text.lower()).split()
    return " ".join(words) in _MADE_UP


_WINDOW = np.hanning(FRAME_SAMPLES).astype(np.float32)
_WINDOW_CORRELATION = np.fft.irfft(np.abs(np.fft.rfft(_WINDOW, 2 * FRAME_SAMPLES)) ** 2)
