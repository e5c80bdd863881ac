"""The batched sampler against the rule, and the rule against the distribution it stands for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from pipelines.higgs.model.sampler import DrawParameters, draw_row, draw_rows, noise
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.rows import Sampling

CODEBOOKS, CODEBOOK_SIZE = 8, 1026
BEGIN = CODEBOOK_SIZE - 2
NO_RAMP = 100

GREEDY = [Sampling(temperature=0.0), Sampling(temperature=1e-5), Sampling(top_k=1)]
SAMPLED = [
    Sampling(temperature, top_p, top_k)
    for temperature, top_p, top_k in itertools.product(
        (2e-5, 0.3, 0.8, 1.0, 2.0), (0.0, 0.1, 0.8, 0.95, 1.0), (-1, 0, 2, 30, 5000)
    )
]


def _logits(rows: int, seed: int, size: int = CODEBOOK_SIZE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3.0 * torch.randn(rows, CODEBOOKS, size, generator=generator)


def _parameters(
    sampling: list[Sampling], seeds: list[int], draws: list[int], ramps: list[int]
) -> DrawParameters:
    return DrawParameters(
        ramps=torch.tensor(ramps),
        seeds=torch.tensor(seeds),
        draws=torch.tensor(draws),
        temperatures=torch.tensor([each.temperature for each in sampling], dtype=torch.float32),
        top_p=torch.tensor([each.top_p for each in sampling], dtype=torch.float32),
        top_k=torch.tensor([each.top_k for each in sampling]),
    )


def _same(sampling: Sampling, seeds: list[int]) -> DrawParameters:
    count = len(seeds)
    return _parameters([sampling] * count, seeds, [0] * count, [NO_RAMP] * count)


@pytest.mark.parametrize("group", range(4))
def test_batched_rows_are_those_of_the_rule(group: int) -> None:
    generator = np.random.default_rng(group)
    sampling = [*GREEDY, *SAMPLED]
    generator.shuffle(sampling)  # pyright: ignore[reportArgumentType]
    rows = len(sampling)
    seeds = [0, 1, 2**31 - 1, *generator.integers(0, 2**31, rows - 3).tolist()]
    draws = generator.integers(0, 4000, rows).tolist()
    ramps = generator.integers(0, 12, rows).tolist()
    logits = _logits(rows, group)
    drawn = draw_rows(logits, _parameters(sampling, seeds, draws, ramps), BEGIN)
    assert drawn.dtype == torch.int32
    for row in range(rows):
        expected = draw_row(
            logits[row].numpy(),
            sampling[row],
            seed=seeds[row],
            draw=draws[row],
            ramp=ramps[row],
            begin_code=BEGIN,
        )
        assert tuple(drawn[row].tolist()) == expected, sampling[row]


def test_a_row_draws_the_same_in_any_company() -> None:
    logits = _logits(64, 5)
    parameters = _same(Sampling(), list(range(64)))
    together = draw_rows(logits, parameters, BEGIN)
    for row in (0, 17, 63):
        alone = draw_rows(logits[row : row + 1], _same(Sampling(), [row]), BEGIN)
        assert torch.equal(alone[0], together[row])


def test_seed_draw_and_codebook_all_change_the_noise() -> None:
    logits = torch.zeros(3, CODEBOOKS, CODEBOOK_SIZE)
    sampling = [Sampling(1.0, 1.0, -1)] * 3
    drawn = draw_rows(logits, _parameters(sampling, [1, 2, 1], [0, 0, 1], [NO_RAMP] * 3), BEGIN)
    assert len({tuple(row) for row in drawn.tolist()}) == 3
    assert all(len(set(row)) > 1 for row in drawn.tolist())


def test_greedy_takes_the_likeliest_whatever_the_seed() -> None:
    logits = _logits(4, 6)
    for sampling in GREEDY:
        drawn = draw_rows(logits, _same(sampling, [1, 2, 3, 4]), BEGIN)
        assert torch.equal(drawn.long(), logits.argmax(dim=-1))


def test_the_code_that_crosses_top_p_is_kept_and_the_next_is_not() -> None:
    probabilities = np.array([0.5, 0.25, 0.15, 0.06, 0.04])
    logits = torch.from_numpy(np.log(probabilities)).float().expand(4000, CODEBOOKS, 5).contiguous()
    drawn = draw_rows(logits, _same(Sampling(1.0, 0.8, -1), list(range(4000))), begin_code=5)
    assert set(drawn.unique().tolist()) == {0, 1, 2}


def test_top_p_is_taken_of_what_top_k_left() -> None:
    # Of the two likeliest, renormalised, the first holds 2/3: it alone crosses 0.6.
    probabilities = np.array([0.4, 0.2, 0.2, 0.2])
    logits = torch.from_numpy(np.log(probabilities)).float().expand(500, CODEBOOKS, 4).contiguous()
    drawn = draw_rows(logits, _same(Sampling(1.0, 0.6, 2), list(range(500))), begin_code=4)
    assert drawn.unique().tolist() == [0]


@pytest.mark.parametrize("is_along_draws", [False, True])
@pytest.mark.parametrize("sampling", [Sampling(1.0, 1.0, -1), Sampling(0.7, 0.9, 12)])
def test_drawn_codes_have_the_distribution(sampling: Sampling, is_along_draws: bool) -> None:
    """Chi-square over 16 codes, 8 x 4000 draws; 60 is exceeded once in 10 million at 15 degrees."""
    size, rows = 16, 4000
    row_logits = torch.randn(size, generator=torch.Generator().manual_seed(3))
    logits = row_logits.expand(rows, CODEBOOKS, size).contiguous()
    each, one = list(range(rows)), [5] * rows
    seeds, draws = (one, each) if is_along_draws else (each, one)
    parameters = _parameters([sampling] * rows, seeds, draws, [NO_RAMP] * rows)
    drawn = draw_rows(logits, parameters, begin_code=size)
    weights = np.exp(row_logits.double().numpy() / sampling.temperature)
    order = np.argsort(-weights)
    if sampling.top_k > 0:
        weights[order[sampling.top_k :]] = 0.0
    weights /= weights.sum()
    kept = np.cumsum(weights[order]) - weights[order] < sampling.top_p
    weights[order[~kept]] = 0.0
    expected = weights / weights.sum() * drawn.numel()
    counts = np.bincount(drawn.flatten().numpy(), minlength=size)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 60.0


@pytest.mark.parametrize("ramp", range(10))
def test_codebooks_beyond_the_ramp_become_begin(ramp: int) -> None:
    logits = _logits(2, 8)
    free = draw_rows(logits, _same(Sampling(), [1, 2]), BEGIN)
    held = draw_rows(logits, _parameters([Sampling()] * 2, [1, 2], [0, 0], [ramp, ramp]), BEGIN)
    assert torch.equal(held[:, : ramp + 1], free[:, : ramp + 1])
    assert (held[:, ramp + 1 :] == BEGIN).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.0)])
def test_logits_that_are_not_finite_spoil_their_own_row_alone(
    value: float, sampling: Sampling
) -> None:
    logits = _logits(3, 9)
    sound = draw_rows(logits, _same(sampling, [1, 2, 3]), BEGIN)
    logits[1, 7, 1000] = value
    parameters = _parameters([sampling] * 3, [1, 2, 3], [0, 0, 0], [NO_RAMP, 2, NO_RAMP])
    drawn = draw_rows(logits, parameters, BEGIN)
    assert drawn[1].tolist() == [INVALID_CODE] * CODEBOOKS
    assert torch.equal(drawn[[0, 2]], sound[[0, 2]])
    row = draw_row(logits[1].numpy(), sampling, seed=2, draw=0, ramp=2, begin_code=BEGIN)
    assert row == (INVALID_CODE,) * CODEBOOKS


def test_the_largest_hash_makes_no_infinite_noise() -> None:
    """One hash in 2^24 has all upper bits set; a uniform of 1 would win every draw it is in."""
    mask = 0xFFFFFFFF
    # The inverse of the finaliser and of the first product finds the code of such a hash.
    x = 0xFFFFFF00
    x ^= x >> 16
    x = (x * pow(0xC2B2AE35, -1, 2**32)) & mask
    x = x ^ (x >> 13) ^ (x >> 26)
    x = (x * pow(0x85EBCA6B, -1, 2**32)) & mask
    x ^= x >> 16
    seed = (x * pow(0x9E3779B1, -1, 2**32)) & mask
    assert 16.0 < noise(seed, 0, 0) < 17.0
    logits = torch.zeros(1, 1, 3)
    logits[0, 0, 1] = 40.0  # beyond any finite noise, and the others' p is not yet 0
    # top_p above 1: the first code's probability rounds to 1, and the others are to stay.
    drawn = draw_rows(logits, _same(Sampling(1.0, 2.0, -1), [seed]), begin_code=3)
    assert drawn.tolist() == [[1]]


def test_the_least_and_the_greatest_noise_are_finite() -> None:
    values = [noise(seed, position, 7) for seed in range(50) for position in range(50)]
    assert np.isfinite(values).all()
    assert abs(np.mean(values) - np.euler_gamma) < 0.1


def test_no_value_is_read_by_the_host() -> None:
    """Tensors without values: whatever read one, or took a shape from one, would raise."""
    parameters = DrawParameters(
        **{
            name: torch.empty(5, device="meta", dtype=torch.int64)
            for name in ("ramps", "seeds", "draws", "top_k")
        },
        **{name: torch.empty(5, device="meta") for name in ("temperatures", "top_p")},
    )
    logits = torch.empty(5, CODEBOOKS, CODEBOOK_SIZE, device="meta")
    drawn = draw_rows(logits, parameters, BEGIN)
    assert drawn.shape == (5, CODEBOOKS)
    assert drawn.dtype == torch.int32
