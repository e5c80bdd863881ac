"""What figures are drawn with: axes with round ticks, and SVG elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH_PX = 760  # of a README's column
RIGHT_PX = 48  # for the last number of an axis and the sum beside a bar
TITLE_PX = 40
LEGEND_PX = 24
AXIS_PX = 48  # below the plot: numbers and the axis' name
CHARACTER_PX = 7.0  # of the words, on average
MOST_TICKS = 8

INK = "#7d8590"  # legible on white and on GitHub's dark page: 3.6 to 1 and 5.1 to 1
FAINT = "#7d859040"
FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def ticks(low: float, high: float) -> tuple[list[float], float]:
    """Round numbers that enclose [low, high], and their distance: 1, 2 or 5 times a power of 10."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / MOST_TICKS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if span / (m * power) <= MOST_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)], step


@dataclass(frozen=True, slots=True)
class Axis:
    """From the first tick to the last. `label` names the quantity and its unit."""

    ticks: list[float]
    step: float
    label: str

    @classmethod
    def covering(cls, low: float, high: float, label: str) -> Axis:
        return cls(*ticks(low, high), label)

    def share(self, value: float) -> float:
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])

    def number(self, value: float) -> str:
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        return f"{value:.{digits}f}"


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the plot lies in the picture. y: None for bars, whose rows name themselves."""

    left: float
    height: float
    x: Axis
    y: Axis | None
    legend: Sequence[str]

    @property
    def top(self) -> float:
        return TITLE_PX + LEGEND_PX * len(self.legend_rows()) + 6

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def right(self) -> float:
        return WIDTH_PX - RIGHT_PX

    def x_px(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.x.share(value)

    def y_px(self, value: float) -> float:
        return self.bottom if self.y is None else self.bottom - self.height * self.y.share(value)

    def legend_rows(self) -> list[list[str]]:
        """The names in as many lines as they need."""
        rows: list[list[str]] = []
        used = math.inf
        for name in self.legend:
            width = legend_entry_width(name)
            if used + width > WIDTH_PX - 16:
                rows.append([])
                used = 16.0
            rows[-1].append(name)
            used += width
        return rows


def label_width(names: Iterable[str]) -> float:
    """Room for the longest of the names left of the plot."""
    return 16 + CHARACTER_PX * max(len(name) for name in names)


def legend_entry_width(name: str) -> float:
    return 30 + CHARACTER_PX * len(name)


class Canvas:
    """Collects elements; the title, the axes and their ticks are there from the beginning."""

    def __init__(self, title: str, description: str, frame: Frame) -> None:
        self._title = title
        self._description = description
        self._frame = frame
        self._parts: list[str] = []
        self.text(16, 24, title, anchor="start", size=15, weight="600")
        self._draw_axes()

    def bar(self, x: float, y: float, width: float, height: float, colour: str, hint: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{colour}"><title>{escape(hint)}</title></rect>'
        )

    def line(self, points: Sequence[tuple[float, float]], colour: str, hint: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2" '
            f'stroke-linejoin="round"><title>{escape(hint)}</title></polyline>'
        )

    def dot(self, x: float, y: float, colour: str, hint: str) -> None:
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{colour}">'
            f"<title>{escape(hint)}</title></circle>"
        )

    def level(self, y: float, name: str) -> None:
        """A dashed line across the plot."""
        frame = self._frame
        self._rule(frame.left, y, frame.right, y, INK, 'stroke-dasharray="5 4"')
        self.text(frame.left + 6, y - 5, name, anchor="start", size=11)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "middle",
        size: int = 12,
        weight: str = "400",
        on: str | None = None,
        turn: bool = False,
    ) -> None:
        """on: the colour that the words stand on; without it, the page."""
        fill = INK if on is None else _readable_on(on)
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" fill="{fill}"{turned}>{escape(words)}</text>'
        )

    def legend(self, colours: Mapping[str, str]) -> None:
        for number, row in enumerate(self._frame.legend_rows()):
            x, y = 16.0, TITLE_PX + LEGEND_PX * number
            for name in row:
                self._parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="12" height="12" rx="2" '
                    f'fill="{colours[name]}" class="key"/>'
                )
                self.text(x + 18, y + 10.5, name, anchor="start")
                x += legend_entry_width(name)

    def svg(self) -> str:
        height = self._frame.bottom + AXIS_PX
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height:.0f}" '
            f'width="{WIDTH_PX}" height="{height:.0f}" role="img" font-family="{FONT}" '
            'aria-labelledby="title desc">\n'
            f'<title id="title">{escape(self._title)}</title>\n'
            f'<desc id="desc">{escape(self._description)}</desc>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )

    def _draw_axes(self) -> None:
        frame = self._frame
        for value in frame.x.ticks:
            x = frame.x_px(value)
            self._rule(x, frame.top, x, frame.bottom, FAINT)
            self.text(x, frame.bottom + 18, frame.x.number(value))
        self.text((frame.left + frame.right) / 2, frame.bottom + 38, frame.x.label)
        self._rule(frame.left, frame.bottom, frame.right, frame.bottom, INK)
        if frame.y is None:
            return
        for value in frame.y.ticks:
            y = frame.y_px(value)
            self._rule(frame.left, y, frame.right, y, FAINT)
            self.text(frame.left - 8, y + 4, frame.y.number(value), anchor="end")
        self.text(14, (frame.top + frame.bottom) / 2, frame.y.label, turn=True)

    def _rule(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = ""
    ) -> None:
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" {dashes}/>'
        )


def _readable_on(colour: str) -> str:
    """Black or white, whichever stands out more (luminance as in WCAG 2)."""
    levels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in levels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if luminance > 0.179 else "#fff"
