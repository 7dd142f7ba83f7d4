"""A small chart in characters: curves over a logarithmic axis, for a terminal of any width and for files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from suanli.report.cells import cells

HEIGHT = 14  # rows of the plot
WIDEST = 100
NARROWEST = 20
GAP = 2  # between two labels of an axis

Cell = tuple[str, str]  # a character and the style it has where there are colours


@dataclass(frozen=True)
class Curve:
    """Points with the character that stands for each; `line` also where nothing was measured between them."""

    name: str
    mark: str
    style: str
    points: tuple[tuple[float, float], ...]
    line: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves, later ones over earlier ones; x is logarithmic always, y where it says so; ticks with their labels."""

    title: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    x_label: str
    y_label: str
    log_y: bool = True
    ranges: tuple[tuple[float, float, float], ...] = field(default=())  # x, and the two ends of an upright line
    legend: str = ""

    @property
    def rows(self) -> tuple[Curve, ...]:
        """What makes it empty or not, as other blocks have it."""
        return tuple(curve for curve in self.curves if curve.points)


def drawn(chart: Chart, width: int) -> list[list[Cell]]:
    """The chart as lines of cells, at most `width` wide."""
    left = max(len(label) for _, label in chart.y_ticks) + 1
    plot = _Plot(chart, max(min(width, WIDEST) - left - 1, NARROWEST))
    lines = [[(f"{label:>{left}}", "dim"), ("┤" if label else "│", "dim"), *row] for label, row in plot.lines()]
    lines.append([(" " * left + "└" + plot.axis(), "dim")])
    lines.append([(" " * (left + 1) + plot.labels(), "dim")])
    words = [cell for curve in chart.rows for cell in ((curve.mark, curve.style), (f" {curve.name}  ", ""))]
    lines.append([(" " * (left + 1), ""), *words, (chart.legend, "")])
    return [[(f"{chart.y_label}", "dim")], *lines]


def plain(chart: Chart, width: int) -> list[str]:
    """The same without colours."""
    return ["".join(text for text, _ in line).rstrip() for line in drawn(chart, width)]


class _Plot:
    """Where values come to lie among cells."""

    def __init__(self, chart: Chart, width: int) -> None:
        self.chart, self.width = chart, width
        points = [point for curve in chart.curves for point in curve.points]
        points += [(x, y) for x, *ends in chart.ranges for y in ends]
        self.x = _span([math.log(x) for x, _ in points])
        self.y = _span([self._height(y) for _, y in points] + [self._height(y) for y, _ in chart.y_ticks])
        self.cells: dict[tuple[int, int], Cell] = {}
        for curve in chart.curves:
            if curve.line:
                self._line(curve)
        for x, low, high in chart.ranges:
            self._upright(x, low, high)
        for curve in chart.curves:
            for x, y in () if curve.line else curve.points:
                self.cells[self.column(x), self.row(y)] = (curve.mark, curve.style)

    def _height(self, y: float) -> float:
        return math.log(y) if self.chart.log_y else y

    def column(self, x: float) -> int:
        """Cell from the left."""
        return round((math.log(x) - self.x[0]) / (self.x[1] - self.x[0]) * (self.width - 1))

    def row(self, y: float) -> int:
        """Row from below."""
        return round((self._height(y) - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - 1))

    def _line(self, curve: Curve) -> None:
        """A cell in every column, straight between points."""
        for (x0, y0), (x1, y1) in zip(curve.points, curve.points[1:], strict=False):
            first, last = self.column(x0), self.column(x1)
            for column in range(first, last + 1):
                part = (column - first) / (last - first) if last > first else 0.0
                height = self._height(y0) * (1 - part) + self._height(y1) * part
                row = round((height - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - 1))
                self.cells[column, row] = (curve.mark, curve.style)

    def _upright(self, x: float, low: float, high: float) -> None:
        for row in range(self.row(low), self.row(high) + 1):
            self.cells[self.column(x), row] = ("│", "dim")

    def lines(self) -> Iterator[tuple[str, list[Cell]]]:
        """Label and cells of each row, from the top."""
        labels = {self.row(value): label for value, label in self.chart.y_ticks}
        for row in range(HEIGHT - 1, -1, -1):
            yield labels.get(row, ""), [self.cells.get((column, row), (" ", "")) for column in range(self.width)]

    def _ticks(self) -> list[tuple[int, int, str]]:
        """Column, first column of the label, label: those that have room, the outer ones first."""
        placed: list[tuple[int, int, str]] = []
        ticks = self.chart.x_ticks
        for value, label in (ticks[0], ticks[-1], *ticks[1:-1]) if len(ticks) > 1 else ticks:
            at = self.column(value)
            start = min(max(at - len(label) // 2, 0), max(self.width - len(label), 0))
            if all(start >= s + len(old) + GAP or start + len(label) + GAP <= s for _, s, old in placed):
                placed.append((at, start, label))
        return sorted(placed)

    def axis(self) -> str:
        """The line below, a mark at each label."""
        marks = {at for at, *_ in self._ticks()}
        return "".join("┬" if column in marks else "─" for column in range(self.width))

    def labels(self) -> str:
        """Labels below it, and what they are of."""
        line = ""
        for _, start, label in self._ticks():
            line = line.ljust(start) + label
        return f"{line}  {self.chart.x_label}" if len(line) + cells(self.chart.x_label) + GAP <= self.width else line


def _span(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
