"""Figures of `learn`: a lesson's curves, its matrices and its drawings of boxes, in the lesson's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from suanli.nouns.lesson import Block, Boxes, Lesson, Plot, Shades
from suanli.nouns.result import Result
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.report.goodput_pages import TIMES
from suanli.units import format_as

WIDEST_ROW, FOLDED_ROW = 6, 4  # boxes side by side; of more, so many
ROOMY = 48  # letters of a row that a phone has room for
LINE_PIXELS = 17


def learn_figures(result: Result) -> tuple[Figure, ...]:
    """One for each block that is a picture, in order; their names have the block's place in the lesson."""
    return tuple(figures_by_block(result.result).values()) if isinstance(result.result, Lesson) else ()


def figures_by_block(lesson: Lesson) -> dict[int, Figure]:
    """Place of a block in the lesson → its figure."""
    found = {}
    heading = lesson.title
    for place, block in enumerate(lesson.blocks):
        heading = block.title or heading
        for spec, words in _drawn(block):
            found[place] = Figure(name=f"block_{place}", title=heading, words=words, spec=spec, block=place)
    return found


def _drawn(block: Block) -> Iterator[tuple[Spec, str]]:
    if isinstance(block, Plot):
        yield _plot(block), ", ".join(each.name for each in block.series)
    elif isinstance(block, Shades):
        yield _shades(block), "; ".join(block.rows)
    elif isinstance(block, Boxes):
        yield _boxes(block), "; ".join(f"{box.name}: {' '.join(box.lines).strip()}" for box in block.boxes)


def _plot(block: Plot) -> Spec:
    rows: list[Row] = [
        {"series": each.name, "x": x, "y": y, "x_text": format_as(x, block.x_format),
         "y_text": format_as(y, block.y_format), "line": each.line}
        for each in block.series for x, y in each.points
    ]  # fmt: skip
    axis = {name: _axis(spec, [row[name] for row in rows], log)
            for name, spec, log in (("x", block.x_format, True), ("y", block.y_format, block.log_y))}  # fmt: skip
    x = parts.measure("x", block.x_name, log=True, zero=False, scale={"nice": False}, axis=axis["x"])
    y = parts.measure("y", block.y_name, log=block.log_y, zero=not block.log_y, axis=axis["y"],
                      scale={"nice": not block.log_y})  # fmt: skip
    names = [each.name for each in block.series]
    colour = parts.coloured("series", names, legend=len(names) > 1)
    dashes = colour | {"sort": names, "scale": {"domain": names, "range": _dashes(len(names))}}
    line = {"transform": [{"filter": "datum.line"}], "mark": {"type": "line"},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dashes}}  # fmt: skip
    hover = (("series", "series"), ("x_text", block.x_name), ("y_text", block.y_name))
    return parts.spec_of(rows, parts.HEIGHT, layer=[line, parts.points(x, y, colour, hover, size=45)])


def _dashes(count: int) -> list[list[int]]:
    """Told apart without colours too."""
    return [[1, 0] if at % 2 == 0 else [6, 4] for at in range(count)]


def _axis(spec: str, values: list[float], log: bool) -> Spec:
    """Ticks at round places in the format of the lesson's numbers."""
    if spec == "seconds":
        times = [seconds for seconds, _ in TIMES if min(values) <= seconds <= max(values)]
        return {"labelExpr": parts.SECONDS} | ({"values": times} if times else {})
    if spec == "flop_per_s":
        unit = scales.rates(values)
        label: Spec = {"labelExpr": f"format(datum.value / {unit.factor!r}, '~g') + ' {unit.name}'"}
    elif spec.startswith("percent"):
        label = {"labelExpr": "format(datum.value * 100, '~g') + ' %'"}
    else:
        label = {"format": {"exact": ",", ".0e": ".0e"}.get(spec, "~g")}
    return parts.log_axis(values) | label if log else label


