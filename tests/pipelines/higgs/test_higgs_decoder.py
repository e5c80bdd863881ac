"""The plain decoder: independent of company bit for bit, and clear about misuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipelines.higgs.checkpoint.tensors import AUDIO_EMBEDDING, places
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.model.decoder import TorchDecoder
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.ports import INVALID_CODE, Decoder
from pipelines.higgs.row_faults import StepError
from pipelines.higgs.rows import NO_DRAW, Codes, Row, RowBatch, Sampling
from pipelines.higgs.synthetic.models import random_parameters, tiny_config

CONFIG = HiggsConfig.of(tiny_config())
CODEBOOKS = 8
ROWS = 24  # drawn by each stream
USUAL = Sampling()


@pytest.fixture(scope="module")
def parameters() -> HiggsParameters:
    return random_parameters(CONFIG, "cpu", torch.float32, seed=4)


def _decoder(
    parameters: HiggsParameters, *, slots: int = 4, is_rowwise: bool = True
) -> TorchDecoder:
    return TorchDecoder(
        CONFIG,
        parameters,
        slots=slots,
        positions=128,
        row_limit=200,
        device="cpu",
        is_rowwise=is_rowwise,
    )


def _prompt(slot: int, seed: int, sampling: Sampling = USUAL) -> list[Row]:
    """Text, a reference's rows, text, and a last token that draws."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    for kind in "t" * 5 + "c" * 12 + "t" * int(generator.integers(3, 20)):
        token = int(generator.integers(0, 400)) if kind == "t" else -1
        codes = tuple(int(code) for code in generator.integers(0, 34, CODEBOOKS))
        rows.append(Row(slot, len(rows), token, codes if kind == "c" else None))
    rows[-1] = replace(rows[-1], ramp=0, seed=seed, sampling=sampling)
    return rows


def _next_row(slot: int, prompt: int, number: int, seed: int, sampling: Sampling) -> Row:
    """What draws row `number`, at the position after the prompt and the rows before it."""
    return Row(slot, prompt + number - 1, ramp=number, seed=seed, draw=number, sampling=sampling)


def _step(decoder: Decoder, rows: list[Row]) -> Codes:
    decoder.launch(RowBatch.of(rows, CODEBOOKS))
    codes = decoder.collect()
    assert codes is not None
    return codes


def _alone(
    parameters: HiggsParameters, seed: int, sampling: Sampling, *, is_rowwise: bool = True
) -> Codes:
    decoder = _decoder(parameters, slots=1, is_rowwise=is_rowwise)
    prompt = _prompt(0, seed, sampling)
    first = _step(decoder, prompt)[-1]
    rows = [_next_row(0, len(prompt), number, seed, sampling) for number in range(1, ROWS)]
    return np.stack([first, *(_step(decoder, [row])[0] for row in rows)])


def _in_company(
    parameters: HiggsParameters, seeds: dict[int, int], sampling: dict[int, Sampling], chance: int
) -> dict[int, Codes]:
    """Streams that begin at random times, in prompts split at random, in steps of random order."""
    generator = np.random.default_rng(chance)
    decoder = _decoder(parameters)
    prompts = {slot: _prompt(slot, seed, sampling[slot]) for slot, seed in seeds.items()}
    fed = dict.fromkeys(seeds, 0)
    drawn: dict[int, list[Codes]] = {slot: [] for slot in seeds}
    while any(len(rows) < ROWS for rows in drawn.values()):
        step: list[Row] = []
        for slot in generator.permutation(list(seeds)).tolist():
            prompt = prompts[slot]
            if generator.random() < 0.3 or len(drawn[slot]) == ROWS:
                continue
            if fed[slot] < len(prompt):
                end = fed[slot] + int(generator.integers(1, 15))
                step += prompt[fed[slot] : end]
                fed[slot] = min(end, len(prompt))
            else:
                number = len(drawn[slot])
                row = _next_row(slot, len(prompt), number, seeds[slot], sampling[slot])
                step.append(row)
        if not step:
            continue
        for row, codes in zip(step, _step(decoder, step), strict=True):
            if row.ramp != NO_DRAW:
                drawn[row.slot].append(codes)
    return {slot: np.stack(rows) for slot, rows in drawn.items()}


@pytest.mark.parametrize("chance", range(4))
def test_codes_are_bit_for_bit_those_of_running_alone(
    parameters: HiggsParameters, chance: int
) -> None:
    seeds = {0: 11, 1: 12, 2: 13, 3: 14}
    sampling = {0: Sampling(), 1: Sampling(0.0), 2: Sampling(1.5, 1.0, -1), 3: Sampling(1.0, 0.5)}
    together = _in_company(parameters, seeds, sampling, chance)
    for slot, seed in seeds.items():
        alone = _alone(parameters, seed, sampling[slot])
        assert np.array_equal(together[slot], alone), slot


def test_hidden_states_too_are_bit_for_bit_those_of_running_alone(
    parameters: HiggsParameters,
) -> None:
    """Equal codes could hide a last bit; the caches do not."""
    together, alone = _decoder(parameters), _decoder(parameters)
    prompts = [_prompt(slot, 30 + slot) for slot in range(3)]
    _step(together, [row for prompt in prompts for row in prompt])
    for prompt in prompts:
        for row in prompt:
            _step(alone, [row])
    assert torch.equal(together._cache.keys, alone._cache.keys)
    assert torch.equal(together._cache.values, alone._cache.values)


