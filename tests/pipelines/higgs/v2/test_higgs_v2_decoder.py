"""Whole utterances through rows and the stop rule, against transformers' own generation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import HiggsAudioV2Processor

from pipelines.higgs.member import V2, Repetition
from pipelines.higgs.model.delay import undelay
from pipelines.higgs.model.sampler import DrawParameters, draw_rows
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.rows import NO_DRAW, Codes, Row, RowBatch, Sampling
from pipelines.higgs.text.prompt import Item
from pipelines.higgs.v2.decoder import V2TorchDecoder
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.synthetic import random_parameters
from tests.pipelines.higgs.v2.judge import (
    AUDIO,
    BEGIN_ROW,
    CONFIG,
    END_ROW,
    GREEDY,
    judge_inputs,
    judge_of,
    prompt,
    prompt_rows,
    reference,
)

ROWS = 90  # after which a speech without an end is cut
STOP = V2.stop_rule(AUDIO)


def decoder_of(
    parameters: DualParameters, repetition: Repetition | None = None, *, is_rowwise: bool = True
) -> V2TorchDecoder:
    return V2TorchDecoder(
        CONFIG,
        parameters,
        slots=3,
        positions=220,
        row_limit=220,
        device="cpu",
        is_rowwise=is_rowwise,
        repetition=repetition,
    )


def run(decoder: V2TorchDecoder, rows: list[Row]) -> Codes:
    """What the rows drew, in the order of those that draw."""
    decoder.launch(RowBatch.of(rows, AUDIO.codebooks))
    codes = decoder.collect()
    assert codes is not None
    return codes[[row.ramp != NO_DRAW for row in rows]]


def speak(
    decoder: V2TorchDecoder,
    items: list[Item],
    *,
    slot: int = 0,
    rows_at_most: int = ROWS,
    sampling: Sampling = GREEDY,
    seed: int = 0,
) -> list[tuple[int, ...]]:
    """Every row that is drawn until `rows_at_most`, end or no end."""
    drawn = run(decoder, prompt_rows(items, slot, sampling=sampling, seed=seed))
    spoken = [tuple(drawn[0].tolist())]
    while len(spoken) < rows_at_most:
        row = Row(
            slot,
            len(items) + len(spoken) - 1,
            ramp=len(spoken),
            draw=len(spoken),
            sampling=sampling,
            seed=seed,
        )
        spoken.append(tuple(run(decoder, [row])[0].tolist()))
    return spoken


def frame_count(spoken: list[tuple[int, ...]]) -> int | None:
    found = (STOP.frame_count(number, row) for number, row in enumerate(spoken))
    return next((count for count in found if count is not None), None)


def judged(judge: Any, items: list[Item], **settings: Any) -> list[tuple[int, ...]]:
    """The rows that the judge draws behind its row of begin codes."""
    inputs = judge_inputs(items)
    before = inputs["audio_input_ids"].shape[1] if "audio_input_ids" in inputs else 0
    with torch.inference_mode():
        answer = judge.generate(**inputs, max_new_tokens=ROWS + 1, **settings)
    rows = [tuple(row) for row in answer[0, before:].tolist()]
    assert rows[0] == BEGIN_ROW
    return rows[1:]


@pytest.mark.parametrize("heard", [None, reference(12, seed=8)], ids=["bare", "cloned"])
@pytest.mark.parametrize("ending_codebooks", [1, AUDIO.codebooks])
def test_greedy_speech_is_that_of_transformers(heard: Codes | None, ending_codebooks: int) -> None:
    """Every code up to and with the rows that the end forces, for ends in any codebook."""
    ends: set[int] = set()
    for seed in range(6):
        parameters = random_parameters(
            CONFIG, "cpu", torch.float32, seed, ending_codebooks=ending_codebooks
        )
        items = prompt([31 + seed, 32, 33], heard)
        expected = judged(judge_of(parameters), items, do_sample=False)
        found = speak(decoder_of(parameters), items, rows_at_most=len(expected))
        assert found == expected
        count = frame_count(found)
        if len(expected) < ROWS:
            assert expected[-1] == END_ROW
            assert count is not None
            ends.add(count)
            # What the frames are made of is drawn before the judge stops, and is not forced.
            assert STOP.row_count(count) < len(expected)
            frames = undelay(np.array(found[: STOP.row_count(count)], np.int32))
            assert len(frames) == count
            if ending_codebooks == 1:
                assert (frames < AUDIO.begin_code).all()
    assert len(ends) > 2


def test_the_frames_are_those_that_the_processor_decodes() -> None:
    """It decodes one frame more where the end was forced: the one that holds the end codes."""
    marks: Any = SimpleNamespace()
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 2)
    items = prompt([31, 32], None)
    rows = judged(judge_of(parameters), items, do_sample=False)
    assert rows[-1] == END_ROW
    codes = HiggsAudioV2Processor.revert_delay_pattern(marks, torch.tensor(rows[:-1]))
    expected = codes.clip(0, AUDIO.begin_code - 1).numpy()
    count = frame_count(rows)
    assert count is not None
    assert count > 0
    assert 0 <= len(expected) - count <= 1
    frames = undelay(np.array(rows[: STOP.row_count(count)], np.int32))
    found = np.minimum(frames, V2.stray_code(AUDIO))
    assert np.array_equal(found, expected[:count])


def second_best(probabilities: Tensor) -> Tensor:
    return probabilities.topk(2).indices[..., 1:]


def test_codes_that_repeat_are_drawn_again_where_transformers_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Greedy, and the second likeliest for the second draw on both sides: every code is equal."""
    again = 0

    def multinomial(values: Tensor, *_: object, **__: object) -> Tensor:
        nonlocal again
        again += len(values)
        return second_best(values)

    def drawn(logits: Tensor, parameters: DrawParameters, begin_code: int) -> Tensor:
        codes = draw_rows(logits, parameters, begin_code)
        is_second = (parameters.temperatures == 1.0).view(-1, 1) & (codes != begin_code)
        return second_best(logits).squeeze(-1).int().where(is_second, codes)

    monkeypatch.setattr(torch.Tensor, "multinomial", multinomial)
    monkeypatch.setattr("pipelines.higgs.v2.decoder.draw_rows", drawn)
    heard = reference(12, seed=8)
    for seed, rule in enumerate((Repetition(), Repetition(5, 1), Repetition(9, 3))):
        parameters = random_parameters(CONFIG, "cpu", torch.float32, seed, ending_codebooks=0)
        judge = judge_of(parameters)
        judge.generation_config.ras_win_len = rule.window_rows
        judge.generation_config.ras_win_max_num_repeat = rule.limit
        items = prompt([41, 42, 43], heard)
        expected = judged(judge, items, do_sample=False)
        assert speak(decoder_of(parameters, rule), items, rows_at_most=len(expected)) == expected
        assert speak(decoder_of(parameters), items, rows_at_most=len(expected)) != expected
    assert again > 20


