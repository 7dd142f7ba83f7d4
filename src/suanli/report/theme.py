"""How figures look: fonts, sizes, the colours of text and lines on light and dark, and the language of their words.

`themed` makes a figure's specification ready to draw; `.svg`, `.png`, reports and the page all use it, so that a figure
is the same everywhere.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from suanli.report.figures.colours import DARK_GROUND, LIGHT_GROUND, SERIES
from suanli.report.figures.figure import Spec

# Latin first, then what has Chinese on Linux, macOS and Windows: a list, so that the first that is there is taken.
FONTS = (
    "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'DejaVu Sans', 'Noto Sans SC', "
    "'PingFang SC', 'Microsoft YaHei', 'Source Han Sans SC', 'WenQuanYi Micro Hei', sans-serif"
)
_LIGHT = {"ground": LIGHT_GROUND, "text": "#1c2330", "dim": "#566070", "line": "#c9ced8", "grid": "#e6e9ef"}
_DARK = {"ground": DARK_GROUND, "text": "#e6e9ef", "dim": "#a8b0be", "line": "#4a5160", "grid": "#2a2f39"}
_CSS = {"ground": "var(--paper)", "text": "var(--ink)", "dim": "var(--soft)", "line": "var(--line)",
        "grid": "var(--faint)"}  # fmt: skip
_SIZE, _SMALL = 13, 12  # pixels
_TITLED = ("title", "header")  # keys whose texts are ours

Translate = Callable[[str, str], str]


def config_of(dark: bool) -> Spec:
    """The Vega-Lite config of a light or a dark ground."""
    return _config(_DARK if dark else _LIGHT)


def css_config() -> Spec:
    """The same in the colours of report.css, which follow a change of theme and the printer."""
    return _config(_CSS) | {"background": None}


def _config(shade: dict[str, str]) -> Spec:
    text = {"labelColor": shade["text"], "titleColor": shade["dim"], "labelFontSize": _SMALL, "titleFontSize": _SMALL,
            "titleFontWeight": "normal"}  # fmt: skip
    return {
        "background": shade["ground"],
        "font": FONTS,
        "padding": 8,
        "view": {"stroke": None},
        "axis": text | {"domainColor": shade["line"], "tickColor": shade["line"], "gridColor": shade["grid"],
                        "titlePadding": 8},
        "axisQuantitative": {"tickCount": 6},
        "axisY": {"titleAnchor": "end", "titleAlign": "left", "titleAngle": 0, "titleX": 0, "titleY": -8,
                  "titleBaseline": "bottom"},
        "axisBand": {"grid": False},
        "legend": text | {"orient": "bottom", "symbolType": "square", "symbolStrokeWidth": 0, "offset": 12,
                          "titleLimit": 300, "symbolOpacity": 1, "rowPadding": 3},
        "title": {"color": shade["text"], "subtitleColor": shade["dim"], "fontSize": 15, "subtitleFontSize": _SMALL,
                  "anchor": "start", "frame": "group", "fontWeight": 600, "offset": 14},
        "text": {"color": shade["text"], "fontSize": _SMALL},
        "rule": {"color": shade["dim"]},
        "bar": {"stroke": shade["ground"], "strokeWidth": 0.5},
        "rect": {"stroke": None},
        "line": {"strokeWidth": 2},
        "point": {"strokeWidth": 1},
        "range": {"category": list(SERIES)},
    }  # fmt: skip


def themed(spec: Spec, dark: bool = False, lang: str = "en", *, width: Any = "container") -> Spec:
    """The specification with config, width and words in a language. The given one is left as it is."""
    found = worded(spec, lang)
    return found | {"width": width, "config": config_of(dark), "autosize": {"type": "fit-x", "contains": "padding"}}


def worded(spec: Spec, lang: str) -> Spec:
    """The specification with its titles and the fields of `usermeta.words` translated; a copy."""
    found: Spec = copy.deepcopy(spec)
    if lang == "en":
        return found
    to = _translator(lang)
    fields = tuple(found.get("usermeta", {}).get("words", ()))
    known = _known(found, fields)
    _walk(found, fields, {name: to(name) for name in known}, to)
    return found


def _translator(lang: str) -> Callable[[str], str]:
    from suanli.report.words import translate  # noqa: PLC0415  its table is read with the first translation

    def to(text: str) -> str:
        label, bracket, unit = text.partition(" [")  # `step [s]`: a title with its unit
        translated: str = translate(label, lang)
        return f"{translated}{bracket}{translate(unit[:-1], lang)}]" if bracket and unit.endswith("]") else translated

    return to


def _known(node: Any, fields: tuple[str, ...]) -> set[str]:
    """Every text that stands in one of the fields."""
    if isinstance(node, list):
        return set().union(*(_known(each, fields) for each in node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node[name] for name in fields if isinstance(node.get(name), str)} if "mark" not in node else set()
    return own.union(*(_known(each, fields) for each in node.values())) if node else own


def _walk(node: Any, fields: tuple[str, ...], names: dict[str, str], to: Callable[[str], str]) -> None:
    """Translate in place: titles, rows, and the domains and orders that name what is in rows."""
    if isinstance(node, list):
        for each in node:
            _walk(each, fields, names, to)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if isinstance(value, str) and (key in _TITLED or key in fields):
            node[key] = to(value) if key in _TITLED else names.get(value, value)
        elif key in ("sort", "domain") and isinstance(value, list):
            node[key] = [names.get(each, each) if isinstance(each, str) else each for each in value]
        else:
            _walk(value, fields, names, to)
