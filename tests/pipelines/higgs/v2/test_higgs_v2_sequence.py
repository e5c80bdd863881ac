"""Replies in chunks through the shared sequence, against transformers on the whole conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from pipelines.higgs.member import V2, Repetition
from pipelines.higgs.model.delay import delay, undelay
from pipelines.higgs.reply.sequence import Sequence, SequenceState, TextChunk
from pipelines.higgs.rows import NO_DRAW, Codes, Row, RowBatch, Sampling
from pipelines.higgs.text.prompt import Item
from pipelines.higgs.v2.decoder import V2TorchDecoder
from pipelines.higgs.v2.parameters import DualParameters
from pipelines.higgs.v2.synthetic import random_parameters
from tests.pipelines.higgs.v2.judge import (
    AUDIO,
    BEGIN_ROW,
    CONFIG,
    GREEDY,
    SCRIPT,
    judge_inputs,
    judge_of,
    prompt_rows,
    reference,
)

POSITIONS = 420
ROW_LIMIT = 60
HEARD = delay(reference(8, seed=3), AUDIO.begin_code, AUDIO.end_code)
PREAMBLE = SCRIPT.preamble(HEARD, "so it was").items
TEXTS = ("one", "and two", "three")


def spoken(parameters: DualParameters, texts: tuple[str, ...], step_rows: int) -> list[Codes]:
    """The frames of each text's speech, as an engine that reads codes one step late draws them."""
    decoder = V2TorchDecoder(
        CONFIG,
        parameters,
        slots=1,
        positions=POSITIONS,
        row_limit=step_rows,
        device="cpu",
        is_rowwise=True,
        repetition=None,
    )
    sequence = Sequence(0, AUDIO, V2, PREAMBLE, positions=POSITIONS, sampling=GREEDY, seed=0)
    for text in texts:
        sequence.append(TextChunk(SCRIPT.chunk(text), ROW_LIMIT, SCRIPT.closing))
    sequence.finish()
    found: list[list[tuple[int, ...]]] = [[] for _ in texts]
    launched: list[tuple[list[bool], int]] = []
    while sequence.state is not SequenceState.ENDED:
        rows = sequence.take(step_rows)
        if rows:
            decoder.launch(RowBatch.of(rows, AUDIO.codebooks))
            launched.append(([row.ramp != NO_DRAW for row in rows], sequence.generation))
        if launched and (len(launched) > 1 or not rows):
            draws, generation = launched.pop(0)
            codes = decoder.collect()
            assert codes is not None
            for row in codes[draws].tolist():
                sequence.accept(tuple(row), generation)
        for frames in sequence.take_frames():
            found[frames.chunk].extend(frames.codes)
    assert sequence.rebuilds == 0
    return [np.array(codes, np.int32) for codes in found]


def judged(judge: Any, items: list[Item]) -> tuple[Codes, list[Item]]:
    """The frames that the judge speaks, and the items of its speech as history."""
    inputs = judge_inputs(items)
    before = inputs["audio_input_ids"].shape[1]
    with torch.inference_mode():
        answer = judge.generate(**inputs, max_new_tokens=ROW_LIMIT + 1, do_sample=False)
    rows = np.array(answer[0, before + 1 :].tolist(), np.int32)
    ends = np.flatnonzero(rows[:, 0] == AUDIO.end_code)
    rows = rows[: ends[0] + AUDIO.delay_rows] if len(ends) else rows
    frames = np.minimum(undelay(rows), V2.stray_code(AUDIO))
    history = delay(frames, AUDIO.begin_code, AUDIO.end_code)
    return frames, [*map(tuple, history.tolist()), *SCRIPT.closing]


def test_chunks_go_on_as_turns_of_one_conversation() -> None:
    """Each chunk as the judge speaks it with all that was said before it in its prompt."""
    lengths: list[int] = []
    for seed in range(3):
        parameters = random_parameters(CONFIG, "cpu", torch.float32, seed)
        judge = judge_of(parameters)
        conversation: list[Item] = list(PREAMBLE)
        expected: list[Codes] = []
        for text in TEXTS:
            conversation += SCRIPT.chunk(text)
            frames, history = judged(judge, conversation)
            conversation += history
            expected.append(frames)
        for found, frames in zip(spoken(parameters, TEXTS, 37), expected, strict=True):
            assert np.array_equal(found, frames)
        lengths += [len(frames) for frames in expected]
    assert len(set(lengths)) > 3


def test_a_chunk_that_is_drawn_again_begins_anew() -> None:
    """Its row of begin codes is fed again, and with it all that was drawn before is forgotten."""
    sampled = Sampling(temperature=1.0, top_p=1.0, top_k=4)
    parameters = random_parameters(CONFIG, "cpu", torch.float32, 6, ending_codebooks=0)
    decoder = V2TorchDecoder(
        CONFIG,
        parameters,
        slots=2,
        positions=POSITIONS,
        row_limit=POSITIONS,
        device="cpu",
        is_rowwise=True,
        repetition=Repetition(9, 1),
    )
    sequence = Sequence(0, AUDIO, V2, PREAMBLE, positions=POSITIONS, sampling=sampled, seed=6)
    sequence.append(TextChunk(SCRIPT.chunk("one"), ROW_LIMIT, SCRIPT.closing))

    def step(rows: list[Row]) -> tuple[int, ...]:
        decoder.launch(RowBatch.of(rows, AUDIO.codebooks))
        codes = decoder.collect()
        assert codes is not None
        return tuple(codes[-1].tolist())

    for _ in range(30):
        sequence.accept(step(sequence.take(POSITIONS)), sequence.generation)
    sequence.retry()
    taken: list[Row] = []
    drawn: list[tuple[int, ...]] = []
    for _ in range(20):
        taken += sequence.take(POSITIONS)
        drawn.append(step(taken[-1:]))
        sequence.accept(drawn[-1], sequence.generation)

    fresh = prompt_rows(list(PREAMBLE) + list(SCRIPT.chunk("one")), 1)
    fresh[-1] = replace(taken[0], slot=1)
    assert fresh[-1].codes == BEGIN_ROW
    assert [step(fresh), *(step([replace(row, slot=1)]) for row in taken[1:])] == drawn