def test_rows_together_draw_what_rows_apart_do(parameters: HiggsParameters) -> None:
    for seed in (21, 22, 23):
        apart = _alone(parameters, seed, Sampling())
        assert np.array_equal(apart, _alone(parameters, seed, Sampling(), is_rowwise=False))


def test_seeds_make_the_difference(parameters: HiggsParameters) -> None:
    prompt = _prompt(0, 1)
    drawn = [
        _step(_decoder(parameters), [*prompt[:-1], replace(prompt[-1], seed=seed, ramp=9)])[-1]
        for seed in (1, 2, 1)
    ]
    assert np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0], drawn[1])


def test_explicit_codes_count_as_drawn_ones_do(parameters: HiggsParameters) -> None:
    """A history that is given again leads to the same rows as having drawn it."""
    sampling, seed = Sampling(), 31
    drawn = _alone(parameters, seed, sampling)
    decoder = _decoder(parameters)
    prompt = _prompt(2, seed)
    given = [
        Row(2, len(prompt) + number, codes=tuple(int(code) for code in drawn[number]))
        for number in range(ROWS - 2)
    ]
    last = replace(_next_row(2, len(prompt), ROWS - 1, seed, sampling), codes=tuple(drawn[-2]))
    prompt[-1] = replace(prompt[-1], ramp=NO_DRAW)
    assert np.array_equal(_step(decoder, [*prompt, *given, last])[-1], drawn[-1])


def test_a_copied_prefix_serves_as_the_first(parameters: HiggsParameters) -> None:
    decoder = _decoder(parameters)
    prompt = _prompt(0, 41)
    _step(decoder, prompt[:17])
    decoder.copy(0, 3, 17)
    first = _step(decoder, prompt[17:])[-1]
    other = _step(decoder, [replace(row, slot=3) for row in prompt[17:]])[-1]
    assert np.array_equal(first, other)


def test_two_steps_may_be_under_way(parameters: HiggsParameters) -> None:
    decoder = _decoder(parameters)
    prompt = _prompt(0, 51)
    assert decoder.collect() is None
    decoder.launch(RowBatch.of(prompt, CODEBOOKS))
    decoder.launch(RowBatch.of([_next_row(0, len(prompt), 1, 51, Sampling())], CODEBOOKS))
    with pytest.raises(StepError, match="2 steps are launched and not collected"):
        decoder.launch(RowBatch.of([_next_row(0, len(prompt), 2, 51, Sampling())], CODEBOOKS))
    expected = _alone(parameters, 51, Sampling())
    first, second = decoder.collect(), decoder.collect()
    assert first is not None and second is not None
    assert np.array_equal(first[-1], expected[0])
    assert np.array_equal(second[0], expected[1])
    assert decoder.collect() is None


def test_weights_that_are_not_finite_give_invalid_codes_and_stop_nothing() -> None:
    broken = random_parameters(CONFIG, "cpu", torch.float32, seed=4)
    places(CONFIG, broken)[AUDIO_EMBEDDING][40] = float("nan")  # code 6 of codebook 1
    decoder = _decoder(broken, slots=1)
    codes = _step(decoder, [Row(0, 0, token=5, ramp=9)])
    assert codes.tolist() == [[INVALID_CODE] * CODEBOOKS]
    assert _step(decoder, [Row(0, 1, ramp=9)]).shape == (1, CODEBOOKS)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row(0, 128, token=1), "position is not one of 128"),
        (Row(1, 6), "drawn in this same step"),
    ],
)
def test_a_wrong_row_is_refused_by_number(
    parameters: HiggsParameters, row: Row, fault: str
) -> None:
    decoder = _decoder(parameters)
    rows = [Row(1, 5, token=7, ramp=0), row]
    with pytest.raises(StepError, match=rf"row 1 \(slot {row.slot}, position .*{fault}"):
        decoder.launch(RowBatch.of(rows, CODEBOOKS))
    assert decoder.collect() is None
    _step(decoder, rows[:1])


@pytest.mark.parametrize("count", [0, 201])
def test_a_step_has_its_limits(parameters: HiggsParameters, count: int) -> None:
    rows = RowBatch.of([Row(0, 0, token=1)] * count, CODEBOOKS)
    with pytest.raises(StepError, match=f"a step of {count} rows, but one takes 1 to 200"):
        _decoder(parameters).launch(rows)


def test_a_copy_has_its_limits(parameters: HiggsParameters) -> None:
    decoder = _decoder(parameters)
    with pytest.raises(StepError, match="slot 4 is not one of 4"):
        decoder.copy(0, 4, 1)
    with pytest.raises(StepError, match="129 positions, but a slot has 128"):
        decoder.copy(0, 1, 129)


def test_a_closed_decoder_says_so(parameters: HiggsParameters) -> None:
    decoder = _decoder(parameters)
    decoder.close()
    decoder.close()
    with pytest.raises(StepError, match="closed"):
        decoder.launch(RowBatch.of([Row(0, 0, token=1)], CODEBOOKS))
    with pytest.raises(StepError, match="closed"):
        decoder.collect()


def test_a_bfloat16_model_runs() -> None:
    parameters = random_parameters(CONFIG, "cpu", torch.bfloat16, seed=4)
    codes = _alone(parameters, 3, Sampling(), is_rowwise=False)
    assert ((codes >= 0) & (codes < 34)).all()
    assert len(np.unique(codes[:, 0])) > 5
