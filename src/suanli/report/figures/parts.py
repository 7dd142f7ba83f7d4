"""What figures are made of: bars, stacks, waterfalls, points and lines as Vega-Lite, with hover.

Every text that came from outside (names of models, kernels, files) is data: none gets into an expression, a field name
or a title. All figures are single or layered views, which can be as wide as what holds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suanli.report.figures.colours import SERIES
from suanli.report.figures.figure import Row, Spec
from suanli.report.figures.scales import Unit
from suanli.units import DAY, HOUR, MINUTE

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # what tells vega-embed the language; nothing is loaded
MOST_MARKS = 2000
MOST_BARS = 24
BAR_STEP = 24  # pixels of a bar with its gap
HEIGHT = 300
TAIL = 32  # characters of a path
LABEL = 60  # characters of a name on an axis or in a legend
FEW_DECADES, FEW_TICKS = 3, 2
_DECADES, _TWOS_AND_FIVES, _EVERY = ("1",), ("1", "2", "5"), ("1", "1.5", "2", "2.5", "3", "4", "5", "6", "7", "8", "9")
SAFE_INTEGER = 2**53
ROUNDING = 1e-9  # of a whole: what sums of floating-point numbers leave
SECONDS = (
    f"datum.value >= {2 * DAY} ? format(datum.value / {DAY}, '~g') + ' d' : "
    f"datum.value >= {HOUR} ? format(datum.value / {HOUR}, '~g') + ' h' : "
    f"datum.value >= {MINUTE} ? format(datum.value / {MINUTE}, '~g') + ' min' : format(datum.value, '~g') + ' s'"
)  # labels of an axis of times
NARROW = "containerSize()[0] < 480"  # false where nothing holds the figure: in files
LABELS = {"expr": f"{NARROW} ? 126 : 220"}  # pixels of names beside a plot
LEGEND = {"expr": f"{NARROW} ? 190 : 260"}
_LEGEND_PIXELS = (560, 210)  # on a wide screen, on a phone
_PIXELS_A_LETTER, _SYMBOL_PIXELS = 7, 34

Tip = tuple[str, str]  # field, title


@dataclass(frozen=True)
class Step:
    """Pixels of each row of the discrete axis: Vega-Lite's own steps do not go with a width that fits its place."""

    pixels: float


def spec_of(rows: Sequence[Row], height: float | Step, words: Sequence[str] = (), **body: Any) -> Spec:
    """A specification over rows. `words` are the fields whose texts are ours and may be translated."""
    height = height.pixels * _bands(body) if isinstance(height, Step) else height
    return {
        "$schema": SCHEMA,
        "usermeta": {"words": list(words)},
        "data": {"values": [{name: _plain(value) for name, value in row.items()} for row in rows]},
        "height": height,
        **body,
    }


def _bands(body: Any) -> int:
    """Rows of the discrete axis, the bars beside one another counted."""
    if isinstance(body, dict) and isinstance(order := body.get("y", {}).get("sort"), list):
        return len(order) * len(body.get("yOffset", {}).get("sort", "1"))
    nested = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return next((found for each in nested if (found := _bands(each))), 0)


def _plain(value: Any) -> Any:
    """Whole numbers that JSON readers of other languages cannot hold become floats."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
        return float(value)
    return value


def name_of(text: object, most: int = LABEL) -> str:
    """A name as a label: one line without control characters, cut where it is long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in str(text)).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def tail_of(text: object, most: int = TAIL) -> str:
    """A path as a label: its end tells paths apart."""
    line = name_of(text, 10 * LABEL)
    return line if len(line) <= most else f"…{line[1 - most :]}"


