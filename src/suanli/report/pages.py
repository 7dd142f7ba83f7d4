"""Which function makes a document of which result."""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.result import Result
from suanli.report import (
    calibrate_pages,
    catalogue_pages,
    compare_pages,
    count_pages,
    explain_pages,
    fleet_pages,
    goodput_pages,
    infer_pages,
    layout_pages,
    lesson_pages,
    reason_pages,
    repeated_pages,
    run_pages,
    scale_pages,
    verify_pages,
)
from suanli.report.document import Document

PAGES: dict[str, Callable[[Result], Document]] = {
    "count": count_pages.count_document,
    "compare": compare_pages.compare_document,
    "mfu": run_pages.mfu_document,
    "layout": layout_pages.layout_document,
    "summarise": fleet_pages.summarise_document,
    "train": run_pages.train_document,
    "calibrate": calibrate_pages.calibrate_document,
    "scale": scale_pages.scale_document,
    "goodput": goodput_pages.goodput_document,
    "infer": infer_pages.infer_document,
    "explain": explain_pages.explain_document,
    "gpus": catalogue_pages.gpus_document,
    "models": catalogue_pages.models_document,
    "why": reason_pages.why_document,
    "verify": verify_pages.verify_document,
    "rerun": repeated_pages.rerun_document,
    "diff": repeated_pages.diff_document,
    "learn": lesson_pages.learn_document,
}


def document_of(result: Result) -> Document:
    """The report of a result."""
    return PAGES[result.kind](result)
