"""How a request wants the Higgs voice to draw its sound."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.types import Drawing, StageError
from tests.pipelines.stages.higgs_driving import (
    FRAME_SAMPLES,
    TEXTS,
    Driver,
    heard,
    refusal,
    run,
    say,
    sound,
    speaker,
)

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def test_a_seed_sounds_alike_however_it_is_read_and_whoever_is_beside_it(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        seed = Drawing(seed=11)
        alone = await heard(stage, drawing=seed)
        assert len(alone) > 10 * FRAME_SAMPLES
        slow = await heard(stage, drawing=seed, slowly=True)
        np.testing.assert_array_equal(alone, slow)
        beside = await asyncio.gather(
            *(heard(stage, drawing=Drawing(seed=n, temperature=0.8 + 0.1 * n)) for n in range(2)),
            *(heard(stage, drawing=seed, slowly=n == 0) for n in range(2)),
        )
        for again in beside[2:]:
            np.testing.assert_array_equal(alone, again)

    voice.run(script)


def test_another_seed_sounds_otherwise_and_so_does_none(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        sounds = [
            await heard(stage, "Yes.", drawing=Drawing(seed=seed))
            for seed in (0, 1, 2**31, 2**31 + 1, 2**63 - 1, None, None)
        ]
        assert len({made.tobytes() for made in sounds}) == len(sounds)

    voice.run(script)


def test_without_temperature_nothing_is_left_to_chance(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        drawn = await heard(stage, drawing=Drawing(seed=1, most_frames=30))
        for greedy in (Drawing(temperature=0.0), Drawing(top_k=1)):
            # What never ends by itself is ended.
            plans = [replace(greedy, seed=seed, most_frames=30) for seed in (1, 2)]
            first, second = [await heard(stage, drawing=plan) for plan in plans]
            np.testing.assert_array_equal(first, second)
            assert not np.array_equal(first, drawn)

    voice.run(script)


def test_what_is_asked_reaches_the_rows_and_what_is_not_stays_as_configured(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.higgs.model.decoder import TorchDecoder
    from pipelines.higgs.rows import NO_DRAW, RowBatch

    seen: set[tuple[float, float, int]] = set()
    launch = TorchDecoder.launch

    def watch(decoder: TorchDecoder, rows: RowBatch) -> None:
        for number in np.flatnonzero(rows.ramps != NO_DRAW):
            values = rows.temperatures[number], rows.top_p[number], rows.top_k[number]
            seen.add((round(float(values[0]), 5), round(float(values[1]), 5), int(values[2])))
        launch(decoder, rows)

    async def script(stage: Any) -> None:
        monkeypatch.setattr(TorchDecoder, "launch", watch)
        for drawing, wanted in (
            (Drawing(), (0.7, 0.8, 20)),
            (Drawing(temperature=1.5, top_p=0.25, top_k=7), (1.5, 0.25, 7)),
            (Drawing(top_p=1.0), (0.7, 1.0, 20)),
            (Drawing(top_k=0), (0.7, 0.8, 0)),
            (Drawing(top_k=-1), (0.7, 0.8, 0)),
            (Drawing(top_k=2**40), (0.7, 0.8, 0)),
            (Drawing(temperature=0), (0.0, 0.8, 20)),
        ):
            seen.clear()
            await say(stage, "Yes.", drawing=drawing)
            assert seen == {wanted}, drawing

    run(speaker(checkpoint, temperature=0.7, top_k=20), script)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_p", math.nan),
        ("top_k", -2),
        ("seed", -1),
        ("seed", 2**63),
        ("most_frames", 0),
        ("first_frames", -1),
    ],
)
def test_what_no_model_takes_is_refused_by_its_field(field: str, value: float) -> None:
    from pipelines.stages.higgs_drawing import check_drawing

    with pytest.raises(StageError) as caught:
        wanted: dict[str, Any] = {field: value}
        check_drawing(Drawing(**wanted))
    assert caught.value.code == "drawing_refused"
    assert caught.value.message.startswith(f"{field}: {value} is out of range; send ")


def test_a_refused_drawing_leaves_those_beside_it_alone(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        alone = await heard(stage, drawing=Drawing(seed=4))
        healthy, refused = await asyncio.gather(
            heard(stage, drawing=Drawing(seed=4)),
            refusal(stage, drawing=Drawing(temperature=3.0)),
        )
        assert refused.code == "drawing_refused"
        np.testing.assert_array_equal(alone, healthy)

    voice.run(script)


def test_a_reply_ends_after_so_many_frames(voice: Driver) -> None:
    async def script(stage: Any) -> None:
        whole = await heard(stage, *TEXTS, drawing=Drawing(seed=6))
        assert len(whole) > 41 * FRAME_SAMPLES
        for frames in (1, 8, 20, 41):
            cut = await say(stage, *TEXTS, drawing=Drawing(seed=6, most_frames=frames))
            assert len(sound(cut)) == frames * FRAME_SAMPLES
            # The last frames sound as if nothing came behind them: only the codec's lag differs.
            alike = max(0, frames - 12) * FRAME_SAMPLES
            np.testing.assert_array_equal(sound(cut)[:alike], whole[:alike])
            assert cut[-1].text_end < sum(map(len, TEXTS))
        later = await heard(stage, *TEXTS, drawing=Drawing(seed=6, first_frames=30))
        np.testing.assert_array_equal(whole, later)

    voice.run(script)
