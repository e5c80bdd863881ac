"""The backbone against transformers' Qwen3, on the same weights, in float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3Model

from pipelines.higgs.checkpoint.tensors import places
from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.model.backbone import Backbone, KeyValueCache
from pipelines.higgs.model.delay import delay
from pipelines.higgs.model.embedding import embed_codes
from pipelines.higgs.model.parameters import HiggsParameters
from pipelines.higgs.model.rope import inverse_frequencies, rope_table
from pipelines.higgs.synthetic.models import random_parameters, tiny_config

CONFIG = HiggsConfig.of(tiny_config(layers=3))
POSITIONS = 300

# Hidden states are of the order of 30 here; float32 keeps about 1e-6 of that an operation.
TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def parameters() -> HiggsParameters:
    made = random_parameters(CONFIG, "cpu", torch.float32, seed=1)
    generator = torch.Generator().manual_seed(2)
    for place in places(CONFIG, made).values():
        if place.dim() == 1:  # norms of ones would hide one that is applied in the wrong place
            place.mul_(0.5 + torch.rand(place.shape, generator=generator))
    return made


@pytest.fixture(scope="module")
def judge(parameters: HiggsParameters) -> Iterator[Qwen3Model]:
    body = CONFIG.backbone
    config = Qwen3Config(
        hidden_size=body.hidden_size,
        intermediate_size=body.intermediate_size,
        num_hidden_layers=body.layers,
        num_attention_heads=body.query_heads,
        num_key_value_heads=body.kv_heads,
        head_dim=body.head_dim,
        vocab_size=body.vocabulary_size,
        rms_norm_eps=body.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
    )
    config._attn_implementation = "eager"
    model = Qwen3Model(config).eval()
    weights = {
        name.removeprefix("body."): place
        for name, place in places(CONFIG, parameters).items()
        if name.startswith("body.")
    }
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert missing == ["embed_tokens.weight"]
    assert unexpected == []
    with torch.inference_mode():
        yield model


def _backbone(parameters: HiggsParameters, slots: int = 4, *, is_rounded: bool = False) -> Backbone:
    cache = KeyValueCache.empty(
        CONFIG.backbone, slots=slots, positions=POSITIONS, device="cpu", dtype=torch.float32
    )
    rope = rope_table(inverse_frequencies(CONFIG.backbone), POSITIONS, "cpu", is_rounded=is_rounded)
    return Backbone(CONFIG.backbone, parameters, rope, cache)


def _inputs(parameters: HiggsParameters, length: int, seed: int) -> Tensor:
    """[length, H]: text, then rows of codes, as in a prompt with a reference."""
    generator = np.random.default_rng(seed)
    text = torch.from_numpy(generator.integers(0, CONFIG.backbone.vocabulary_size, length // 3))
    frames = length - length // 3 - 7
    codes = delay(generator.integers(0, 32, (frames, 8)).astype(np.int32), 32, 33)
    rows = embed_codes(torch.from_numpy(codes), parameters.audio_embedding, CONFIG.audio)
    return torch.cat((parameters.text_embedding[text], rows))


def _forward(backbone: Backbone, inputs: Tensor, slot: int, first: int, end: int) -> Tensor:
    slots = np.full(end - first, slot, np.int32)
    with torch.inference_mode():
        return backbone.forward(inputs[first:end], slots, np.arange(first, end, dtype=np.int32))


def _judged(judge: Qwen3Model, inputs: Tensor) -> Tensor:
    return judge(inputs_embeds=inputs.unsqueeze(0)).last_hidden_state[0]


def _difference(ours: Tensor, theirs: Tensor) -> float:
    assert theirs.abs().max() > 5.0  # else a small difference would say little
    return (ours - theirs).abs().max().item()


def test_a_prompt_at_once(parameters: HiggsParameters, judge: Qwen3Model) -> None:
    inputs = _inputs(parameters, 120, 0)
    ours = _forward(_backbone(parameters), inputs, 0, 0, 120)
    assert _difference(ours, _judged(judge, inputs)) < TOLERANCE


@pytest.mark.parametrize("cuts", [[1], [60], [119], [1, 2, 3], [40, 41, 80], [7, 64, 100, 118]])
def test_a_prompt_split_anywhere(
    parameters: HiggsParameters, judge: Qwen3Model, cuts: list[int]
) -> None:
    inputs = _inputs(parameters, 120, 1)
    backbone = _backbone(parameters)
    edges = [0, *cuts, 120]
    parts = [
        _forward(backbone, inputs, 2, first, end)
        for first, end in zip(edges, edges[1:], strict=False)
    ]
    assert _difference(torch.cat(parts), _judged(judge, inputs)) < TOLERANCE


def test_row_by_row(parameters: HiggsParameters, judge: Qwen3Model) -> None:
    inputs = _inputs(parameters, 60, 2)
    backbone = _backbone(parameters)
    parts = [_forward(backbone, inputs, 1, number, number + 1) for number in range(60)]
    assert _difference(torch.cat(parts), _judged(judge, inputs)) < TOLERANCE


def test_slots_that_share_steps(parameters: HiggsParameters, judge: Qwen3Model) -> None:
    """Three sequences, each in stretches of random lengths, in steps of random company."""
    generator = np.random.default_rng(3)
    lengths = [50, 90, 130]
    inputs = [_inputs(parameters, length, 10 + n) for n, length in enumerate(lengths)]
    backbone = _backbone(parameters)
    done = [0, 0, 0]
    outputs: list[list[Tensor]] = [[], [], []]
    while done != lengths:
        stretches = []
        for slot in generator.permutation(3):
            count = min(int(generator.integers(0, 20)), lengths[slot] - done[slot])
            stretches += [(int(slot), done[slot] + number) for number in range(count)]
            done[slot] += count
        if not stretches:
            continue
        hidden = torch.stack([inputs[slot][position] for slot, position in stretches])
        slots = np.array([slot for slot, _ in stretches], np.int32)
        positions = np.array([position for _, position in stretches], np.int32)
        with torch.inference_mode():
            result = backbone.forward(hidden, slots, positions)
        for (slot, _), row in zip(stretches, result, strict=True):
            outputs[slot].append(row)
    for slot in range(3):
        ours = torch.stack(outputs[slot])
        assert _difference(ours, _judged(judge, inputs[slot])) < TOLERANCE


def test_a_slot_that_is_used_again_sees_nothing_of_before(
    parameters: HiggsParameters, judge: Qwen3Model
) -> None:
    backbone = _backbone(parameters)
    _forward(backbone, _inputs(parameters, 200, 4), 0, 0, 200)
    inputs = _inputs(parameters, 40, 5)
    ours = _forward(backbone, inputs, 0, 0, 40)
    assert _difference(ours, _judged(judge, inputs)) < TOLERANCE


def test_earlier_chunks_stand_in_front(parameters: HiggsParameters, judge: Qwen3Model) -> None:
    """Chunks one after the other on one sequence, each prompt at once and its rows one by one."""
    chunks = [_inputs(parameters, length, 20 + n) for n, length in enumerate((60, 45, 70))]
    inputs = torch.cat(chunks)
    backbone = _backbone(parameters)
    parts, start = [], 0
    for chunk in chunks:
        text = len(chunk) // 3
        parts.append(_forward(backbone, inputs, 3, start, start + text))
        rest = range(start + text, start + len(chunk))
        parts += [_forward(backbone, inputs, 3, number, number + 1) for number in rest]
        start += len(chunk)
    assert _difference(torch.cat(parts), _judged(judge, inputs)) < TOLERANCE


def test_a_copied_slot_goes_on_as_the_first(parameters: HiggsParameters) -> None:
    inputs = _inputs(parameters, 50, 6)
    cache = KeyValueCache.empty(
        CONFIG.backbone, slots=2, positions=POSITIONS, device="cpu", dtype=torch.float32
    )
    rope = rope_table(inverse_frequencies(CONFIG.backbone), POSITIONS, "cpu", is_rounded=False)
    backbone = Backbone(CONFIG.backbone, parameters, rope, cache)
    _forward(backbone, inputs, 0, 0, 40)
    cache.copy(0, 1, 40)
    assert not cache.keys[:, 1, :, 40:].any()
    first = _forward(backbone, inputs, 0, 40, 50)
    assert torch.equal(first, _forward(backbone, inputs, 1, 40, 50))


def test_the_weights_of_the_judge_are_all_in_use(parameters: HiggsParameters) -> None:
    """Every tensor that is changed changes the result: none is left out by both sides alike."""
    inputs = _inputs(parameters, 30, 7)
    before = _forward(_backbone(parameters), inputs, 0, 0, 30)
    for name, place in places(CONFIG, parameters).items():
        if not name.startswith("body."):
            continue
        kept = place.clone()
        place += 0.1 * torch.randn(place.shape, generator=torch.Generator().manual_seed(0))
        after = _forward(_backbone(parameters), inputs, 0, 0, 30)
        place.copy_(kept)
        assert _relative(after, before) > 1e-4, name


def _relative(left: Tensor, right: Tensor) -> float:
    return ((left - right).norm() / right.norm()).item()