SAMPLED = Sampling(temperature=1.0, top_p=1.0, top_k=0)


def test_a_second_draw_has_noise_of_its_own() -> None:
    """With the parameters of the second draw in the first, the same noise would change nothing."""
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 3, ending_codebooks=0)
    items = prompt([41], None)
    once = speak(decoder_of(parameters), items, sampling=SAMPLED, seed=5, rows_at_most=40)
    rule = Repetition(9, 1)
    again = speak(decoder_of(parameters, rule), items, sampling=SAMPLED, seed=5, rows_at_most=40)
    assert once != again
    assert again == speak(
        decoder_of(parameters, rule), items, sampling=SAMPLED, seed=5, rows_at_most=40
    )


@pytest.mark.parametrize("codebooks", [1, AUDIO.codebooks])
def test_speech_that_is_fed_again_goes_on_the_same(codebooks: int) -> None:
    """What was drawn, given as codes: the end's wind-down and the repetitions are found again."""
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 2, ending_codebooks=codebooks)
    items = prompt([31, 32], reference(4, seed=1))
    rule = Repetition(7, 1)
    spoken = speak(decoder_of(parameters, rule), items, sampling=SAMPLED, seed=9, rows_at_most=40)
    assert frame_count(spoken) is not None
    for cut in (1, 5, 12, 20, 33):
        decoder = decoder_of(parameters, rule)
        rows = prompt_rows([*items, *spoken[:cut]], 2)
        rows[-1] = replace(rows[-1], ramp=cut, draw=cut, sampling=SAMPLED, seed=9)
        half = len(rows) // 2
        run(decoder, rows[:half])
        assert tuple(run(decoder, rows[half:])[0].tolist()) == spoken[cut]