def unique(names: Iterable[str]) -> list[str]:
    """Names told apart by a number, where two rows would share a bar."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def tips(*pairs: Tip) -> list[Spec]:
    """What hovering shows: texts made by `suanli.units`, the same as on screen."""
    return [{"field": field, "type": "nominal", "title": title} for field, title in pairs]


def band(field: str, order: Sequence[str], title: str | None = None, **axis: Any) -> Spec:
    """A discrete axis in the given order."""
    found = {"labelLimit": LABELS, "ticks": False, "domain": False} | axis
    return {"field": field, "type": "nominal", "sort": list(order), "title": title, "axis": found}


def measure(field: str, title: str, *, log: bool = False, zero: bool = True, **more: Any) -> Spec:
    """A continuous axis."""
    scale: Spec = {"type": "log"} if log else {"zero": zero}
    scale |= more.pop("scale", {})
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def log_axis(values: Iterable[float], unit: Unit | None = None, **axis: Any) -> Spec:
    """Ticks of a logarithmic axis: powers of ten, with twos and fives, or more, where few; in the unit of the axis."""
    known = [value / (unit.factor if unit else 1) for value in values if value > 0]
    return {"values": round_ticks(known), "format": "~g"} | axis


def round_ticks(values: Sequence[float]) -> list[float]:
    """Round numbers around positive values."""
    if not values:
        return []
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    for steps in (_DECADES if high - low > FEW_DECADES else _TWOS_AND_FIVES), _EVERY:
        found = [float(f"{step}e{power}") for power in range(low, high + 1) for step in steps]
        if sum(min(values) <= tick <= max(values) for tick in found) >= FEW_TICKS:
            break
    return found


def coloured(
    field: str, colours: Mapping[str, str] | Sequence[str], title: str | None = None, *, legend: bool = True
) -> Spec:
    """Colour by a field of names: the colours told, or one after another."""
    if not isinstance(colours, Mapping):
        colours = {name: SERIES[place % len(SERIES)] for place, name in enumerate(colours)}
    names = list(colours)
    scale = {"domain": names, "range": list(colours.values())}
    key = {"columns": columns_of(names), "labelLimit": LEGEND} if legend else None
    return {"field": field, "type": "nominal", "title": title, "scale": scale, "legend": key}


def columns_of(names: Sequence[str]) -> Spec:
    """Columns of a legend that there is room for, on a wide screen and on a phone."""
    widest = max((len(name) for name in names), default=1) * _PIXELS_A_LETTER + _SYMBOL_PIXELS
    wide, narrow = (max(1, min(len(names), room // widest)) for room in _LEGEND_PIXELS)
    return {"expr": f"{NARROW} ? {narrow} : {wide}"}


def bars(
    rows: Sequence[Row],
    *,
    label: str,
    value: str,
    unit: Unit,
    title: str,
    text: str,
    hover: Sequence[Tip],
    colour: str | Spec = SERIES[0],
    words: Sequence[str] = (),
    label_title: str | None = None,
) -> Spec:
    """One bar a row in the rows' order, its figure in words behind it. `value` and `text` are fields."""
    x, y = measure("shown", unit.of(title)), band(label, [row[label] for row in rows], label_title)
    paint = {"color": plain_colour(colour) if isinstance(colour, str) else colour}
    edge = {"field": "edge", "type": "quantitative"}
    return spec_of(
        rows, Step(BAR_STEP), words,
        transform=[unit.shown(value, "shown"), {"calculate": "max(datum.shown, 0)", "as": "edge"}],
        layer=[
            {"mark": {"type": "bar"}, "encoding": paint | {"x": x, "y": y, "tooltip": tips(*hover)}},
            {"mark": {"type": "text", "align": "left", "dx": 4},
             "encoding": {"x": edge, "y": y, "text": {"field": text}}},
        ],
    )  # fmt: skip


