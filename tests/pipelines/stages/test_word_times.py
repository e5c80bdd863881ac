"""When the embedded voice says each word, against its own audio and a recogniser's ear."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
import soxr

from pipelines.stages import tts_piper
from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.stages.onnx import open_session, run
from pipelines.stages.onnx_graph import with_output_of
from pipelines.stages.phonemes import pronounce
from pipelines.stages.tts_piper import PiperSpeaker, PiperVoice
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples, SpeechDelta, WordEnd
from pipelines.weights import resolve
from pipelines.weights.catalogue import PIPER_JOE
from tests.pipelines.stages.embedded import check, outputs, room, say, started

pytestmark = pytest.mark.models

SENTENCES = (
    "The train to the north leaves every morning at nine.",
    "Paris, the capital of France, is famous for its museums and its tall tower.",
    "If it rains tomorrow, we can visit the old library near the river instead.",
    "My sister bought three green apples and a large bottle of milk.",
)
PAUSES = "Of course, sir; we open at ten, and close at six."
HOP_SAMPLES = 256


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its noise the voice says a sentence alike each time."""
    monkeypatch.setattr(tts_piper, "NOISE_SCALE", 0.0)
    monkeypatch.setattr(tts_piper, "NOISE_WIDTH_SCALE", 0.0)


def joined(deltas: list[SpeechDelta]) -> tuple[Samples, list[WordEnd]]:
    """All samples; and all word ends, counted from the first of them."""
    words, before = list[WordEnd](), 0
    for delta in deltas:
        words += [WordEnd(before + word.samples, word.text_end) for word in delta.words]
        before += len(delta.samples)
    return np.concatenate([delta.samples for delta in deltas]), words


def over(text: str, words: list[WordEnd]) -> list[tuple[int, int]]:
    """(samples, text_end) of each word of `text`, without pauses and parts of words."""
    ends = [found.end() for found in re.finditer(r"\S+", text)]
    first = {word.text_end: word.samples for word in reversed(words)}
    return [(first[end], end) for end in ends if end in first]


def loudness(samples: Samples, start: int, end: int) -> float:
    return float(np.abs(samples[max(0, start) : end]).max(initial=0.0))


def test_durations_add_up_to_the_audio() -> None:
    weights, configuration = PIPER_JOE
    voice = PiperVoice(resolve(weights), resolve(configuration), threads=2)
    for text in (*SENTENCES, "Hm.", "1984"):
        samples, sounds = voice.speak(pronounce(text), 1.0)
        assert sounds and not len(samples) % HOP_SAMPLES
        assert all(0 < sound.start < sound.end < len(samples) for sound in sounds)
        assert all(sound.end % HOP_SAMPLES == 0 for sound in sounds)


def test_the_added_output_changes_no_sample() -> None:
    model = resolve(PIPER_JOE[0])
    timed = with_output_of(model, "Ceil")
    assert timed is not None
    ids = np.array([[1, 0, 20, 0, 59, 0, 24, 0, 100, 0, 2]], np.int64)
    scales = np.array([0.0, 1.0, 0.0], np.float32)
    inputs = {"input": ids, "input_lengths": np.array([ids.size], np.int64), "scales": scales}
    (plain,) = run(open_session(model, 1), inputs)
    audio, durations = run(open_session(timed[0], 1), inputs)
    assert np.array_equal(plain, audio)
    assert durations.size == ids.size
    assert audio.size == HOP_SAMPLES * durations.sum()


@pytest.mark.parametrize("speed", [0.7, 1.0, 1.5])
def test_every_word_has_an_end_and_the_last_one_ends_the_voice(speed: float) -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            for text in (*SENTENCES, PAUSES):
                deltas = await say(speaker, text, speed=speed)
                samples, words = joined(deltas)
                assert words == sorted(words, key=lambda word: (word.samples, word.text_end))
                assert [end for _, end in over(text, words)] == [
                    found.end() for found in re.finditer(r"\S+", text)
                ]
                last = int(np.flatnonzero(np.abs(samples) > tts_piper.AUDIBLE)[-1])
                # A stop consonant at the very end is mostly silence.
                assert abs(words[-1].samples - last) < 0.15 * deltas[0].rate_hz
                for delta in deltas:
                    assert all(0 < word.samples <= len(delta.samples) for word in delta.words)
                    assert delta.words[-1].text_end <= delta.text_end

    check(main)


def test_a_pause_lies_between_words() -> None:
    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            deltas = await say(speaker, PAUSES)
            samples, words = joined(deltas)
            rate_hz = deltas[0].rate_hz
            pauses = [
                (one, other)
                for one, other in zip(words, words[1:], strict=False)
                if one.text_end == other.text_end
            ]
            before = [PAUSES[: pause.text_end].split()[-1] for pause, _ in pauses]
            assert set(before) >= {"course,", "ten,"}
            for start, end in pauses:
                assert end.samples - start.samples >= 0.05 * rate_hz
                middle = (start.samples + end.samples) // 2
                assert loudness(samples, middle - 220, middle + 220) < 0.02

    check(main)


def test_chunks_and_pieces_count_the_pushed_text() -> None:
    chunks = (f"{SENTENCES[1]} ", "😀 ", SENTENCES[0])

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            deltas = await say(speaker, *chunks)
            assert len(deltas) > len(chunks)  # a long chunk is said in pieces
            text = "".join(chunks)
            said = [text[:end].split()[-1] for _, end in over(text, joined(deltas)[1])]
            assert said == [word for word in text.split() if word.isascii()]

    check(main)


def test_a_voice_that_does_not_tell_has_no_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(model: Path, operator: str) -> None:
        return None

    monkeypatch.setattr(tts_piper, "with_output_of", without)

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker:
            deltas = await say(speaker, SENTENCES[0])
            assert all(delta.words == () and len(delta.samples) for delta in deltas)

    check(main)


def spelled(text: str) -> list[str]:
    return re.sub(r"[^a-z ]+", "", text.lower()).split()


def heard_words(text: str, heard: str) -> int:
    """How far into `text` what was heard reaches: to the end of the last words that match."""
    matcher = SequenceMatcher(None, spelled(text), spelled(heard), autojunk=False)
    return max((block.a + block.size for block in matcher.get_matching_blocks()[:-1]), default=0)


def test_an_ear_hears_the_words_that_are_over() -> None:
    """Audio cut at the end of a word holds the words up to it, give or take one."""

    async def main() -> None:
        async with started(PiperSpeaker()) as speaker, started(WhisperRecogniser()) as ears:
            distances: list[int] = []
            for text in SENTENCES:
                deltas = await say(speaker, text)
                samples, words = joined(deltas)
                for place, (end, _) in list(enumerate(over(text, words), 1))[2::3]:
                    cut = soxr.resample(samples[:end], deltas[0].rate_hz, HEARING_RATE_HZ)
                    silence = np.zeros(HEARING_RATE_HZ // 2, np.float32)
                    audio = room(np.concatenate([cut.astype(np.float32), silence]))
                    (found,) = await outputs(ears.open(RecogniseRequest("ear")), [audio])
                    distances.append(abs(heard_words(text, found.text) - place))
            assert len(distances) >= 15
            assert np.mean(np.array(distances) <= 1) >= 0.9, distances

    check(main)