def _shades(block: Shades) -> Spec:
    """Cells the stronger the larger their value: the same on light and dark."""
    down, across = _told_apart(block.rows), _told_apart(block.columns)
    rows: list[Row] = [
        {"row": row, "column": column, "value": value, "text": f"{value:.3f}"}
        for row, values in zip(down, block.values, strict=True) for column, value in zip(across, values, strict=True)
    ][: parts.MOST_MARKS]  # fmt: skip
    axis = {"labelLimit": 160, "ticks": False, "domain": False}
    x = {"field": "column", "type": "nominal", "sort": across, "title": None,
         "axis": axis | {"orient": "top", "labelAngle": -45}}  # fmt: skip
    y = {"field": "row", "type": "nominal", "sort": down, "title": None, "axis": axis}
    strength = {
        "field": "value",
        "type": "quantitative",
        "legend": None,
        "scale": {"domain": [0, 1], "range": [0.04, 1]},
    }
    hover = parts.tips(("row", "row"), ("column", "column"), ("text", "value"))
    return parts.spec_of(
        rows, parts.Step(26), mark={"type": "rect", "color": colours.BLUE},
        encoding={"x": x, "y": y, "fillOpacity": strength, "tooltip": hover},
    )  # fmt: skip


def _told_apart(labels: Sequence[str]) -> list[str]:
    """A word that comes twice has a place for each: blanks behind it, which nobody sees."""
    seen: Counter[str] = Counter()
    found = []
    for label in labels:
        found.append(parts.name_of(label) + " " * seen[label])
        seen[label] += 1
    return found


def _boxes(block: Boxes) -> Spec:
    """A frame a box with its lines in it, as many a row as there is room for on a phone."""
    across = block.per_row if block.per_row <= WIDEST_ROW else FOLDED_ROW
    lines = max(len(box.lines) for box in block.boxes)
    frames: list[dict[str, object]] = []
    words: list[dict[str, object]] = []
    for place, box in enumerate(block.boxes):
        row, column = divmod(place, across)
        top = row * (lines + 2)
        frames.append({"left": column + 0.04, "right": column + 0.96, "top": top, "bottom": top + lines + 1.4,
                       "name": box.name, "held": " ".join(box.lines).strip()})  # fmt: skip
        words += [{"x": column + 0.5, "y": top + 0.7 + at, "text": text, "head": at == 0}
                  for at, text in enumerate((box.name, *box.lines)) if text]  # fmt: skip
    height = (-(-len(block.boxes) // across)) * (lines + 2)
    x = {"type": "quantitative", "axis": None, "scale": {"domain": [0, across], "nice": False, "zero": False}}
    y = {"type": "quantitative", "axis": None, "scale": {"domain": [height, 0], "nice": False, "zero": False}}
    frame = {"mark": {"type": "rect", "fillOpacity": 0.12, "color": colours.BLUE, "stroke": colours.BLUE,
                      "cornerRadius": 4},
             "encoding": {"x": x | {"field": "left"}, "x2": {"field": "right"}, "y": y | {"field": "top"},
                          "y2": {"field": "bottom"},
                          "tooltip": parts.tips(("name", "name"), ("held", "holds"))}}  # fmt: skip
    longest = max(len(str(each["text"])) for each in words)
    size = {"expr": f"{parts.NARROW} ? 9 : 11"} if longest * across > ROOMY else 11  # within its frame on a phone too
    texts = [
        {"data": {"values": words}, "transform": [{"filter": f"{'' if head else '!'}datum.head"}],
         "mark": {"type": "text", "fontSize": size, "fontWeight": "bold" if head else "normal"},
         "encoding": {"x": x | {"field": "x"}, "y": y | {"field": "y"}, "text": {"field": "text"}}}
        for head in (True, False)
    ]  # fmt: skip
    return parts.spec_of(frames, height * LINE_PIXELS, layer=[frame, *texts])
