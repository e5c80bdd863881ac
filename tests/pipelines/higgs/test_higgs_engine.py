"""Whole replies on a tiny model: what is heard, whoever else is served."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipelines.higgs.config import CODEC_RATE_HZ
from pipelines.higgs.model.delay import delay
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.reply.sequence import check_preamble
from pipelines.higgs.rows import Codes, RowBatch, Sampling
from pipelines.higgs.text.vocabulary import AUDIO, TEXT, TTS
from tests.pipelines.higgs.voices import (
    CONFIG,
    Voice,
    codec_model,
    make_voice,
    reference,
    script,
    sound,
    tokenizer,
)

TEXTS = ("Hello there, how are you?", "I am well.", "It rains, and it will rain tomorrow.")


def codes_of(voice: Voice) -> list[Codes]:
    """All frames that the codec is given from now on, job by job."""
    seen: list[Codes] = []
    submit = voice.codec.submit

    def watched(jobs):  # type: ignore[no-untyped-def]
        seen.extend(job.codes for job in jobs)
        return submit(jobs)

    voice.codec.submit = watched  # type: ignore[method-assign]
    return seen


def test_what_is_heard_is_all_frames_decoded_at_once() -> None:
    voice = make_voice()
    seen = codes_of(voice)

    heard = sound(voice.say(0, *TEXTS))

    frames = np.concatenate(seen)
    with torch.inference_mode():
        whole = codec_model().decode(torch.from_numpy(frames.astype(np.int64))).numpy()
    assert len(heard) == len(whole) == len(frames) * 960
    np.testing.assert_allclose(heard, whole, atol=1e-4)
    assert np.abs(whole).max() > 0.01


def test_the_first_sound_leaves_long_before_the_last_frame_is_drawn() -> None:
    voice = make_voice(typical_rows=200)

    pieces = [len(delta.samples) for delta in voice.say(0, TEXTS[2])]

    assert pieces[0] <= 2 * 960  # of one frame or, where that ends before the next, two
    assert max(pieces) > 4 * pieces[0]  # larger ones follow when the listener has enough ahead
    assert pieces[:-1] == sorted(pieces[:-1])


def test_text_covered_by_sound_only_ever_grows_to_all_of_it() -> None:
    deltas = make_voice().say(0, *TEXTS)

    covered = [delta.text_end for delta in deltas]
    assert covered == sorted(covered) and covered[-1] == sum(map(len, TEXTS))
    for delta in deltas:
        ends = [word.samples for word in delta.words]
        assert ends == sorted(ends) and all(0 <= end <= len(delta.samples) for end in ends)
        assert all(word.text_end <= delta.text_end for word in delta.words)
    words = sum(len(delta.words) for delta in deltas)
    assert words == len(" ".join(TEXTS).split())


def test_a_stream_sounds_alike_alone_and_in_company() -> None:
    alone = make_voice()
    expected = [sound(alone.say(0, text, seed=seed)) for seed, text in enumerate(TEXTS)]

    shared = make_voice()
    for slot, text in enumerate(TEXTS):
        shared.open(slot, seed=slot)
        shared.engine.feed(slot, text)
        shared.engine.feed(slot, None)
        shared.step(list(range(slot + 1)))
    shared.run({0, 1, 2})

    for slot, samples in enumerate(expected):
        np.testing.assert_array_equal(sound(shared.heard[slot]), samples)


def test_a_reference_that_was_fed_before_is_copied_and_sounds_alike() -> None:
    cloned = script().preamble(delay(reference(), 32, 33), "What I said.")
    voice = make_voice(prefixes=1)
    rows: list[int] = []
    launch = voice.decoder.launch

    def counted(batch: RowBatch) -> None:
        rows.append(len(batch))
        launch(batch)

    voice.decoder.launch = counted  # type: ignore[method-assign]
    first = sound(voice.say(0, TEXTS[0], preamble=cloned))
    fed = sum(rows)
    again = sound(voice.say(1, TEXTS[0], preamble=cloned))

    np.testing.assert_array_equal(first, again)
    assert sum(rows) - fed == fed - len(cloned.items)


def test_a_starved_stream_keeps_its_slot_and_goes_on_with_the_next_step() -> None:
    voice = make_voice()
    voice.open(0)
    voice.engine.feed(0, TEXTS[0])
    outcome = voice.engine.step([0])[0]
    for _ in range(500):
        if outcome.is_starved:
            break
        outcome = voice.engine.step([0])[0]
    assert outcome.is_starved and not outcome.is_ended

    voice.engine.feed(0, TEXTS[1])
    rows: list[RowBatch] = []
    launch = voice.decoder.launch

    def watched(batch: RowBatch) -> None:
        rows.append(batch)
        launch(batch)

    voice.decoder.launch = watched  # type: ignore[method-assign]
    voice.engine.step([0])

    assert len(rows) == 1 and rows[0].ramps[-1] == 0  # its text is fed and its first row drawn


def test_text_that_comes_late_is_spoken_behind_what_was_held() -> None:
    """While no text comes the tail waits for it, and is let go before the listener runs dry."""
    voice = make_voice()
    voice.open(0)
    voice.engine.feed(0, TEXTS[0])
    waits = 0
    for _ in range(2000):
        outcome = voice.engine.step([0])[0]
        voice.heard[0] += outcome.outputs
        waits += outcome.is_starved and outcome.again_s is not None
        if outcome.is_starved and outcome.again_s is None:
            break
    assert waits > 0
    assert len(sound(voice.heard[0])) % 960 == 0  # nothing is held any more
    voice.engine.feed(0, TEXTS[1])
    voice.engine.feed(0, None)
    voice.run({0})

    assert voice.heard[0][-1].text_end == len(TEXTS[0]) + len(TEXTS[1])


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "🙂🙂", "<|audio|><|text_end|>", "...", "<|emotion:awe|>"]
)
def test_text_that_says_nothing_makes_no_sound_and_ends(text: str) -> None:
    deltas = make_voice().say(0, text)

    assert len(sound(deltas)) == 0
    assert not text or deltas[-1].text_end == len(text)


def test_specials_in_the_text_do_not_become_tokens() -> None:
    voice = make_voice()
    tokens: list[int] = []
    launch = voice.decoder.launch

    def watched(batch: RowBatch) -> None:
        tokens.extend(batch.tokens.tolist())
        launch(batch)

    voice.decoder.launch = watched  # type: ignore[method-assign]
    voice.say(0, "Hello<|audio|><|text|> there<|tts|>.")

    for name in (TTS, TEXT, AUDIO):
        assert tokens.count(tokenizer().special(name)) == 1


def test_fifty_thousand_characters_are_spoken_in_chunks_that_fit() -> None:
    voice = make_voice(typical_rows=9)
    stream = voice.open(0)
    voice.engine.feed(0, "word " * 10_000)
    for _ in range(300):
        voice.step([0])

    assert stream.sequence.rebuilds > 2
    assert stream.error is None and voice.heard[0][-1].text_end > 1000
    voice.engine.close(0)


def test_prompts_are_fed_however_many_streams_draw() -> None:
    voice = make_voice(streams=70, positions=200)
    for slot in range(66):
        voice.open(slot)
        voice.engine.feed(slot, "Hello there.")
        voice.run_until_drawing(slot)
    waiting = voice.open(66)
    voice.engine.feed(66, "Hello there.")
    for _ in range(4):
        voice.step([66, *range(66)])

    assert waiting.sequence.rows_drawn > 0


def test_a_chunk_without_a_frame_does_not_stop_the_words_behind_it() -> None:
    voice = make_voice()
    stream = voice.open(0)
    for text in TEXTS:
        voice.engine.feed(0, text)
    voice.engine.feed(0, None)
    while stream.sequence.chunk != 1:
        voice.step([0])
    stream.sequence.cut(0)
    for frames in stream.sequence.take_frames():
        stream._hold(frames)  # pyright: ignore[reportPrivateUsage]
    voice.run({0})

    told = [word.text_end for delta in voice.heard[0] for word in delta.words]
    with_sound = [delta.text_end for delta in voice.heard[0] if len(delta.samples)]
    assert told == sorted(told) and with_sound[-1] == sum(map(len, TEXTS))


def test_one_streams_mistake_is_its_own() -> None:
    alone = sound(make_voice().say(1, TEXTS[1], seed=7))
    voice = make_voice()
    for slot in (0, 1):
        stream = voice.open(slot, seed=7)
        voice.engine.feed(slot, TEXTS[1])
        voice.engine.feed(slot, None)
        if slot == 0:
            stream.accept = lambda row, generation: 1 // 0  # type: ignore[method-assign]
    over: set[int] = set()
    while not over:
        over = voice.step([0, 1])
    voice.engine.close(0)
    voice.run({1})

    assert voice.errors[0].code == "tts_failed" and "ZeroDivisionError" in voice.errors[0].message
    np.testing.assert_array_equal(sound(voice.heard[1]), alone)


def test_what_is_not_a_number_fails_its_own_stream_alone() -> None:
    alone = sound(make_voice().say(1, TEXTS[1], seed=7))
    voice = make_voice()
    for slot in (0, 1):
        voice.open(slot, seed=7)
        voice.engine.feed(slot, TEXTS[1])
        voice.engine.feed(slot, None)
    collect = voice.decoder.collect

    launch, slots = voice.decoder.launch, list[list[int]]()

    def watched(batch: RowBatch) -> None:
        slots.append(batch.slots.tolist())
        launch(batch)

    def poisoned() -> Codes | None:
        codes = collect()
        if codes is not None:
            codes[[slot == 0 for slot in slots.pop(0)]] = INVALID_CODE
        return codes

    voice.decoder.launch = watched  # type: ignore[method-assign]
    voice.decoder.collect = poisoned  # type: ignore[method-assign]
    over: set[int] = set()
    while not over:
        over = voice.step([0, 1])
    assert over == {0} and voice.errors[0].code == "tts_failed"
    voice.engine.close(0)
    voice.run({1})

    np.testing.assert_array_equal(sound(voice.heard[1]), alone)


def test_a_closed_slot_leaves_nothing_to_the_next_stream() -> None:
    expected = sound(make_voice().say(0, TEXTS[1], seed=3))
    voice = make_voice()
    voice.open(0, seed=9)
    voice.engine.feed(0, TEXTS[2])
    for _ in range(30):
        voice.step([0])
    voice.engine.close(0)

    np.testing.assert_array_equal(sound(voice.say(0, TEXTS[1], seed=3)), expected)


def test_the_same_seed_says_the_same_and_another_something_else() -> None:
    voice = make_voice()
    first, again, other = (sound(voice.say(0, TEXTS[0], seed=seed)) for seed in (4, 4, 5))

    np.testing.assert_array_equal(first, again)
    assert len(first) != len(other) or not np.array_equal(first, other)


def test_greedy_speech_knows_no_seed() -> None:
    voice = make_voice()
    greedy = Sampling(temperature=0.0)
    first, other = (sound(voice.say(0, TEXTS[0], seed=s, sampling=greedy)) for s in (4, 5))

    np.testing.assert_array_equal(first, other)


def test_an_engine_needs_as_many_slots_as_streams() -> None:
    voice = make_voice(streams=2)
    with pytest.raises(ValueError, match="3 streams need as many slots"):
        type(voice.engine)(voice.decoder, voice.codec, streams=3, codebooks=CONFIG.audio.codebooks)


def test_a_long_sentence_is_spoken_beside_a_reference_that_leaves_little_room() -> None:
    voice = make_voice(streams=1, positions=600, typical_rows=20)
    rows = delay(reference(455), CONFIG.audio.begin_code, CONFIG.audio.end_code)
    preamble = script().preamble(rows, None)
    check_preamble(len(preamble.items), 600)
    text = "Thank you for calling; I have found your order, and it will be with you on Thursday."

    deltas = voice.say(0, text, preamble=preamble)

    assert voice.errors == {}
    assert deltas[-1].text_end == len(text)
    assert sum(len(delta.samples) for delta in deltas) > CODEC_RATE_HZ
