"""Blocks of a document as HTML: one function a kind of block. Every text is escaped; no style, no script stands in it.

A number that can be asked about is a button that names its block, label and column in English, whatever the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from suanli.report.about import TITLE as REQUEST
from suanli.report.chart import plain
from suanli.report.document import Block, Facts, Lines, Picture, Prose, Table
from suanli.report.figures import Figure
from suanli.report.html_tags import esc, json_script, tag
from suanli.report.theme import worded
from suanli.report.translated import NAMES
from suanli.report.words import said, translate

CHART_WIDTH = 80
_DIGIT = re.compile(r"\d")
_DRAWN = re.compile(r"[\s█▉▊▋▌▍▎▏▐░▒▓·]*[█▉▊▋▌▍▎▏▐░▒▓][\s█▉▊▋▌▍▎▏▐░▒▓·]*")
_CODE = re.compile(r"`([^`<>]+)`")
_TOTALS = ("total", "mean", "sum")

Asked = Callable[[str, str, str], bool]  # block, label, column: whether something can be said of the number


def for_script(figure: Figure, lang: str) -> str:
    """A picture as data that report.js draws, with the words that say what is seen."""
    place = tag("div", "", class_="draw", role="img", aria_label=translate(figure.words, lang))
    return place + json_script(worded(figure.spec, lang))


@dataclass(frozen=True)
class Setting:
    """The language, which numbers can be asked about, and how a picture is put there."""

    lang: str
    asked: Asked
    draw: Callable[[Figure, str], str] = for_script


def is_empty(block: Block) -> bool:
    """Whether there is nothing to show."""
    return not (block.lines if isinstance(block, Lines) else block.rows)


def section(block: Block, at: Setting, inner: str = "", after: str = "") -> str:
    """A block under its heading, `inner` in place of its own body; `after` follows it."""
    body = inner or _body(block, at)
    heading = tag("h2", words(block.title, at.lang)) if block.title else ""
    kind = type(block).__name__.lower()
    return tag("section", heading + body + after, class_=f"block {kind}", data_block=block.title)


def words(text: str, lang: str) -> str:
    """A text in the language; what has no translation is marked as English."""
    found, known = said(text, lang)
    if known or not re.search(r"[A-Za-z]{2}", found):
        return esc(found)
    return tag("span", esc(found), lang="en")


def _body(block: Block, at: Setting) -> str:
    if isinstance(block, Facts):
        return _facts(block, at)
    if isinstance(block, Table):
        return _table(block, at)
    if isinstance(block, Lines) and all(line.startswith("-") for line in block.lines):
        return tag("pre", esc("\n".join(block.lines)), class_="code")  # flags of a command
    if isinstance(block, Lines):
        return tag("ul", "".join(tag("li", _prose(line, at.lang)) for line in block.lines))
    if isinstance(block, Prose):
        return "".join(tag("p", _prose(each, at.lang)) for each in block.paragraphs)
    rows = block.rows if isinstance(block, Picture) else plain(block, CHART_WIDTH)
    name = translate(block.title, at.lang) or translate("picture", at.lang)
    return tag("pre", esc("\n".join(rows)), class_="drawn", role="img", aria_label=name)


def _prose(text: str, lang: str) -> str:
    """A sentence; names between `backquotes` as code."""
    return _CODE.sub(r"<code>\1</code>", words(text, lang))


# --- facts --------------------------------------------------------------------------------------------------------


def _facts(block: Facts, at: Setting) -> str:
    rows, label, typed = [], "", block.title == REQUEST  # what was typed is shown as it was typed
    for name, value, remark in block.rows:
        label = name or label
        head = tag("th", words(name, at.lang), scope="row") if name else "<th></th>"
        shown = esc(value) if typed else _value(value, (block.title, label, ""), at)
        cell = tag("td", shown, class_="n" if block.right else None)
        rows.append(tag("tr", head + cell + tag("td", words(remark, at.lang), class_="remark")))
    return _framed(block.title, tag("tbody", "".join(rows)), at, "facts")


def _value(text: str, key: tuple[str, str, str], at: Setting) -> str:
    """A cell's text, a button where the number can be asked about."""
    shown = words(text, at.lang)
    if not _DIGIT.search(text) or not at.asked(*key):
        return shown
    block, label, column = key
    return tag("button", shown, type="button", class_="why", data_block=block, data_label=label, data_column=column)


# --- tables -------------------------------------------------------------------------------------------------------


def _table(block: Table, at: Setting) -> str:
    numbers = [block.aligned_right(index) for index in range(len(block.columns))]
    heads = "".join(_head(name, right, at) for name, right in zip(block.columns, numbers, strict=True))
    rows = "".join(_row(block, row, numbers, at) for row in block.rows)
    return _framed(block.title, tag("thead", tag("tr", heads)) + tag("tbody", rows), at, "table")


def _head(name: str, right: bool, at: Setting) -> str:
    kind = "n" if right else None
    if not name.strip():
        return tag("td", "", class_=kind)
    button = tag("button", words(name.strip(), at.lang), type="button", class_="sort")
    return tag("th", button, scope="col", class_=kind)


def _row(block: Table, row: tuple[str, ...], numbers: list[bool], at: Setting) -> str:
    first, *rest = row
    head = esc(first) if block.columns[0] in NAMES else words(first.strip(), at.lang)
    cells = [tag("th", head, scope="row", class_="n" if numbers[0] else None)]
    for name, text, right in zip(block.columns[1:], rest, numbers[1:], strict=True):
        cells.append(_cell(text, (block.title, first, name), right, at))
    return tag("tr", "".join(cells), class_="total" if first in _TOTALS else None)


def _cell(text: str, key: tuple[str, str, str], right: bool, at: Setting) -> str:
    if _DRAWN.fullmatch(text):
        return tag("td", esc(text.rstrip()), class_="bars", aria_hidden="true")
    inner = _value(text, key, at) if right else words(text, at.lang)
    return tag("td", inner, class_="n" if right else None)


def without_drawings(block: Table) -> Table:
    """The table without columns drawn in characters: a picture stands beside it."""
    kept = [
        place for place in range(len(block.columns))
        if not block.rows or not all(_DRAWN.fullmatch(row[place]) or not row[place].strip() for row in block.rows)
    ]  # fmt: skip
    right = tuple(block.aligned_right(place) for place in kept)
    rows = tuple(tuple(row[place] for place in kept) for row in block.rows)
    return Table(block.title, tuple(block.columns[place] for place in kept), rows, right)


def _framed(title: str, inner: str, at: Setting, kind: str) -> str:
    """A table; one of columns scrolls by itself where the window is narrow, reachable by keyboard."""
    name = translate(title, at.lang)
    caption = tag("caption", esc(name), class_="unseen") if name else ""
    table = tag("table", caption + inner, class_=kind)
    if kind == "facts":
        return table
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=name or words("table", at.lang))