def stack(
    rows: Sequence[Row],
    *,
    label: str,
    part: str,
    value: str,
    unit: Unit,
    title: str,
    colours: Mapping[str, str],
    hover: Sequence[Tip],
    words: Sequence[str] = (),
    label_title: str | None = None,
    limit: Row | None = None,
    order: Sequence[str] | None = None,
) -> Spec:
    """Bars cut into parts, all in the order of `colours`. `limit` is a rule across all: `value`, `text`."""
    labels = order or list(dict.fromkeys(row[label] for row in rows))
    place = {name: at for at, name in enumerate(colours)}
    placed = [row | {"place": place[row[part]]} for row in rows]
    bar: Spec = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": band(label, labels, label_title),
            "x": measure("shown", unit.of(title), stack="zero"),
            "color": coloured(part, colours), "order": {"field": "place", "type": "quantitative"},
            "tooltip": tips(*hover),
        },
    }  # fmt: skip
    layers = [bar] if limit is None else [bar, *_rule(limit, unit)]
    return spec_of(placed, Step(BAR_STEP), words, transform=[unit.shown(value, "shown")], layer=layers)


def _rule(limit: Row, unit: Unit) -> list[Spec]:
    data = {"values": [limit | {"value": _plain(limit["value"])}]}
    transform = [unit.shown("value", "shown")]
    x = {"field": "shown", "type": "quantitative"}
    tip = {"text": {"field": "text"}, "x": x, "y": {"value": -6}}
    return [
        {"data": data, "transform": transform, "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 2},
         "encoding": {"x": x, "tooltip": tips(("text", "limit"))}},
        {"data": data, "transform": transform, "mark": {"type": "text", "align": "right", "dx": 4}, "encoding": tip},
    ]  # fmt: skip


def waterfall(
    rows: Sequence[Row],
    *,
    label: str,
    unit: Unit,
    title: str,
    colours: Mapping[str, str],
    hover: Sequence[Tip],
    words: Sequence[str] = (),
) -> Spec:
    """Bars from `begin` to `end`, each where the one before ended; `text` behind each."""
    order = [row[label] for row in rows]
    transform = [unit.shown("begin", "left"), unit.shown("end", "right")]
    y = band(label, order)
    bar = {
        "mark": {"type": "bar"},
        "encoding": {"y": y, "x": measure("left", unit.of(title)), "x2": {"field": "right"},
                     "color": coloured(label, colours, legend=False), "tooltip": tips(*hover)},
    }  # fmt: skip
    text = {
        "mark": {"type": "text", "align": "left", "dx": 4},
        "encoding": {"y": y, "x": measure("right", unit.of(title)), "text": {"field": "text"}},
    }
    return spec_of(rows, Step(BAR_STEP), words, transform=transform, layer=[bar, text])


def points(x: Spec, y: Spec, colour: Spec, hover: Sequence[Tip], **mark: Any) -> Spec:
    """A layer of marks with hover."""
    shape = {"type": "point", "filled": True, "size": 80, "opacity": 0.9} | mark
    return {"mark": shape, "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips(*hover)}}


def plain_colour(colour: str) -> Spec:
    """One colour for a whole layer."""
    return {"value": colour}


def top(rows: Sequence[Row], *values: str, label: str, most: int = MOST_BARS) -> list[Row]:
    """At most so many rows, those with most of the first of `values`, in their order; the rest added up as one."""
    if len(rows) <= most:
        return list(rows)
    kept = sorted(sorted(range(len(rows)), key=lambda at: -rows[at][values[0]])[: most - 1])
    rest = [row for at, row in enumerate(rows) if at not in set(kept)]
    others = {label: f"{len(rest):,} others"} | {name: sum(row[name] for row in rest) for name in values}
    return [*(rows[at] for at in kept), others]


def running(parts: Sequence[tuple[str, float]], *, down_from: float | None = None) -> list[Row]:
    """Where each part of a whole begins and ends: upwards from 0, or downwards from the whole."""
    found, at = [], 0.0 if down_from is None else down_from
    for name, value in parts:
        end = at + value if down_from is None else at - value
        if down_from is not None and abs(end) < ROUNDING * down_from:
            end = 0.0  # what sums leave would widen the axis below 0
        found.append({"part": name, "value": value, "begin": min(at, end), "end": max(at, end)})
        at = end
    return found
