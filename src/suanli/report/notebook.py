"""A result in a notebook: its blocks as HTML, pictures drawn as SVG, so that it is seen where no script runs."""

from __future__ import annotations

import json
from importlib.util import find_spec

from suanli.nouns.result import Result
from suanli.report.drawn import VERSION, converter
from suanli.report.figures import Figure
from suanli.report.html import blocks_html
from suanli.report.html_blocks import Setting, words
from suanli.report.html_file import asset
from suanli.report.html_tags import tag
from suanli.report.pages import document_of
from suanli.report.theme import css_config, worded
from suanli.report.words import language

WIDTH = 640  # pixels of a plot
FRAME = ".report { padding: 1rem; background: var(--paper); }"  # a notebook's own ground may be dark where we are light


def notebook_html(result: Result) -> str:
    """The report with its own styles, in the language of `spoken_in`; pictures only where vl-convert is installed."""
    document, lang = document_of(result), language()
    draws = find_spec("vl_convert") is not None
    at = Setting(lang, lambda *_: False, draw=svg if draws else words_of)
    headline = tag("p", words(document.headline, lang), class_="headline")
    body = tag("div", headline + blocks_html(result, document, at), class_="report")
    return tag("style", asset("report.css").replace(":root", ".report") + FRAME) + body


def svg(figure: Figure, lang: str) -> str:
    """A picture as SVG."""
    spec = worded(figure.spec, lang) | {"width": WIDTH, "config": css_config()}
    return str(converter().vegalite_to_svg(json.dumps(spec), vl_version=VERSION))


def words_of(figure: Figure, lang: str) -> str:
    """What is seen in it, in words."""
    return tag("p", words(figure.words, lang), class_="failed")
