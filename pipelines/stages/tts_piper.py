"""The voice: a Piper model on ONNX Runtime, fed with phonemes; chunk by chunk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from pipelines.ports import Progress
from pipelines.runtime.cpu import CpuToken
from pipelines.runtime.lead import SPEAKER_LEAD
from pipelines.runtime.one_shot import OneShotStage
from pipelines.runtime.ticket import Ticket
from pipelines.stages.onnx import first_use, open_session, run
from pipelines.stages.onnx_graph import with_output_of
from pipelines.stages.phonemes import Pronounced, pronounce
from pipelines.stages.word_times import WordSound, spell, word_ends, word_sounds
from pipelines.text.spoken import spoken
from pipelines.text.word_places import word_places
from pipelines.types import Samples, SpeakRequest, SpeechDelta, StageError
from pipelines.weights import resolve
from pipelines.weights.catalogue import PIPER_JOE

VOICES = ("joe",)

FIRST_PIECE_WORDS = 6  # of a request: the sooner it ends, the sooner something is heard
PIECE_WORDS = 16  # 0.25 s of work on two cores; the most that who is more urgent waits for
PIECE_CHARS = 160  # more than that many words usually have
WORD_CHARS = 48  # more than any word has; of letters and digits that are spelled, 5 s of speech
CLAUSE_AT_LEAST_WORDS = 3  # a shorter clause alone sounds like a list

LEAD_MS = 15  # of silence before the first sound, so that its attack is whole
AUDIBLE = 0.01  # -40 dBFS; the model's own silence is at -60
SPEED_RANGE = (0.5, 2.0)  # beyond, the model mumbles

# Variance of the sound and of the timing, as the voice was published with.
NOISE_SCALE = 0.667
NOISE_WIDTH_SCALE = 0.8

# A full stop after a short word may belong to an abbreviation.
_CLAUSE_END = re.compile(r"(?:[,;:!?]|(?<=\w{4})\.)(?=\s)")
_ENDLESS = re.compile(rf"\S{{{WORD_CHARS + 1}}}")


class PiperSpeaker(OneShotStage[SpeakRequest, str, SpeechDelta]):
    """`pipelines.ports.Speaker`. Each pushed chunk is spoken for itself.

    model: a Piper voice that is used instead of joe, with its configuration beside it (.json).
    The voice has one speaker, whatever name a request gives, and copies none: a request with a
    sample fails with `copying_unsupported`. The model draws its noise itself, where no seed
    reaches: a request sounds a little different each time. One with a seed, whichever, is spoken
    without noise, and sounds the same each time; no more is looked at in `Drawing`.
    """

    def __init__(
        self, model: Path | None = None, *, cpu: CpuToken | None = None, threads: int = 2
    ) -> None:
        progress_of: WeakKeyDictionary[Ticket, _Spoken] = WeakKeyDictionary()

        def load(progress: Progress) -> PiperVoice:
            weights, configuration = PIPER_JOE
            beside = None if model is None else model.with_name(model.name + ".json")
            found = resolve(weights, model)
            progress(f"voice: loading {found.name}")
            settings = resolve(configuration, beside)
            with first_use(found):
                voice = PiperVoice(found, settings, threads)
                voice.speak(pronounce("Hello there, this warms the voice up."), 1.0)
            return voice

        def speak(
            voice: PiperVoice, request: SpeakRequest, chunk: str, ticket: Ticket
        ) -> Iterator[SpeechDelta]:
            if request.sample is not None:
                raise _copies_none()
            done = progress_of.setdefault(ticket, _Spoken())
            speed = float(np.clip(request.speed, *SPEED_RANGE))
            is_varied = request.drawing.seed is None
            for piece in pieces(chunk, first=not done.heard):
                whole, sounds = voice.speak(_pronounced(piece), speed, ticket, is_varied=is_varied)
                samples = whole
                if not done.heard:
                    samples = trim_lead(whole, voice.rate_hz)
                    done.heard = len(samples) > 0
                trimmed = len(whole) - len(samples)
                words = word_ends(sounds, voice.rate_hz, trimmed, done.text_end)
                done.text_end += len(piece)
                yield SpeechDelta(samples, voice.rate_hz, done.text_end, words)

        super().__init__("tts", load, speak, cpu, lead=SPEAKER_LEAD)

    @property
    def voices(self) -> tuple[str, ...]:
        return VOICES


@dataclass(slots=True)
class _Spoken:
    """How far one request is."""

    text_end: int = 0
    heard: bool = False


class PiperVoice:
    """Blocking. One call at a time."""

    def __init__(self, model: Path, configuration: Path, threads: int) -> None:
        try:
            settings = json.loads(configuration.read_text(encoding="utf-8"))
            self._ids: dict[str, list[int]] = settings["phoneme_id_map"]
            self.rate_hz: int = settings["audio"]["sample_rate"]
        except (ValueError, KeyError) as error:
            raise StageError(
                "tts_failed", f"{configuration} is no configuration of a Piper voice: {error!r}"
            ) from error
        # How many hops each unit lasts: the one thing in the graph that is rounded up.
        timed = with_output_of(model, "Ceil")
        self._session = open_session(model if timed is None else timed[0], threads)
        names = [output.name for output in self._session.get_outputs()]
        self._durations_at = None if timed is None else names.index(timed[1])

    def speak(
        self,
        words: Sequence[Pronounced],
        speed: float,
        ticket: Ticket | None = None,
        *,
        is_varied: bool = True,
    ) -> tuple[Samples, tuple[WordSound, ...]]:
        """float32 [n] at `rate_hz`, empty if there is nothing to say; and when each word sounds,
        empty if the model does not tell. Raises Aborted in the middle of it if the ticket dies.

        is_varied: by chance, as a speaker never says a thing twice alike.
        """
        if not words:
            return np.zeros(0, np.float32), ()
        spelling = spell(words, self._ids)
        noise, width_noise = (NOISE_SCALE, NOISE_WIDTH_SCALE) if is_varied else (0.0, 0.0)
        inputs = {
            "input": np.array([spelling.ids], np.int64),
            "input_lengths": np.array([len(spelling.ids)], np.int64),
            "scales": np.array([noise, 1.0 / speed, width_noise], np.float32),
        }
        found = run(self._session, inputs, ticket)
        audio = found[0].ravel()
        if self._durations_at is None:
            return np.clip(audio, -1.0, 1.0), ()
        sounds = word_sounds(spelling, found[self._durations_at].ravel(), len(audio))
        return np.clip(audio, -1.0, 1.0), sounds


def pieces(chunk: str, *, first: bool) -> list[str]:
    """A chunk in pieces that are spoken one by one; joined they are the chunk.

    Cut at ends of clauses, where the voice pauses anyway; between words only where a clause is too
    long, and inside a word where it is longer than a piece.
    first: whether nothing was heard yet, and the first piece should be short.
    """
    found: list[str] = []
    rest = chunk
    while rest:
        most_words = FIRST_PIECE_WORDS if first and not found else PIECE_WORDS
        end = _bounded(rest, _piece_end(rest[: 2 * PIECE_CHARS], most_words))
        found.append(rest[:end])
        rest = rest[end:]
    return found or [chunk]


def trim_lead(samples: Samples, rate_hz: int) -> Samples:
    """Without the silence before the first sound, but for `LEAD_MS`."""
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE)
    if not len(audible):
        return samples
    return samples[max(0, int(audible[0]) - LEAD_MS * rate_hz // 1000) :]


def _copies_none() -> StageError:
    return StageError(
        "copying_unsupported",
        "This server's voice has one speaker and copies no other from a recording: leave the "
        "recording out, or set stages.speaker.kind to higgs.",
    )


def _pronounced(piece: str) -> tuple[Pronounced, ...]:
    """The words of a piece as they are said; their ends are those of the piece's own words."""
    said = spoken(piece)
    place_of = word_places(said, piece)
    return tuple(Pronounced(word.ipa, place_of[word.text_end]) for word in pronounce(said))


