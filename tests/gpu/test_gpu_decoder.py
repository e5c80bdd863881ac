"""The decoder on a GPU against a float32 model: what it computes, and what it keeps apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda.decoder import CudaDecoder
from pipelines.higgs.model.backbone import Backbone, KeyValueCache
from pipelines.higgs.model.embedding import code_logits, embed_codes
from pipelines.higgs.model.parameters import HiggsParameters, LayerParameters
from pipelines.higgs.model.rope import inverse_frequencies, rope_table
from pipelines.higgs.model.sampler import DrawParameters, draw_rows
from pipelines.higgs.ports import INVALID_CODE
from pipelines.higgs.row_faults import StepError
from pipelines.higgs.rows import Row, RowBatch, Sampling
from pipelines.higgs.synthetic.models import model_config, random_parameters

pytestmark = pytest.mark.gpu

SLOTS, POSITIONS, ROW_LIMIT = 70, 192, 256
BROKEN_TOKEN = 7  # its embedding is not a number
GREEDY = Sampling(temperature=0.0)
TOLERANCE = 2e-2  # of bfloat16 against float32, relative, over three layers

CONFIG = HiggsConfig.of(
    model_config(
        hidden_size=2560,
        intermediate_size=9728,
        layers=3,
        query_heads=32,
        kv_heads=8,
        head_dim=128,
        vocabulary=500,
        codebooks=8,
        codebook_size=1026,
    )
)


@pytest.fixture(scope="module")
def parameters() -> HiggsParameters:
    made = random_parameters(CONFIG, "cuda", torch.bfloat16, seed=1)
    layers = tuple(_with_random_norms(layer) for layer in made.layers)
    made.text_embedding[BROKEN_TOKEN] = torch.nan
    return replace(made, layers=layers, norm=made.norm * _about_one(made.norm))


def _with_random_norms(layer: LayerParameters) -> LayerParameters:
    return replace(
        layer,
        input_norm=_about_one(layer.input_norm),
        q_norm=_about_one(layer.q_norm),
        k_norm=_about_one(layer.k_norm),
        post_norm=_about_one(layer.post_norm),
    )


def _about_one(like: Tensor) -> Tensor:
    return (1.0 + 0.3 * torch.randn(like.shape, device=like.device)).to(like.dtype)


@pytest.fixture(scope="module", params=[True, False], ids=["native", "library"])
def decoder(request: pytest.FixtureRequest, parameters: HiggsParameters) -> Iterator[CudaDecoder]:
    """Its cache is poisoned: whatever reads what no row wrote shows it."""
    made = CudaDecoder(
        CONFIG,
        parameters,
        slots=SLOTS,
        positions=POSITIONS,
        row_limit=ROW_LIMIT,
        device="cuda",
        is_native=request.param,
    )
    assert made.is_native == request.param
    made.poison()
    yield made
    made.close()


class Reference:
    """The same model in float32. Rows of codes must be given explicitly."""

    def __init__(self, parameters: HiggsParameters) -> None:
        exact = [
            LayerParameters(*(getattr(layer, name).float() for name in LayerParameters.__slots__))
            for layer in parameters.layers
        ]
        self._parameters = replace(
            parameters,
            layers=tuple(exact),
            norm=parameters.norm.float(),
            text_embedding=parameters.text_embedding.float(),
            audio_embedding=parameters.audio_embedding.float(),
            audio_head=parameters.audio_head.float(),
        )
        cache = KeyValueCache.empty(
            CONFIG.backbone, slots=SLOTS, positions=POSITIONS, device="cuda", dtype=torch.float32
        )
        table = rope_table(inverse_frequencies(CONFIG.backbone), POSITIONS, "cuda", is_rounded=True)
        self._backbone = Backbone(CONFIG.backbone, self._parameters, table, cache)

    def logits(self, rows: RowBatch) -> Tensor:
        tokens = torch.from_numpy(rows.tokens).long().cuda()
        codes = torch.from_numpy(rows.codes).cuda()
        embedded = torch.where(
            (tokens >= 0).unsqueeze(1),
            self._parameters.text_embedding[tokens.clamp(min=0)],
            embed_codes(codes, self._parameters.audio_embedding, CONFIG.audio),
        )
        with torch.inference_mode():
            hidden = self._backbone.forward(embedded, rows.slots, rows.positions)
            return code_logits(hidden, self._parameters.audio_head, CONFIG.audio).flatten(1)


@pytest.fixture(scope="module")
def reference(parameters: HiggsParameters) -> Reference:
    return Reference(parameters)


def run(decoder: CudaDecoder, rows: list[Row]) -> tuple[np.ndarray, Tensor]:
    """The codes and logits float32 of a step."""
    decoder.launch(RowBatch.of(rows, CONFIG.audio.codebooks))
    codes = decoder.collect()
    assert codes is not None
    return codes, decoder.logits[: len(rows)].float().clone()


def prompt(slot: int, length: int, *, first: int = 0, seed: int = 0) -> list[Row]:
    """Tokens and explicit codes; the last row draws."""
    made = np.random.default_rng(seed + slot)
    rows: list[Row] = []
    for position in range(length):
        codes = tuple(int(code) for code in made.integers(0, 1024, 8))
        token = int(made.integers(8, 500))
        is_text = made.random() < 0.5
        rows.append(
            Row(slot, position, token=token if is_text else -1, codes=None if is_text else codes)
        )
    rows[-1] = replace(rows[-1], ramp=9, sampling=GREEDY)
    return rows[first:]


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("streams", [1, 2, 3, 7, 16, 20, 32, 41, 64, 70])
def test_a_stream_follows_the_float32_model(
    decoder: CudaDecoder, reference: Reference, streams: int
) -> None:
    """Prompts of several lengths in mixed steps, then streams that go on from what they drew."""
    rows = [row for slot in range(streams) for row in prompt(slot, 3 + (slot * 7) % 60)]
    drawn = np.zeros((streams, 8), np.int32)
    lengths = [3 + (slot * 7) % 60 for slot in range(streams)]
    for start in range(0, len(rows), ROW_LIMIT):
        part = rows[start : start + ROW_LIMIT]
        codes, logits = run(decoder, part)
        expected = reference.logits(RowBatch.of(part, 8))
        drawing = [number for number, row in enumerate(part) if row.ramp >= 0]
        for number in drawing:
            drawn[part[number].slot] = codes[number]
        if drawing:
            assert distance(logits[drawing], expected[drawing]) < TOLERANCE
    for _ in range(3):
        said = [Row(slot, lengths[slot], ramp=9, sampling=GREEDY) for slot in range(streams)]
        known = [replace(row, codes=tuple(int(code) for code in drawn[row.slot])) for row in said]
        codes, logits = run(decoder, said)
        expected = reference.logits(RowBatch.of(known, 8))
        assert distance(logits, expected) < TOLERANCE
        _assert_greedy(codes, logits, expected)
        drawn, lengths = codes, [length + 1 for length in lengths]


def _assert_greedy(codes: np.ndarray, logits: Tensor, expected: Tensor) -> None:
    """The codes are the likeliest of their own logits, and of the exact ones but for near ties."""
    own = logits.view(len(codes), 8, -1).argmax(-1).cpu().numpy()
    assert (own == codes).all()
    exact = expected.view(len(codes), 8, -1)
    best = exact.topk(2, dim=-1)
    margin = (best.values[..., 0] - best.values[..., 1]).cpu().numpy()
    noise = 0.1 * float(exact.std())
    assert (best.indices[..., 0].cpu().numpy() == codes)[margin > noise].all()


def test_codes_are_drawn_as_the_sampler_says(decoder: CudaDecoder) -> None:
    """All ways of sampling, on the decoder's own logits; every row with its own noise."""
    ways = [
        Sampling(0.8, 0.8, 30),
        Sampling(1.0, 1.0, 0),
        Sampling(0.7, 0.3, 5),
        Sampling(2.5, 0.95, -1),
        Sampling(0.8, 0.0, 30),
        Sampling(1.3, 0.9, 2000),
        GREEDY,
        Sampling(0.9, 0.9, 1),
    ]
    for step in range(4):
        rows = [
            replace(
                prompt(slot, 1)[0],
                ramp=slot % 10,
                seed=1234567 * slot - 3,
                draw=step * 100 + slot,
                sampling=ways[(slot + step) % len(ways)],
            )
            for slot in range(64)
        ]
        batch = RowBatch.of(rows, 8)
        codes, logits = run(decoder, rows)
        expected = draw_rows(
            logits.view(64, 8, -1), DrawParameters.of(batch, "cuda"), CONFIG.audio.begin_code
        )
        differing = int((expected.cpu().numpy() != codes).sum())
        assert differing <= 1, "but for a sum of probabilities that another order rounds over p"


