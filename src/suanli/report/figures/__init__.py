"""Pictures of a result as Vega-Lite: one source for the page, reports, notebooks, `.svg` and `.png`.

A figure is data and a specification, plain JSON. It is drawn by vega-embed where there is a browser and by vl-convert
where there is none; nothing here computes beyond putting values into rows.
"""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.result import Result
from suanli.report.figures import (
    catalogues,
    checks,
    counting,
    explained,
    fits,
    goodputs,
    layouts,
    lessons,
    runs,
    scaling,
    serving,
)
from suanli.report.figures.figure import Figure

FIGURES: dict[str, Callable[[Result], tuple[Figure, ...]]] = {
    "calibrate": fits.calibrate_figures,
    "compare": counting.compare_figures,
    "count": counting.count_figures,
    "explain": explained.explain_figures,
    "goodput": goodputs.goodput_figures,
    "gpus": catalogues.gpus_figures,
    "infer": serving.infer_figures,
    "layout": layouts.layout_figures,
    "learn": lessons.learn_figures,
    "mfu": runs.mfu_figures,
    "models": catalogues.models_figures,
    "scale": scaling.scale_figures,
    "summarise": fits.summarise_figures,
    "train": runs.train_figures,
    "verify": checks.verify_figures,
}

__all__ = ["FIGURES", "Figure", "figures_of"]


def figures_of(result: Result) -> tuple[Figure, ...]:
    """The pictures of a result, in reading order; none where its kind has none."""
    make = FIGURES.get(result.kind)
    return make(result) if make else ()
