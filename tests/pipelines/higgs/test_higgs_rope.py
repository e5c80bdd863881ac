"""The table of angles: its base, its precision, and the rotation."""

from __future__ import annotations

import math

import pytest
import torch

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.model.rope import RopeTable, inverse_frequencies, rope_table
from pipelines.higgs.synthetic.models import full_config, tiny_config

POSITIONS = 4096


def _table(theta: float | None = None, *, is_rounded: bool = False) -> RopeTable:
    content = tiny_config()
    content["text_config"]["rope_theta"] = theta
    frequencies = inverse_frequencies(HiggsConfig.of(content).backbone)
    return rope_table(frequencies, POSITIONS, "cpu", is_rounded=is_rounded)


def test_a_null_base_is_a_million() -> None:
    assert full_config()["text_config"]["rope_theta"] is None
    table = _table(None)
    for position, pair in ((1, 0), (1, 7), (3000, 3), (4095, 7)):
        angle = position * 1_000_000.0 ** (-2 * pair / 16)
        assert table.cos[position, pair].item() == pytest.approx(math.cos(angle), abs=1e-3)
        assert table.sin[position, pair].item() == pytest.approx(math.sin(angle), abs=1e-3)


def test_the_default_of_other_models_would_be_another_table() -> None:
    right = _table(None)
    wrong = _table(10_000.0)
    assert (right.cos - wrong.cos).abs().max() > 1.0


def test_a_rounded_table_holds_values_of_bfloat16_in_float32() -> None:
    exact = _table()
    rounded = _table(is_rounded=True)
    for values, of_exact in ((rounded.cos, exact.cos), (rounded.sin, exact.sin)):
        assert values.dtype == torch.float32
        assert torch.equal(values, of_exact.bfloat16().float())
        assert not torch.equal(values, of_exact)
        assert (values - of_exact).abs().max() <= 2.0**-9


def test_rotation_turns_each_pair_by_its_angle() -> None:
    table = _table()
    heads = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([0, 5, 777])
    turned = table.rotate(heads, positions)
    for row, position in enumerate(positions.tolist()):
        for pair in range(8):
            turn = complex(table.cos[position, pair].item(), table.sin[position, pair].item())
            for head in range(2):
                before = complex(heads[row, head, pair].item(), heads[row, head, pair + 8].item())
                after = complex(turned[row, head, pair].item(), turned[row, head, pair + 8].item())
                assert abs(before * turn - after) < 1e-5
    assert torch.equal(turned[0], heads[0])
