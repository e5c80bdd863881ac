"""The fused embedding and the head, against loops over codebooks."""

from __future__ import annotations

import torch

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.model.embedding import code_logits, embed_codes

AUDIO = AudioConfig(codebooks=8, codebook_size=34)
HIDDEN = 48


def _table(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(8 * 34, HIDDEN, generator=generator).to(dtype)


def _codes(rows: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 34, (rows, 8), generator=generator, dtype=torch.int32)


def test_an_embedding_is_the_sum_over_codebooks() -> None:
    table, codes = _table(), _codes(20)
    embedded = embed_codes(codes, table, AUDIO)
    for row in range(20):
        expected = torch.zeros(HIDDEN)
        for codebook in range(8):
            expected += table[34 * codebook + int(codes[row, codebook])]
        torch.testing.assert_close(embedded[row], expected)


def test_a_sum_is_rounded_once() -> None:
    table, codes = _table(torch.bfloat16), _codes(20)
    exact = embed_codes(codes, table.float(), AUDIO)
    assert torch.equal(embed_codes(codes, table, AUDIO), exact.bfloat16())


def test_the_special_codes_have_rows_of_their_own() -> None:
    table = _table()
    begin = torch.full((1, 8), AUDIO.begin_code)
    end = torch.full((1, 8), AUDIO.end_code)
    rows = table.view(8, 34, HIDDEN)
    torch.testing.assert_close(embed_codes(begin, table, AUDIO)[0], rows[:, 32].sum(0))
    torch.testing.assert_close(embed_codes(end, table, AUDIO)[0], rows[:, 33].sum(0))


def test_a_code_that_is_not_valid_counts_as_zero() -> None:
    table = _table()
    invalid, zero = torch.full((1, 8), -1), torch.zeros(1, 8, dtype=torch.int64)
    assert torch.equal(embed_codes(invalid, table, AUDIO), embed_codes(zero, table, AUDIO))


def test_each_codebook_has_the_logits_of_its_own_rows() -> None:
    table = _table()
    hidden = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(2))
    logits = code_logits(hidden, table, AUDIO)
    assert logits.shape == (5, 8, 34)
    for row in range(5):
        for codebook in range(8):
            for code in (0, 17, 32, 33):
                expected = hidden[row] @ table[34 * codebook + code]
                torch.testing.assert_close(logits[row, codebook, code], expected)


def test_logits_are_float32_whatever_the_model_is() -> None:
    logits = code_logits(torch.ones(1, HIDDEN, dtype=torch.bfloat16), _table(torch.bfloat16), AUDIO)
    assert logits.dtype == torch.float32
