"""The delay pattern and the end of speech in it, against a state machine that counts row by row."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.higgs.config import AudioConfig
from pipelines.higgs.member import V3
from pipelines.higgs.model.delay import delay, frames_of, undelay
from pipelines.higgs.rows import Codes

AUDIO = AudioConfig(codebooks=8, codebook_size=34)
BEGIN, END = AUDIO.begin_code, AUDIO.end_code
STOP = V3.stop_rule(AUDIO)


def _frames(count: int, codebooks: int = 8, seed: int = 0) -> Codes:
    return np.random.default_rng(seed).integers(0, BEGIN, (count, codebooks)).astype(np.int32)


def _speak(drawn: Codes, row_limit: int) -> tuple[int, int | None]:
    """(rows kept, the row of the EOC): the sampler's state machine as a loop over its counters."""
    codebooks = drawn.shape[1]
    ramp_in, countdown, ended_at = 0, None, None
    for number in range(row_limit):
        if ramp_in < codebooks:
            ramp_in += 1
        elif countdown is not None:
            countdown -= 1
        elif drawn[number, 0] == END:
            ended_at, countdown = number, codebooks - 2
        if countdown is not None and countdown <= 0:
            return number + 1, ended_at
    return row_limit, None


@pytest.mark.parametrize("frames", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("codebooks", [4, 8])
def test_each_code_lies_its_codebook_rows_later(frames: int, codebooks: int) -> None:
    codes = _frames(frames, codebooks)
    rows = delay(codes, BEGIN, END)
    assert rows.shape == (frames + codebooks - 1, codebooks)
    for number in range(len(rows)):
        for codebook in range(codebooks):
            frame = number - codebook
            expected = BEGIN if frame < 0 else END if frame >= frames else codes[frame, codebook]
            assert rows[number, codebook] == expected


@pytest.mark.parametrize("frames", [1, 3, 8, 50])
def test_undelay_gives_the_frames_back(frames: int) -> None:
    codes = _frames(frames)
    assert np.array_equal(undelay(delay(codes, BEGIN, END)), codes)


def test_no_frames_have_no_rows() -> None:
    assert delay(_frames(0), BEGIN, END).shape == (0, 8)


@pytest.mark.parametrize("rows", range(8))
def test_fewer_rows_than_codebooks_hold_no_frame(rows: int) -> None:
    assert undelay(_frames(rows)).shape == (0, 8)


def test_one_frame_needs_as_many_rows_as_codebooks() -> None:
    assert undelay(_frames(8)).shape == (1, 8)


def test_a_length_stop_loses_the_seven_frames_under_way() -> None:
    assert frames_of(2048, 8) == 2041
    assert frames_of(7, 8) == 0


@pytest.mark.parametrize("row", range(8))
def test_an_end_has_no_effect_in_the_ramp(row: int) -> None:
    assert STOP.frame_count(row, (END, *[0] * 7)) is None


def test_an_end_has_effect_right_after_the_ramp_and_leaves_eight_frames() -> None:
    assert STOP.frame_count(8, (END, *[0] * 7)) == 8
    assert STOP.frame_count(8, (BEGIN, *[0] * 7)) is None


def test_an_end_in_another_codebook_ends_nothing() -> None:
    assert STOP.frame_count(20, (0, *[END] * 7)) is None


@pytest.mark.parametrize("row", [8, 9, 100, 2000])
def test_an_end_at_row_t_leaves_t_frames_and_ends_with_row_t_plus_six(row: int) -> None:
    assert STOP.frame_count(row, (END, *[0] * 7)) == row
    assert STOP.row_count(row) - 1 == row + 6


def test_the_rules_agree_with_the_counters() -> None:
    generator = np.random.default_rng(7)
    for _ in range(500):
        codebooks = int(generator.integers(4, 10))
        stop = V3.stop_rule(AudioConfig(codebooks=codebooks, codebook_size=34))
        drawn = generator.integers(0, BEGIN, (60, codebooks)).astype(np.int32)
        drawn[generator.random(60) < 0.06, 0] = END
        limit = int(generator.integers(1, 60))
        counts = (stop.frame_count(row, drawn[row].tolist()) for row in range(limit))
        frames = next((count for count in counts if count is not None), None)
        rows, ended_at = _speak(drawn, limit)
        if frames is not None and stop.row_count(frames) <= limit:
            assert (rows, ended_at) == (stop.row_count(frames), frames)
            assert frames_of(rows, codebooks) == frames
        else:
            assert (rows, ended_at) == (limit, None)
