"""The pages of `learn`: each kind of block of a lesson as a block of a document."""

from __future__ import annotations

from suanli.nouns.lesson import Block, Box, Boxes, Contents, Grid, Lesson, Plot, Shades, Words
from suanli.nouns.result import Result
from suanli.report import document
from suanli.report.cells import cells, padded
from suanli.report.chart import Chart, Curve
from suanli.report.common import closing
from suanli.report.document import Document, Picture, Prose, Table
from suanli.report.ticks import linear_ticks, log_ticks
from suanli.units import format_as

_MARKS = "●○◆◇■□"
_LINES = "─·═┄"
_STYLES = ("green", "cyan", "yellow", "magenta")
_DARKNESS = " ░▒▓█"


def learn_document(result: Result) -> Document:
    """The lesson, or the list of lessons."""
    found = result.result
    if isinstance(found, Contents):
        return _contents(found)
    assert isinstance(found, Lesson)
    blocks = tuple(_block(each) for each in found.blocks)
    return Document(found.title, (*blocks, *closing(result)))


def _contents(found: Contents) -> Document:
    rows = tuple((each.topic, each.title) for each in found.topics)
    return Document("suanli learn TOPIC --lang en|zh", (Table("", ("topic", ""), rows, right=(False, False)),))


def _block(block: Block) -> document.Block:
    if isinstance(block, Words):
        return Prose(block.title, block.paragraphs)
    if isinstance(block, Grid):
        return _table(block)
    if isinstance(block, Plot):
        return _chart(block)
    return _shades(block) if isinstance(block, Shades) else _boxes(block)


def _table(block: Grid) -> Table:
    rows = tuple(
        tuple(format_as(value, spec) for value, spec in zip(row, block.formats, strict=True)) for row in block.rows
    )
    return Table(block.title, block.columns, rows, right=tuple(spec != "text" for spec in block.formats))


def _chart(block: Plot) -> Chart:
    xs = [x for each in block.series for x, _ in each.points]
    ys = [y for each in block.series for _, y in each.points]
    y_ticks = log_ticks(ys) if block.log_y else linear_ticks(ys)
    curves, lines, marks = [], iter(_LINES), iter(_MARKS)
    for style, each in zip(_STYLES * 2, block.series, strict=False):
        mark = next(lines) if each.line else next(marks)
        curves.append(Curve(each.name, mark, style, each.points, line=each.line))
    return Chart(
        block.title, tuple(curves), tuple((x, format_as(x, block.x_format)) for x in log_ticks(xs)),
        tuple((y, format_as(y, block.y_format)) for y in y_ticks), block.x_name, block.y_name, log_y=block.log_y,
    )  # fmt: skip


def _shades(block: Shades) -> Picture:
    """Two characters a cell: as high as wide."""
    left = max(map(cells, block.rows), default=0)
    lines = [
        f"{padded(label, left, right=True)} {''.join(2 * _dark(value) for value in row)}"
        for label, row in zip(block.rows, block.values, strict=True)
    ]
    return Picture(block.title, tuple(lines))


def _dark(value: float) -> str:
    """A character for 0 to 1; nothing at all is a blank."""
    if value <= 0:
        return _DARKNESS[0]
    return _DARKNESS[min(1 + int(value * (len(_DARKNESS) - 1)), len(_DARKNESS) - 1)]


def _boxes(block: Boxes) -> Picture:
    """Boxes of one width, rows of them as high as their highest."""
    inner = max(cells(text) for box in block.boxes for text in (box.name, *box.lines))
    lines: list[str] = []
    for first in range(0, len(block.boxes), block.per_row):
        row = block.boxes[first : first + block.per_row]
        height = max(len(box.lines) for box in row)
        middle = height // 2 + 1
        for place, parts in enumerate(zip(*(_box(box, inner, height) for box in row), strict=True)):
            gap = block.between if place == middle else " " * cells(block.between)
            lines.append(gap.join(parts))
    return Picture(block.title, tuple(lines))


def _box(box: Box, inner: int, height: int) -> list[str]:
    """Lines of one box, its name in the upper edge."""
    held = (*box.lines, *[""] * (height - len(box.lines)))
    edge = box.name + "─" * (inner - cells(box.name))
    return [f"┌{edge}┐", *(f"│{padded(text, inner)}│" for text in held), f"└{'─' * inner}┘"]
