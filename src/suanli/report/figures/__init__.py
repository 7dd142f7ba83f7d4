"""Pictures of a result as Vega-Lite: one source for the page, reports, notebooks, `.svg` and `.png`.

A figure is data and a specification, plain JSON. It is drawn by vega-embed where there is a browser and by vl-convert
where there is none; nothing here computes beyond putting values into rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from suanli.nouns.result import Result


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture. `spec` is Vega-Lite without width, theme or fonts: whoever draws it sets these."""

    name: str
    title: str
    words: str
    spec: dict[str, Any]


FIGURES: dict[str, Callable[[Result], tuple[Figure, ...]]] = {}


def figures_of(result: Result) -> tuple[Figure, ...]:
    """The pictures of a result, in reading order; none where its kind has none."""
    make = FIGURES.get(result.kind)
    return make(result) if make else ()
