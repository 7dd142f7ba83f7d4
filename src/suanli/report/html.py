"""A result as HTML: a fragment for the page, and one self-contained file for a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from suanli.nouns.result import Result
from suanli.report.chart import Chart
from suanli.report.document import Block, Document, Facts, Picture, Table
from suanli.report.figures import Figure, figures_of
from suanli.report.html_blocks import Setting, is_empty, section, words
from suanli.report.html_tags import json_script, tag
from suanli.report.pages import document_of
from suanli.report.whys import reason_of
from suanli.report.words import translate


def fragment(result: Result, *, lang: str = "en", headline: bool = True) -> str:
    """The report's blocks and pictures as HTML without head, styles or scripts; every text escaped.

    `lang` is `en` or `zh`; what has no translation is marked as English.
    """
    document = document_of(result)
    at = Setting(lang, lambda *key: reason_of(result, *key) is not None)
    first = tag("p", words(document.headline, lang), class_="headline") if headline else ""
    return tag("div", first + "\n".join(_parts(document, figures_of(result), at)), class_="report")


def _parts(document: Document, figures: Iterable[Figure], at: Setting) -> Iterator[str]:
    """Blocks in their order. A picture takes the place of the block it draws; others come after the first figures."""
    blocks = [block for block in document.blocks if not is_empty(block)]
    placed, loose = _placed(blocks, figures)
    told = next((place for place, block in enumerate(blocks) if isinstance(block, Facts | Table)), -1)
    if told < 0:
        yield from (drawing(each, at) for each in loose)
    for place, block in enumerate(blocks):
        drawn = "".join(drawing(each, at) for each in placed.get(place, ()))
        replaced = drawn and isinstance(block, Chart | Picture)
        yield section(block, at, drawn) if replaced else section(block, at, after=drawn)
        if place == told and loose:
            yield tag("div", "".join(drawing(each, at) for each in loose), class_="figures")


def _placed(blocks: list[Block], figures: Iterable[Figure]) -> tuple[dict[int, list[Figure]], list[Figure]]:
    """Figures by the place of the block they draw, and those that draw none: told by the title."""
    placed: dict[int, list[Figure]] = {}
    loose = []
    for figure in figures:
        at = [place for place, block in enumerate(blocks) if block.title and block.title.startswith(figure.title)]
        if at:
            placed.setdefault(at[0], []).append(figure)
        else:
            loose.append(figure)
    return placed, loose


def drawing(figure: Figure, at: Setting) -> str:
    """A picture as data that report.js draws, with the words that say what is seen."""
    name = translate(figure.words, at.lang)
    place = tag("div", "", class_="draw", role="img", aria_label=name)
    caption = tag("figcaption", words(figure.title, at.lang))
    return tag("figure", caption + place + json_script(figure.spec), class_="chart", data_name=figure.name)