def _bounded(text: str, end: int) -> int:
    """The end of a piece, or of the last whole word in it that keeps it within `PIECE_CHARS`; and
    inside of a word that is longer than `WORD_CHARS`."""
    if end > PIECE_CHARS:
        ends = [word.end() for word in re.finditer(r"\S+(?=\s)", text[: PIECE_CHARS + 1])]
        end = ends[-1] if ends else PIECE_CHARS
    endless = _ENDLESS.search(text, 0, end)
    return end if endless is None else endless.start() + WORD_CHARS


def _piece_end(text: str, most_words: int) -> int:
    """Where the next piece of `text` ends: at the last clause end within `most_words`, or later."""
    words = list(re.finditer(r"\S+", text))
    if len(words) <= most_words:
        return len(text)
    ends = [end.end() for end in _CLAUSE_END.finditer(text)]
    fitting = [end for end in ends if CLAUSE_AT_LEAST_WORDS <= len(text[:end].split())]
    within = [end for end in fitting if end <= words[most_words - 1].end()]
    if within:
        return within[-1]
    if len(words) <= PIECE_WORDS:
        return len(text)  # one clause: a cut inside it would be heard
    soon = [end for end in fitting if end <= words[PIECE_WORDS - 1].end()]
    return soon[0] if soon else words[PIECE_WORDS - 1].end()
