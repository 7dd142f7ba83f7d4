"""A result as an HTML fragment: for the page, and for the body of a report in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from suanli.nouns.counts import Count
from suanli.nouns.result import Result
from suanli.report.chart import Chart
from suanli.report.document import Block, Document, Facts, Picture, Table
from suanli.report.figures import Figure, figures_of
from suanli.report.html_blocks import Setting, is_empty, section, without_drawings, words
from suanli.report.html_tags import json_script, tag
from suanli.report.html_tree import module_tree
from suanli.report.pages import document_of
from suanli.report.theme import css_config
from suanli.report.whys import reason_of
from suanli.report.words import known_language
from suanli.units import units_as


def fragment(result: Result, *, lang: str = "en", units: str | None = None) -> str:
    """The report's headline, blocks and pictures as HTML without head, styles or scripts; every text escaped.

    `lang` is `en` or `zh`; what has no translation is marked as English. `units` are those of `suanli.units.units_as`.
    """
    known_language(lang)
    with units_as(units):
        document = document_of(result)
        at = Setting(lang, lambda *key: reason_of(result, *key) is not None)
        headline = tag("p", words(document.headline, lang), class_="headline")
        return tag("div", headline + blocks_html(result, document, at), class_="report")


def blocks_html(result: Result, document: Document, at: Setting) -> str:
    """What comes below the headline."""
    figures = figures_of(result)
    config = json_script(css_config(), class_="chart-config") if figures else ""
    return config + "\n".join(_parts(result, document, figures, at))


def _parts(result: Result, document: Document, figures: Iterable[Figure], at: Setting) -> Iterator[str]:
    """Blocks in their order. A picture takes the place of the block it draws; others come after the first figures."""
    kept = [place for place, block in enumerate(document.blocks) if not is_empty(block)]
    blocks = [document.blocks[place] for place in kept]
    placed, loose = _placed(blocks, figures, kept)
    told = next((place for place, block in enumerate(blocks) if isinstance(block, Facts | Table)), -1)
    if told < 0:
        yield from (drawing(each, at) for each in loose)
    for place, block in enumerate(blocks):
        drawn = "".join(drawing(each, at) for each in placed.get(place, ()))
        replaced = drawn and isinstance(block, Chart | Picture)
        shown = without_drawings(block) if drawn and isinstance(block, Table) else block
        yield section(shown, at, drawn) if replaced else section(shown, at, after=drawn)
        if place == told and loose:
            yield tag("div", "".join(drawing(each, at) for each in loose), class_="figures")
        if isinstance(result.result, Count) and block.title == f"By {result.result.by}":
            yield module_tree(result, at)


def _placed(
    blocks: list[Block], figures: Iterable[Figure], kept: list[int]
) -> tuple[dict[int, list[Figure]], list[Figure]]:
    """Figures by the place of the block they draw, and those that draw none: told by the figure, else by the title.
    `kept` are the blocks' places in the document.
    """
    placed: dict[int, list[Figure]] = {}
    loose = []
    for figure in figures:
        own = figure.block
        at = [
            place for place, block in enumerate(blocks)
            if (kept[place] == own if own is not None else _is_of(figure.title, block.title))
        ]  # fmt: skip
        if at:
            placed.setdefault(at[0], []).append(figure)
        else:
            loose.append(figure)
    return placed, loose


def _is_of(title: str, block: str) -> bool:
    """Whether a picture of that title draws a block: `Where the time went (…)`, `Why: …`."""
    head, colon, _ = title.partition(": ")
    return bool(block) and block.startswith(head + ": " if colon else title)


def drawing(figure: Figure, at: Setting) -> str:
    """A picture under its title."""
    caption = tag("figcaption", words(figure.title, at.lang))
    return tag("figure", caption + at.draw(figure, at.lang), class_="chart", data_name=figure.name)
