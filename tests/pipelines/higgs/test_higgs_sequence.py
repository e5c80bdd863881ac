"""The rows of a reply: what is fed, what is drawn, and what the cache then holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipelines.higgs.config import AudioConfig, HiggsConfig
from pipelines.higgs.member import V3
from pipelines.higgs.model.decoder import TorchDecoder
from pipelines.higgs.model.delay import delay
from pipelines.higgs.reply.chunk import Frames, TextChunk
from pipelines.higgs.reply.sequence import HISTORY_CHUNKS, Sequence, SequenceState, SequenceTooLong
from pipelines.higgs.rows import NO_DRAW, NO_TOKEN, Row, RowBatch, Sampling
from pipelines.higgs.synthetic.models import random_parameters, tiny_config
from pipelines.higgs.text.prompt import Item, history_items

AUDIO = AudioConfig(codebooks=8, codebook_size=34)
BEGIN, END = AUDIO.begin_code, AUDIO.end_code
GREEDY = Sampling(temperature=0.0)
HELLO = TextChunk((10, 11, 12), row_limit=100)
WORLD = TextChunk((10, 21, 12), row_limit=100)

# What a model draws for row n of the chunk that is spoken.
Draw = Callable[[int], tuple[int, ...]]


def make(preamble: tuple[Item, ...] = (1,), positions: int = 400, slot: int = 0) -> Sequence:
    return Sequence(slot, AUDIO, V3, preamble, positions=positions, sampling=GREEDY, seed=5)


def ending_at(end_row: int, code: int = 3) -> Draw:
    """Speech of one code whose end is drawn in a row; behind it the model rambles."""

    def draw(row: int) -> tuple[int, ...]:
        first = END if row == end_row else code
        return (first, *(code if row >= k else BEGIN for k in range(1, AUDIO.codebooks)))

    return draw


def drawn_rows(sequence: Sequence, draw: Draw, lag: int = 1) -> list[Row]:
    """Run a chunk to its end, codes arriving `lag` steps late; all rows that were fed."""
    fed: list[Row] = []
    late: list[tuple[int, int]] = []
    while sequence.state not in (SequenceState.STARVED, SequenceState.ENDED):
        taken = sequence.take(16)
        fed += taken
        late += [(row.ramp, sequence.generation) for row in taken if row.ramp != NO_DRAW]
        while late and (len(late) > lag or not taken):
            ramp, generation = late.pop(0)
            sequence.accept(draw(ramp), generation)
    return fed


def all_frames(taken: list[Frames]) -> np.ndarray:
    codes = [code for frames in taken for code in frames.codes]
    return np.array(codes, np.int32).reshape(len(codes), AUDIO.codebooks)


def test_a_prompt_is_fed_in_order_and_its_last_row_draws() -> None:
    reference = tuple(range(8))
    sequence = make(preamble=(1, reference))
    sequence.append(HELLO)

    rows = sequence.take(16)

    assert [row.position for row in rows] == [0, 1, 2, 3, 4]
    assert [row.token for row in rows] == [1, NO_TOKEN, 10, 11, 12]
    assert rows[1].codes == reference
    assert [row.ramp for row in rows] == [NO_DRAW] * 4 + [0]


def test_the_preamble_is_fed_before_there_is_text() -> None:
    sequence = make(preamble=(1, 2, 3))

    assert sequence.state is SequenceState.FEEDING
    assert [row.ramp for row in sequence.take(16)] == [NO_DRAW] * 3
    assert sequence.state is SequenceState.STARVED


@pytest.mark.parametrize("lag", [0, 1, 2])
@pytest.mark.parametrize("end_row", [8, 9, 30])
def test_speech_ends_where_codebook_0_says_so(end_row: int, lag: int) -> None:
    sequence = make()
    sequence.append(HELLO)

    fed = drawn_rows(sequence, ending_at(end_row), lag)

    draws = [row for row in fed if row.ramp != NO_DRAW]
    assert len(draws) == end_row + 7  # the later codebooks get their codes, and no row more
    frames = sequence.take_frames()
    assert len(all_frames(frames)) == end_row
    assert [piece.is_last for piece in frames].count(True) == 1 and frames[-1].is_last


def test_an_end_in_the_ramp_is_a_code_like_any_other() -> None:
    sequence = make()
    sequence.append(HELLO)
    draw = ending_at(20)

    drawn_rows(sequence, lambda row: (END, *draw(row)[1:]) if row == 7 else draw(row))

    frames = all_frames(sequence.take_frames())
    assert len(frames) == 20
    assert frames[7, 0] == 0  # the codec knows no END


def test_the_last_seven_frames_are_lost_at_a_stop_for_length() -> None:
    sequence = make()
    sequence.append(TextChunk((10, 11, 12), row_limit=50))

    drawn_rows(sequence, ending_at(1000))

    assert len(all_frames(sequence.take_frames())) == 50 - 7


def test_frames_leave_as_soon_as_they_are_whole() -> None:
    sequence = make()
    sequence.append(HELLO)
    sequence.take(16)
    for row in range(10):
        sequence.accept(ending_at(1000)(row), sequence.generation)
        sequence.take(1)

    assert len(all_frames(sequence.take_frames())) == 3
    assert sequence.take_frames() == []


def test_a_starved_sequence_goes_on_behind_its_speech_with_exact_history() -> None:
    sequence = make()
    sequence.append(HELLO)
    drawn_rows(sequence, ending_at(12))
    spoken = all_frames(sequence.take_frames())
    assert sequence.state is SequenceState.STARVED

    sequence.append(WORLD)
    rows = sequence.take(64)

    # From the row of the end on, the codebooks behind are filled as they were in training.
    canonical = delay(spoken, BEGIN, END)
    assert rows[-1].token == 12 and rows[-1].ramp == 0
    start = 4 + 12  # preamble, text, and the rows of whole frames
    assert rows[-1].position == 4 + len(canonical) + 2
    refed = [row for row in rows if row.codes is not None]
    for row in refed:
        assert row.codes == tuple(canonical[row.position - 4])
    assert not refed or refed[0].position >= start


def test_text_that_waits_is_fed_right_behind_the_end() -> None:
    sequence = make()
    sequence.append(HELLO)
    sequence.append(WORLD)

    fed = drawn_rows(sequence, ending_at(12))
    frames = sequence.take_frames()

    assert [piece.chunk for piece in frames if piece.is_last] == [0, 1]
    # Positions only ever go on, but for the tail that is fed again.
    again = [row.position for row in fed]
    assert sorted(set(again)) == list(range(max(again) + 1))


def test_at_the_budget_the_sequence_is_rebuilt_from_the_last_chunks() -> None:
    sequence = make(positions=200)
    for _ in range(12):
        sequence.append(TextChunk((10, 11, 12), row_limit=60))

    fed = drawn_rows(sequence, ending_at(20))

    assert max(row.position for row in fed) < 200
    assert 1 <= sequence.rebuilds <= 4
    assert sum(piece.is_last for piece in sequence.take_frames()) == 12


def test_a_rebuilt_sequence_holds_no_more_history_than_it_may() -> None:
    sequence = make(positions=2000)
    for _ in range(HISTORY_CHUNKS + 3):
        sequence.append(TextChunk((10, 11, 12), row_limit=30))
        drawn_rows(sequence, ending_at(9))
    sequence.append(TextChunk((10, 11, 12), row_limit=3900))

    rows = sequence.take(1000)

    assert sequence.rebuilds == 1
    assert sum(row.token == 10 for row in rows) == HISTORY_CHUNKS + 1
    assert rows[0].position == 1


@pytest.mark.parametrize("before_the_edge", range(1, 12))
def test_speech_that_ends_just_before_the_edge_stays_within_the_slot(before_the_edge: int) -> None:
    sequence = make(positions=140)
    sequence.append(TextChunk((10, 11, 12), row_limit=1000, closing=(7, 8)))
    limit = 140 - 4 - 6 - 2

    fed = drawn_rows(sequence, ending_at(limit - before_the_edge))

    assert max(row.position for row in fed) < 140


@pytest.mark.parametrize("tokens", [100, 200, 300, 320, 325])
def test_history_makes_room_for_a_long_text(tokens: int) -> None:
    sequence = make()
    for _ in range(4):
        sequence.append(HELLO)
        drawn_rows(sequence, ending_at(25))
    sequence.append(TextChunk(tuple(range(tokens)), row_limit=2000))

    fed = drawn_rows(sequence, ending_at(1000))

    assert max(row.position for row in fed) < 400
    draws = [row for row in fed if row.ramp != NO_DRAW]
    assert len(draws) >= 64


def test_generous_limits_do_not_make_the_cache_anew_at_every_chunk() -> None:
    sequence = make(positions=2048)
    for _ in range(12):
        sequence.append(TextChunk((10,) * 20, row_limit=1300))
        drawn_rows(sequence, ending_at(250))

    assert 1 <= sequence.rebuilds <= 4


def test_the_last_chunk_stays_where_a_voice_has_nothing_else_to_hold_on_to() -> None:
    sequence = make(positions=600)
    sequence.append(TextChunk((10, 11, 12), row_limit=500))
    drawn_rows(sequence, ending_at(230))
    sequence.append(TextChunk((10, 21, 12), row_limit=800))

    rows = sequence.take(1000)

    assert sequence.rebuilds == 1
    assert [row.token for row in rows if row.token in (11, 21)] == [11, 21]


def test_a_row_on_its_way_behind_an_early_end_is_not_the_next_chunks() -> None:
    """Where any codebook may end speech, its end can be known before the last row is drawn."""
    rule = replace(V3, watched=8)
    sequence = Sequence(0, AUDIO, rule, (1,), positions=400, sampling=GREEDY, seed=5)
    sequence.append(HELLO)
    sequence.append(WORLD)
    sequence.take(16)
    for row in range(20):
        generation = sequence.generation
        sequence.take(1)
        sequence.accept(ending_at(1000)(row), generation)
    on_its_way = sequence.generation
    sequence.take(1)
    sequence.accept((3,) * 7 + (END,), on_its_way)
    frames = sequence.take_frames()
    sequence.accept((9,) * 8, on_its_way)

    assert frames[-1].is_last
    assert sequence.take_frames() == []
    rows = sequence.take(64)
    assert rows[-1].ramp == 0  # the next chunk's first row is still to be drawn


def test_what_cannot_fit_is_refused() -> None:
    least = r"takes 389, and its speech needs 128: raise the positions to 517 or more, or shorten"
    with pytest.raises(SequenceTooLong, match=least):
        make(preamble=tuple(range(1, 390)))
    make(preamble=tuple(range(1, 390)), positions=517)
    with pytest.raises(SequenceTooLong, match="push shorter pieces"):
        make().append(TextChunk(tuple(range(380)), row_limit=9))


def test_a_retry_draws_the_same_chunk_with_another_seed() -> None:
    sequence = make()
    sequence.append(HELLO)
    first = [row for row in sequence.take(16) if row.ramp != NO_DRAW]
    stale = sequence.generation
    sequence.retry()

    again = sequence.take(16)
    sequence.accept((9,) * 8, stale)

    assert [row.position for row in again] == [first[0].position]
    assert again[0].token == 12 and again[0].ramp == 0
    assert again[0].seed != first[0].seed
    assert sequence.take_frames() == []


def test_a_cut_ends_the_chunk_and_leaves_its_history_exact() -> None:
    sequence = make()
    sequence.append(HELLO)
    sequence.take(16)
    for row in range(40):
        sequence.accept(ending_at(1000)(row), sequence.generation)
        sequence.take(1)
    taken = all_frames(sequence.take_frames())

    sequence.cut(25)
    sequence.append(WORLD)
    rows = sequence.take(64)

    frames = sequence.take_frames()
    assert [piece.is_last for piece in frames] == [True] and not len(frames[0].codes)
    canonical = delay(taken[:25], BEGIN, END)
    assert rows[0].position == 4 + 25  # the first row that ends
    assert [row.codes for row in rows[:7]] == [tuple(row) for row in canonical[25:].tolist()]


# ---- on a model ------------------------------------------------------------------------------


def run(decoder: TorchDecoder, sequence: Sequence) -> list[tuple[int, ...]]:
    """Feed a sequence until it starves; the rows drawn."""
    drawn: list[tuple[int, ...]] = []
    while sequence.state not in (SequenceState.STARVED, SequenceState.ENDED):
        rows = sequence.take(16)
        decoder.launch(RowBatch.of(rows, AUDIO.codebooks))
        codes = decoder.collect()
        assert codes is not None
        for row, code in zip(rows, codes.tolist(), strict=True):
            if row.ramp != NO_DRAW:
                drawn.append(tuple(code))
                sequence.accept(tuple(code), sequence.generation)
    return drawn


@pytest.fixture(scope="module")
def decoder() -> TorchDecoder:
    config = HiggsConfig.of(tiny_config())
    parameters = random_parameters(config, "cpu", torch.float32, 3, typical_rows=25)
    return TorchDecoder(
        config, parameters, slots=2, positions=400, row_limit=64, device="cpu", is_rowwise=True
    )


def test_the_cache_equals_a_fresh_prefill_of_the_same_history(decoder: TorchDecoder) -> None:
    sampling = Sampling(temperature=1.0, top_p=1.0, top_k=0)
    said = Sequence(0, AUDIO, V3, (1, 2), positions=400, sampling=sampling, seed=8)
    history: list[Item] = [1, 2]
    for chunk in (HELLO, WORLD):
        said.append(chunk)
        run(decoder, said)
        frames = all_frames(said.take_frames())
        history += history_items(chunk.items, frames, AUDIO)
    # A third chunk behind the history, once by going on and once from nothing.
    fresh = Sequence(1, AUDIO, V3, tuple(history), positions=400, sampling=GREEDY, seed=0)
    said.append(TextChunk((10, 31, 12), row_limit=40))
    fresh.append(TextChunk((10, 31, 12), row_limit=40))
    feed_only(decoder, said)
    feed_only(decoder, fresh)

    cache = decoder._cache  # pyright: ignore[reportPrivateUsage]
    used = len(history) + 3
    for held in (*cache.keys, *cache.values):
        difference = (held[0, :, :used] - held[1, :, :used]).abs().max()
        assert difference < 1e-5


def feed_only(decoder: TorchDecoder, sequence: Sequence) -> None:
    while sequence.state is SequenceState.FEEDING:
        decoder.launch(RowBatch.of(sequence.take(64), AUDIO.codebooks))
        decoder.collect()
