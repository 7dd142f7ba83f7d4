"""Pictures of a result as Vega-Lite: one source for the page, reports, notebooks, `.svg` and `.png`.

A figure is data and a specification, plain JSON. It is drawn by vega-embed where there is a browser and by vl-convert
where there is none; nothing here computes beyond putting values into rows.
"""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.result import Result
from suanli.report.figures import explained, layouts, runs, scaling
from suanli.report.figures.figure import Figure

FIGURES: dict[str, Callable[[Result], tuple[Figure, ...]]] = {
    "explain": explained.explain_figures,
    "layout": layouts.layout_figures,
    "mfu": runs.mfu_figures,
    "scale": scaling.scale_figures,
    "train": runs.train_figures,
}

__all__ = ["FIGURES", "Figure", "figures_of"]


def figures_of(result: Result) -> tuple[Figure, ...]:
    """The pictures of a result, in reading order; none where its kind has none."""
    make = FIGURES.get(result.kind)
    return make(result) if make else ()
