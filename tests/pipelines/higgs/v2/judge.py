"""transformers' Higgs Audio v2 on the weights under test, and the rows that it should be fed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import HiggsAudioV2Config, HiggsAudioV2ForConditionalGeneration

from pipelines.higgs.model.delay import delay
from pipelines.higgs.rows import Codes, Row, Sampling
from pipelines.higgs.text.prompt import Item
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.prompt import AUDIO_BEGIN as _BEGIN
from pipelines.higgs.v2.prompt import AUDIO_END as _END
from pipelines.higgs.v2.prompt import NEEDED, V2Script
from pipelines.higgs.v2.prompt import TURN_END as _TURN_END
from pipelines.higgs.v2.synthetic import converted_config, published_config, tokenizer
from pipelines.higgs.v2.tensors import CONVERTED, places

PUBLISHED = published_config()
CONFIG = V2Config.of(PUBLISHED)
AUDIO = CONFIG.audio
GREEDY = Sampling(temperature=0.0)

BEGIN_ROW = (AUDIO.begin_code,) * AUDIO.codebooks
END_ROW = (AUDIO.end_code,) * AUDIO.codebooks

# Behind the bytes, for what the published vocabulary has from 128 000 on.
PLAIN = tokenizer()
TOKENIZER = HiggsTokenizer(PLAIN, NEEDED)
SCRIPT = V2Script(TOKENIZER, AUDIO)
AUDIO_BEGIN, AUDIO_END, TURN_END = map(TOKENIZER.special, (_BEGIN, _END, _TURN_END))
AUDIO_TOKEN, DELAY = 298, 299  # stand for rows in the judge's text


def judge_of(parameters: DualParameters) -> Any:
    content = converted_config(PUBLISHED)
    del content["architectures"]
    content["attn_implementation"] = "eager"
    config = HiggsAudioV2Config(
        **content,
        audio_token_id=AUDIO_TOKEN,
        audio_bos_token_id=AUDIO_BEGIN,
        audio_delay_token_id=DELAY,
        eos_token_id=TURN_END,
        pad_token_id=0,
    )
    model = HiggsAudioV2ForConditionalGeneration(config).eval()
    weights = places(CONFIG, parameters, CONVERTED)
    missing, unexpected = model.load_state_dict(weights, strict=True)
    assert not missing
    assert not unexpected
    return model


def reference(frames: int, seed: int) -> Codes:
    """int32 [frames, codebooks] of the codec's codes."""
    return (
        np.random.default_rng(seed)
        .integers(0, AUDIO.begin_code, (frames, AUDIO.codebooks))
        .astype(np.int32)
    )


def prompt(words: list[int], heard: Codes | None) -> list[Item]:
    """A prompt as v2's script makes it: a turn that was heard, if any, and one to be spoken."""
    items: list[Item] = [1, 2, 3]
    if heard is not None:
        rows = delay(heard, AUDIO.begin_code, AUDIO.end_code)
        items += [11, 12, AUDIO_BEGIN, BEGIN_ROW, *map(tuple, rows.tolist()), END_ROW]
        items += [AUDIO_END, TURN_END]
    return [*items, *words, 7, 8, AUDIO_BEGIN, BEGIN_ROW]


def judge_inputs(items: list[Item]) -> dict[str, torch.Tensor]:
    """The judge's arguments for the same prompt; the last row of begin codes it draws itself."""
    assert items[-1] == BEGIN_ROW
    items = items[:-1]
    rows = [item for item in items if not isinstance(item, int)]
    ids = [item if isinstance(item, int) else AUDIO_TOKEN for item in items]
    # The processor marks the last rows of a stretch, in which the codebooks end one by one.
    for number in range(len(items)):
        if items[number] == END_ROW:
            ids[number - AUDIO.delay_rows + 1 : number + 1] = [DELAY] * AUDIO.delay_rows
    inputs = {
        "input_ids": torch.tensor([ids]),
        "attention_mask": torch.ones((1, len(ids)), dtype=torch.long),
    }
    if rows:
        inputs["audio_input_ids"] = torch.tensor([rows])
        inputs["audio_input_ids_mask"] = torch.ones((1, len(rows)), dtype=torch.bool)
    return inputs


def prompt_rows(items: list[Item], slot: int, **drawing: Any) -> list[Row]:
    """The last row draws."""
    rows = [
        Row(slot, position, token=item)
        if isinstance(item, int)
        else Row(slot, position, codes=item)
        for position, item in enumerate(items)
    ]
    last = rows[-1]
    rows[-1] = Row(slot, last.position, last.token, last.codes, ramp=0, **drawing)
    return rows
