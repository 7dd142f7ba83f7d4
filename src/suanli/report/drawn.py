"""The figures of a result in one file: `.svg` and `.png`, drawn by vl-convert without a browser."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from suanli.errors import Fault, MissingExtraError
from suanli.nouns.result import Result
from suanli.report.cells import wrapped
from suanli.report.figures import Figure, figures_of
from suanli.report.figures.figure import Spec
from suanli.report.figures.parts import SCHEMA
from suanli.report.files import no_picture
from suanli.report.pages import document_of
from suanli.report.theme import config_of, worded
from suanli.report.words import known_language, language, translate

VERSION = "6.4"  # of Vega-Lite, as vl-convert names it
WIDTH = 720  # pixels of a plot
HEADLINE = 82  # characters of a line
SCALE = 2.0  # pixels of the file for one of the drawing
_BETWEEN = 36  # pixels from one figure to the next


def as_svg(result: Result, *, dark: bool = False, lang: str | None = None) -> str:
    """All figures of a result below one another, in the language of `spoken_in` where none is named.

    Raises InputError where the result has none, MissingExtraError where vl-convert is not installed.
    """
    drawing = specification(result, dark=dark, lang=lang)
    found: str = converter().vegalite_to_svg(drawing, vl_version=VERSION)
    return found


def as_png(result: Result, *, dark: bool = False, lang: str | None = None, scale: float = SCALE) -> bytes:
    """The same as a picture of dots. Raises as `as_svg` does."""
    drawing = specification(result, dark=dark, lang=lang)
    found: bytes = converter().vegalite_to_png(drawing, vl_version=VERSION, scale=scale)
    return found


def specification(result: Result, *, dark: bool = False, lang: str | None = None) -> str:
    """One Vega-Lite document of all figures, as JSON: text carries whole numbers of any size."""
    lang = language() if lang is None else known_language(lang)
    figures = figures_of(result)
    if not figures:
        raise no_picture(result.kind)
    headline = {
        "text": wrapped(translate(document_of(result).headline, lang), HEADLINE),
        "anchor": "start",
        "fontSize": 16,
    }
    return json.dumps({
        "$schema": SCHEMA,
        "title": headline,
        "config": config_of(dark),
        "spacing": _BETWEEN,
        "resolve": {"scale": {"color": "independent"}, "legend": {"color": "independent"}},
        "vconcat": [_part(each, lang) for each in figures],
    }, allow_nan=False)  # fmt: skip


def _part(figure: Figure, lang: str) -> Spec:
    """A figure within the document: titled, as wide as the others."""
    spec = worded(figure.spec | {"title": figure.title, "description": figure.words}, lang)
    return {name: value for name, value in spec.items() if name not in ("$schema", "usermeta")} | {"width": WIDTH}


def converter() -> Any:
    """vl-convert. Raises MissingExtraError where it is not installed."""
    try:
        return import_module("vl_convert")
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message="vl-convert is needed to draw pictures and is not installed",
                where="--output",
                hint="pip install 'suanli[report]'",
            )
        ) from problem