@pytest.mark.parametrize("is_rowwise", [True, False])
def test_streams_that_share_steps_speak_as_alone(is_rowwise: bool) -> None:
    """A prompt of one slot, split in two, and speech of two others, one of them past its end."""
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 4)
    rule = Repetition()
    prompts = [prompt([51 + n, 52], heard) for n, heard in enumerate((None, reference(6, 2), None))]
    alone = [
        speak(decoder_of(parameters, rule), items, sampling=SAMPLED, seed=n, rows_at_most=30)
        for n, items in enumerate(prompts)
    ]
    decoder = decoder_of(parameters, rule, is_rowwise=is_rowwise)
    waiting = [prompt_rows(items, n, sampling=SAMPLED, seed=n) for n, items in enumerate(prompts)]
    found: list[list[tuple[int, ...]]] = [[], [], []]
    while any(len(spoken) < 30 for spoken in found):
        step: list[Row] = []
        for slot, rows in enumerate(waiting):
            step += rows[: 9 + slot]
            del rows[: 9 + slot]
        drawn = run(decoder, step)
        for row, codes in zip([row for row in step if row.ramp != NO_DRAW], drawn, strict=True):
            spoken = found[row.slot]
            spoken.append(tuple(codes.tolist()))
            count = len(spoken)
            waiting[row.slot].append(
                Row(
                    row.slot,
                    row.position + 1,
                    ramp=count,
                    draw=count,
                    sampling=SAMPLED,
                    seed=row.slot,
                )
            )
    for spoken, expected in zip(found, alone, strict=True):
        assert spoken[:30] == expected


def test_a_slot_remembers_nothing_of_the_reply_before() -> None:
    """One that was broken off in the middle, so that its last rows are full of codes."""
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 4, ending_codebooks=0)
    decoder = decoder_of(parameters, Repetition(9, 1))
    first, second = prompt([51], None), prompt([52], None)
    expected = speak(decoder, second, slot=1, sampling=SAMPLED, seed=3, rows_at_most=12)
    speak(decoder, first, sampling=SAMPLED, seed=3, rows_at_most=25)
    assert speak(decoder, second, sampling=SAMPLED, seed=3, rows_at_most=12) == expected


def test_a_copied_preamble_serves_another_slot() -> None:
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 5)
    decoder = decoder_of(parameters, Repetition())
    items = prompt([61, 62], reference(6, seed=3))
    expected = speak(decoder, items, slot=0, rows_at_most=20)
    kept = len(items) - 4
    decoder.copy(0, 1, kept)
    rows = prompt_rows(items, 1, sampling=GREEDY)[kept:]
    assert tuple(run(decoder, rows)[0].tolist()) == expected[0]
    second = Row(1, len(items), ramp=1, draw=1, sampling=GREEDY)
    assert tuple(run(decoder, [second])[0].tolist()) == expected[1]


def test_logits_that_are_not_finite_are_told_and_not_forced() -> None:
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 6)
    broken = replace(parameters, audio_head=parameters.audio_head * float("nan"))
    items = [*prompt([61], None), END_ROW]  # behind an end code
    rows = prompt_rows(items, 0, sampling=GREEDY)
    assert (run(decoder_of(parameters, Repetition()), rows)[0] == AUDIO.end_code).any()
    assert (run(decoder_of(broken, Repetition()), rows)[0] == INVALID_CODE).all()


@pytest.mark.parametrize("rule", [Repetition(0, 2), Repetition(10, 2), Repetition(7, 0)])
def test_a_window_that_would_reach_into_earlier_speech_is_refused(rule: Repetition) -> None:
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 7)
    with pytest.raises(ValueError, match="repetition"):
        decoder_of(parameters, rule)
