"""Small figures as SVG text: stacked bars, distributions, lines.

One file shows on light and on dark pages alike: lines and words take a grey that stands out from
both, and the series take colours that colour-blind people tell apart (Okabe and Ito, 2008), each
with its name beside it. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.drawing import Axis, Canvas, Frame, label_width, ticks

FOLDER = Path("results")
# Without the palette's yellow, which white swallows; its blue a little lighter, for dark pages.
COLOURS = ("#1F83C6", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A8A8A")

Point = tuple[float, float]

ROW_PX = 34  # of a bar and the space below it
BAR_PX = 20
PLOT_HEIGHT_PX = 260
INSIDE_PX = 26  # a bar narrower than this has no room for its number


def stacked_bars(
    title: str, unit: str, rows: Mapping[str, Mapping[str, float]], description: str = ""
) -> str:
    """One horizontal bar per row, of the row's parts in order: where each millisecond went.

    Parts of one name have one colour. Raises ValueError where there is nothing to draw, and for
    negative parts.
    """
    _require(rows, "rows")
    for row, parts in rows.items():
        _require(parts, f"parts in {row!r}")
        if any(not _is_length(value) for value in parts.values()):
            raise ValueError(f"a part of {row!r} is negative or no number")
    names = list(dict.fromkeys(name for parts in rows.values() for name in parts))
    colours = _colours(names)
    longest = max(sum(parts.values()) for parts in rows.values())
    frame = Frame(
        left=label_width(rows),
        height=ROW_PX * len(rows),
        x=Axis.covering(0.0, longest, unit),
        y=None,
        legend=names,
    )
    canvas = Canvas(title, description or f"Bars of {', '.join(names)} in {unit}.", frame)
    for number, (row, parts) in enumerate(rows.items()):
        top = frame.top + ROW_PX * number + (ROW_PX - BAR_PX) / 2
        canvas.text(frame.left - 8, top + BAR_PX / 2 + 4, row, anchor="end")
        start = 0.0
        for name, value in parts.items():
            x, end = frame.x_px(start), frame.x_px(start + value)
            hint = f"{row}, {name}: {value:.4g} {unit}"
            canvas.bar(x, top, end - x, BAR_PX, colours[name], hint)
            if end - x >= INSIDE_PX:
                canvas.text((x + end) / 2, top + BAR_PX / 2 + 4, f"{value:.0f}", on=colours[name])
            start += value
        canvas.text(frame.x_px(start) + 6, top + BAR_PX / 2 + 4, f"{start:.0f}", anchor="start")
    canvas.legend(colours)
    return canvas.svg()


def distribution(
    title: str, unit: str, series: Mapping[str, Sequence[float]], description: str = ""
) -> str:
    """The share of values at or below each value, a staircase per series, with its median.

    Raises ValueError where there is nothing to draw, and for values that are no numbers.
    """
    _require(series, "series")
    steps: dict[str, list[Point]] = {}
    medians: dict[str, float] = {}
    for name, values in series.items():
        _require(values, f"values in {name!r}")
        _require_numbers(name, values)
        ordered = sorted(values)
        medians[name] = ordered[(len(ordered) - 1) // 2]
        line: list[Point] = [(ordered[0], 0.0)]
        for place, value in enumerate(ordered):
            line += [(value, line[-1][1]), (value, 100 * (place + 1) / len(ordered))]
        steps[name] = line
    lowest = min(line[0][0] for line in steps.values())
    highest = max(line[-1][0] for line in steps.values())
    # From zero on, unless that would squeeze everything against the right edge.
    start = 0.0 if 0 <= lowest < 0.6 * highest else lowest
    frame = Frame(
        left=52,
        height=PLOT_HEIGHT_PX,
        x=Axis.covering(start, highest, unit),
        y=Axis.covering(0.0, 100.0, "% at or below"),
        legend=[f"{name} (median {medians[name]:.0f})" for name in steps],
    )
    canvas = Canvas(title, description or f"Distribution of {', '.join(steps)}.", frame)
    colours = _colours(list(steps))
    for name, line in steps.items():
        canvas.line([(frame.x_px(x), frame.y_px(y)) for x, y in line], colours[name], name)
        canvas.dot(frame.x_px(medians[name]), frame.y_px(50.0), colours[name], f"median of {name}")
    canvas.legend(dict(zip(frame.legend, colours.values(), strict=True)))
    return canvas.svg()


def lines(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[Point]],
    description: str = "",
    limit: tuple[float, str] | None = None,
    dots: bool = True,
) -> str:
    """Points joined in the order of their x. limit: a level worth comparing with, and its name.

    Raises ValueError where there is nothing to draw, and for points that are no numbers.
    """
    _require(series, "series")
    for name, points in series.items():
        _require(points, f"points in {name!r}")
        _require_numbers(name, [value for point in points for value in point])
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    ys += [] if limit is None else [limit[0]]
    frame = Frame(
        left=58,
        height=PLOT_HEIGHT_PX,
        x=Axis.covering(_floor(xs), max(xs), x_label),
        y=Axis.covering(_floor(ys), max(ys), y_label),
        legend=list(series),
    )
    canvas = Canvas(title, description or f"{y_label} against {x_label}.", frame)
    if limit is not None:
        canvas.level(frame.y_px(limit[0]), limit[1])
    colours = _colours(list(series))
    for name, points in series.items():
        places = [(frame.x_px(x), frame.y_px(y)) for x, y in sorted(points)]
        canvas.line(places, colours[name], name)
        if dots:
            for (px, py), (x, y) in zip(places, sorted(points), strict=True):
                canvas.dot(px, py, colours[name], f"{name}: {x:.4g}, {y:.4g}")
    canvas.legend(colours)
    return canvas.svg()


def write(name: str, svg: str, folder: Path | None = None) -> Path:
    """Write to results/NAME.svg, or into another folder, and say where."""
    target = (folder or FOLDER) / f"{name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg, encoding="utf-8")
    print(f"written to {target}")
    return target


def _floor(values: Sequence[float]) -> float:
    """Where an axis begins: at zero, unless all values lie close together far from it."""
    low, high = min(values), max(values)
    if low < 0:
        return low
    step = ticks(low, high)[1]
    return 0.0 if low < 0.6 * high or low == high else math.floor(low / step) * step


def _colours(names: Sequence[str]) -> dict[str, str]:
    if len(names) > len(COLOURS):
        raise ValueError(f"a figure tells {len(COLOURS)} series apart, not {len(names)}")
    return dict(zip(names, COLOURS, strict=False))


def _require(things: Mapping[str, object] | Sequence[object], what: str) -> None:
    if not things:
        raise ValueError(f"a figure needs data: there are no {what}")


def _require_numbers(name: str, values: Sequence[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{name!r} holds a value that is no number")


def _is_length(value: float) -> bool:
    return math.isfinite(value) and value >= 0
