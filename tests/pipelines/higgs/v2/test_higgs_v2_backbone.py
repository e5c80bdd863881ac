"""The layers against transformers' HiggsAudioV2, on the same weights, in float32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import HiggsAudioV2Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from pipelines.higgs.model.backbone import KeyValueCache
from pipelines.higgs.model.embedding import code_logits, embed_codes
from pipelines.higgs.model.rope import rope_table
from pipelines.higgs.text.prompt import Item
from pipelines.higgs.v2.backbone import DualBackbone
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.rope import RopeScaling, inverse_frequencies
from pipelines.higgs.v2.synthetic import random_parameters
from tests.pipelines.higgs.v2.judge import (
    AUDIO,
    CONFIG,
    judge_inputs,
    judge_of,
    prompt,
    reference,
)

POSITIONS = 128
TOLERANCE = 1e-4  # logits are of the order of 10 here


@pytest.fixture(scope="module")
def parameters() -> DualParameters:
    return random_parameters(CONFIG, "cpu", torch.float32, seed=1)


@pytest.fixture(scope="module")
def judge(parameters: DualParameters) -> Any:
    return judge_of(parameters)


class Layers:
    """The backbone with its embeddings and head, one slot of two."""

    def __init__(self, parameters: DualParameters) -> None:
        body = CONFIG.backbone
        cache = KeyValueCache.empty(
            body, slots=2, positions=POSITIONS, device="cpu", dtype=torch.float32
        )
        frequencies = inverse_frequencies(body.head_dim, body.rope_theta, CONFIG.rope_scaling)
        rope = rope_table(frequencies, POSITIONS, "cpu", is_rounded=False)
        self._parameters = parameters
        self._backbone = DualBackbone(body, parameters, rope, cache)
        self._position = 0

    @torch.inference_mode()
    def feed(self, items: list[Item]) -> Tensor:
        """Logits [R, codebooks, codebook_size] of the items, behind those of before."""
        parameters, count = self._parameters, len(items)
        rows = [
            parameters.text_embedding[item]
            if isinstance(item, int)
            else embed_codes(torch.tensor([item]), parameters.audio_embedding, AUDIO)[0]
            for item in items
        ]
        positions = np.arange(self._position, self._position + count, dtype=np.int32)
        self._position += count
        hidden = self._backbone.forward(
            torch.stack(rows),
            np.array([not isinstance(item, int) for item in items]),
            np.ones(count, np.int32),
            positions,
        )
        return code_logits(hidden, parameters.audio_head, AUDIO)


def shaped(logits: Tensor) -> Tensor:
    return logits[0].unflatten(-1, (AUDIO.codebooks, AUDIO.codebook_size))


@pytest.mark.parametrize("frames", [None, 1, 20])
def test_a_prompt_with_and_without_a_reference(
    parameters: DualParameters, judge: Any, frames: int | None
) -> None:
    heard = None if frames is None else reference(frames, seed=3)
    items = prompt([21, 22, 23], heard)
    with torch.inference_mode():
        expected = shaped(judge(**judge_inputs(items), use_cache=False).logits)
    found = Layers(parameters).feed(items[:-1])
    assert (found - expected).abs().max() < TOLERANCE


def test_step_by_step_as_in_one_piece(parameters: DualParameters, judge: Any) -> None:
    """A prompt split anywhere, then rows of codes one by one, against the judge's own cache."""
    items = prompt([21, 22, 23], reference(6, seed=4))[:-1]
    spoken: list[Item] = [tuple(row) for row in reference(9, seed=5).tolist()]
    layers = Layers(parameters)
    parts = [layers.feed(items[:4]), layers.feed(items[4:15]), layers.feed(items[15:])]
    parts += [layers.feed([row]) for row in spoken]
    found = torch.cat(parts)

    inputs = judge_inputs([*items, (AUDIO.begin_code,) * AUDIO.codebooks])
    with torch.inference_mode():
        answer = judge(**inputs, use_cache=True)
        expected = [shaped(answer.logits)]
        for row in spoken:
            answer = judge(
                audio_input_ids=torch.tensor([[row]]), cache=answer.cache, use_cache=True
            )
            expected.append(shaped(answer.logits))
    assert (found - torch.cat(expected)).abs().max() < TOLERANCE


def test_only_rows_of_codes_take_the_audio_experts(parameters: DualParameters) -> None:
    """With one expert for both, text gives the same and codes do not."""
    one_expert = replace(
        parameters, layers=tuple(replace(layer, audio=layer.text) for layer in parameters.layers)
    )
    items = prompt([21, 22, 23], None)
    right, wrong = Layers(parameters).feed(items), Layers(one_expert).feed(items)
    assert torch.equal(right[:-1], wrong[:-1])
    assert (right[-1] - wrong[-1]).abs().max() > 1.0


@pytest.mark.parametrize(
    ("low", "high", "trained"), [(1.0, 4.0, 8192), (0.125, 0.5, 1024), (1.0, 4.0, 512)]
)
def test_stretched_positions_are_those_of_transformers(
    parameters: DualParameters, low: float, high: float, trained: int
) -> None:
    """At the published size of a head, where the three regions all have frequencies."""
    config = HiggsAudioV2Config(
        head_dim=128,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 32.0,
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": trained,
        },
    )
    expected, scale = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    found = inverse_frequencies(128, 500_000.0, RopeScaling(32.0, low, high, trained))
    assert scale == 1.0
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0.0)
    plain = inverse_frequencies(128, 500_000.0, None)
    assert (found == plain).any()
    assert (found < plain / 31).any()
    assert ((found < plain * 0.99) & (found > plain / 31)).any()