def test_a_prompt_may_be_split_anywhere(decoder: CudaDecoder) -> None:
    rows = prompt(5, 90)
    whole, of_whole = run(decoder, rows)
    for pieces in ([1, 89], [40, 7, 43], [33, 33, 24]):
        *leading, last = pieces
        start = 0
        for size in leading:
            run(decoder, rows[start : start + size])
            start += size
        codes, logits = run(decoder, rows[-last:])
        assert distance(logits[-1], of_whole[-1]) < TOLERANCE
        assert (codes[-1] == whole[-1]).mean() >= 0.75  # near ties may turn


@pytest.mark.parametrize("count", [2, 8, 16, 64])
def test_slots_never_touch_each_other(decoder: CudaDecoder, count: int) -> None:
    """Bit for bit, whatever the other rows of the step are."""
    run(decoder, prompt(0, 50))
    seen: list[Tensor] = []
    for seed in (1, 2):
        for slot in range(1, count):
            run(decoder, prompt(slot, 2, seed=seed * 100))
        others = [row for slot in range(1, count) for row in prompt(slot, 3, first=2, seed=seed)]
        _, logits = run(decoder, [replace(prompt(0, 51, seed=9)[-1], slot=0), *others])
        seen.append(logits[0])
    assert torch.equal(seen[0], seen[1])


