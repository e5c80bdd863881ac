"""Figures: well-formed, complete, and true to the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import plots
from benchmarks.drawing import ticks

SVG = "{http://www.w3.org/2000/svg}"
STAGES = {
    "drafts on": {"pause": 210.0, "judge": 95.0, "words": 12.0},
    "drafts <off> & slow": {"pause": 210.0, "judge": 0.0, "words": 380.0},
}


def drawn(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    assert root.get("role") == "img"
    return root


def words(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.get(name, "nan")) for name in names]


def bars(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    found = [r for r in root.iter(f"{SVG}rect") if r.get("class") != "key"]
    return [tuple(numbers(r, "x", "y", "width", "height")) for r in found]  # type: ignore[misc]


def test_bars_name_everything_and_lie_side_by_side() -> None:
    root = drawn(plots.stacked_bars("Where time went", "ms", STAGES))
    said = words(root)
    for name in ("Where time went", "ms", *STAGES, "pause", "judge", "words"):
        assert name in said
    assert "317" in said and "590" in said  # the sums
    for (x1, y1, w1, h1), (x2, y2, w2, h2) in itertools.combinations(bars(root), 2):
        apart = x1 + w1 <= x2 + 0.11 or x2 + w2 <= x1 + 0.11 or y1 + h1 <= y2 or y2 + h2 <= y1
        assert apart  # a tenth of a pixel is rounding


def test_bars_are_as_long_as_their_values() -> None:
    widths = [width for _, _, width, _ in bars(drawn(plots.stacked_bars("t", "ms", STAGES)))]
    values = [value for parts in STAGES.values() for value in parts.values()]
    scale = widths[0] / values[0]
    assert widths == pytest.approx([value * scale for value in values], abs=0.2)


def test_a_number_stands_in_a_bar_only_where_it_has_room() -> None:
    said = words(drawn(plots.stacked_bars("t", "ms", STAGES)))
    assert "95" in said and "12" not in said


def test_a_distribution_climbs_to_the_whole() -> None:
    series = {"on": [300.0, 500.0, 400.0], "off": [900.0]}
    root = drawn(plots.distribution("Latency", "ms", series))
    assert {"Latency", "ms", "on (median 400)", "off (median 900)"} <= set(words(root))
    first, second = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, p.split(","))) for p in first.get("points", "").split()]
    assert all(x1 <= x2 and y1 >= y2 for (x1, y1), (x2, y2) in itertools.pairwise(points))
    heights = [points[0][1] - y for _, y in points]
    # Each value twice, before and after its own step; the top is the same for all series.
    assert heights == pytest.approx([heights[-1] * n / 3 for n in (0, 0, 1, 1, 2, 2, 3)], abs=0.2)
    last = second.get("points", "").split()[-1]
    assert float(last.split(",")[1]) == pytest.approx(points[-1][1])


def test_lines_join_points_in_order_and_keep_to_the_scale() -> None:
    series = {"p99": [(100.0, 40.0), (0.0, 0.0), (50.0, 10.0)]}
    svg = plots.lines("Lag", "sessions", "ms", series, limit=(20.0, "the aim"))
    root = drawn(svg)
    assert {"Lag", "sessions", "ms", "p99", "the aim"} <= set(words(root))
    dots = [numbers(dot, "cx", "cy") for dot in root.iter(f"{SVG}circle")]
    assert [x for x, _ in dots] == sorted(x for x, _ in dots)
    assert dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0], abs=0.2)
    assert (dots[0][1] - dots[2][1]) == pytest.approx(4 * (dots[0][1] - dots[1][1]), abs=0.5)


def test_everything_lies_inside_the_picture() -> None:
    many = {f"a series with quite a long name {n}": [(0.0, n), (1e6, n + 1.0)] for n in range(7)}
    root = drawn(plots.lines("t", "x", "y", many))
    width, height = numbers(root, "width", "height")
    for text in root.iter(f"{SVG}text"):
        x, y = numbers(text, "x", "y")
        assert 0 <= x <= width and 0 <= y <= height


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1200, [0, 200, 400, 600, 800, 1000, 1200]),
        (0, 0.07, [0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]),
        (95, 131, [95, 100, 105, 110, 115, 120, 125, 130, 135]),
        (-3, 3, [-3, -2, -1, 0, 1, 2, 3]),
        (5, 5, [5, 6]),
        (0, 0, [0, 0.2]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    found, step = ticks(low, high)
    assert found == pytest.approx(expected)
    assert found[0] <= low and found[-1] >= high
    assert len(found) >= 2 and step > 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.stacked_bars("t", "ms", {}),
        lambda: plots.stacked_bars("t", "ms", {"row": {}}),
        lambda: plots.stacked_bars("t", "ms", {"row": {"part": -1.0}}),
        lambda: plots.distribution("t", "ms", {}),
        lambda: plots.distribution("t", "ms", {"on": []}),
        lambda: plots.distribution("t", "ms", {"on": [math.nan]}),
        lambda: plots.lines("t", "x", "y", {}),
        lambda: plots.lines("t", "x", "y", {"p99": []}),
        lambda: plots.lines("t", "x", "y", {"p99": [(0.0, math.inf)]}),
        lambda: plots.lines("t", "x", "y", {str(n): [(0.0, 0.0)] for n in range(8)}),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], str]) -> None:
    with pytest.raises(ValueError, match="needs data|negative|no number|tells 7 series"):
        draw()


def test_a_figure_is_written_where_it_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = plots.stacked_bars("t", "ms", STAGES)
    assert plots.write("stages", svg, tmp_path / "new").read_text() == svg
    assert "stages.svg" in capsys.readouterr().out
