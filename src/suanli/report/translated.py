"""A document in another language: every title, header, label, remark and sentence that has a translation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from suanli.report.about import TITLE as REQUEST
from suanli.report.chart import Chart
from suanli.report.document import Block, Document, Facts, Lines, Prose, Table
from suanli.report.words import translate

NAMES = ("convention", "口径")  # columns whose cells are names of options: `full`, `hardware`


def translated(document: Document, lang: str) -> Document:
    """The document in `lang`; what has no translation stays."""
    if lang == "en":
        return document
    blocks = tuple(_block(each, lang) for each in document.blocks)
    return Document(translate(document.headline, lang), blocks)


def _block(block: Block, lang: str) -> Block:
    title = translate(block.title, lang)
    if isinstance(block, Facts):
        typed = block.title == REQUEST  # what was typed is shown as it was typed
        return replace(block, title=title, rows=tuple(
            (translate(label, lang), value if typed else translate(value, lang), translate(remark, lang))
            for label, value, remark in block.rows
        ))  # fmt: skip
    if isinstance(block, Table):
        rows = tuple(_row(block.columns, row, lang) for row in block.rows)
        return replace(block, title=title, columns=_all(block.columns, lang), rows=rows)
    if isinstance(block, Lines):
        return replace(block, title=title, lines=_all(block.lines, lang))
    if isinstance(block, Prose):
        return replace(block, title=title, paragraphs=_all(block.paragraphs, lang))
    if isinstance(block, Chart):
        curves = tuple(replace(each, name=translate(each.name, lang)) for each in block.curves)
        return replace(
            block, title=title, curves=curves, legend=translate(block.legend, lang),
            x_label=translate(block.x_label, lang), y_label=translate(block.y_label, lang),
        )  # fmt: skip
    return replace(block, title=title)


def _row(columns: tuple[str, ...], row: tuple[str, ...], lang: str) -> tuple[str, ...]:
    """Cells in the language; names that are typed into options stay."""
    return tuple(cell if name in NAMES else translate(cell, lang) for name, cell in zip(columns, row, strict=True))


def _all(texts: Iterable[str], lang: str) -> tuple[str, ...]:
    return tuple(translate(each, lang) for each in texts)