def test_a_copied_prefix_goes_on_as_its_source_does(decoder: CudaDecoder) -> None:
    run(decoder, prompt(3, 30))
    decoder.copy(3, 4, 30)
    following = prompt(3, 31, first=30)
    _, of_source = run(decoder, following)
    _, of_copy = run(decoder, [replace(row, slot=4) for row in following])
    assert torch.equal(of_source, of_copy)


def test_logits_that_are_not_numbers_draw_no_codes(decoder: CudaDecoder) -> None:
    broken = Row(0, 0, token=BROKEN_TOKEN, ramp=9)
    codes, _ = run(decoder, [broken, prompt(1, 1)[0]])
    assert (codes[0] == INVALID_CODE).all()
    assert (codes[1] >= 0).all()
    codes, _ = run(decoder, [prompt(0, 1)[0]])
    assert (codes >= 0).all()


def test_only_two_steps_may_be_under_way(decoder: CudaDecoder) -> None:
    batch = RowBatch.of(prompt(0, 1), 8)
    decoder.launch(batch)
    decoder.launch(batch)
    with pytest.raises(StepError, match="not collected"):
        decoder.launch(batch)
    first, second = decoder.collect(), decoder.collect()
    assert first is not None and second is not None
    assert (first == second).all()
    assert decoder.collect() is None


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row(SLOTS, 0, token=9), "slot"),
        (Row(0, POSITIONS, token=9), "position"),
        (Row(0, 0, token=500), "token"),
        (Row(0, 0, codes=(0, 0, 0, 0, 0, 0, 0, 1026)), "codes"),
    ],
)
def test_a_row_beyond_its_limits_is_refused(decoder: CudaDecoder, row: Row, fault: str) -> None:
    with pytest.raises(StepError, match=f"row 1.*{fault}"):
        decoder.launch(RowBatch.of([*prompt(1, 1), row], 8))
    assert decoder.collect() is None
