"""A document in the terminal, by rich: aligned, coloured where the terminal has colours."""

from __future__ import annotations

import re

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from suanli.report.cells import cells, wrapped
from suanli.report.chart import Chart, drawn
from suanli.report.document import Block, Document, Facts, Lines, Picture, Prose, Table

FIRST_COLUMN_WHOLE = 52  # names up to this long are not broken over lines
NARROWEST_WORDS = 16  # columns of words are folded down to this
GAP, INDENT = 2, 2
READABLE = 78  # longer lines of prose are hard to follow
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # what a terminal would obey: colours, titles, cursor


def print_document(document: Document, console: Console) -> None:
    """Print headline and blocks."""
    console.print(Text(visible(document.headline), style="bold"))
    for block in document.blocks:
        if _empty(block):
            continue
        console.print()
        if block.title:
            console.print(Text(visible(block.title), style="bold cyan"))
        console.print(Padding(_body(block, console.width - INDENT), (0, 0, 0, INDENT)))


def visible(text: str) -> str:
    """The text with its control characters written out: names in files of others may hold any, like `\\x1b[2J`."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def _cell(text: str) -> str:
    return escape(visible(text))


def _empty(block: Block) -> bool:
    return not (block.lines if isinstance(block, Lines) else block.rows)


def _body(block: Block, width: int) -> RichTable | Text:
    if isinstance(block, Chart):
        return Text("\n").join(Text.assemble(*line) for line in drawn(block, width))
    if isinstance(block, Lines):
        return Text(visible("\n".join(block.lines)))
    if isinstance(block, Prose):
        return Text("\n\n".join("\n".join(wrapped(visible(each), min(width, READABLE))) for each in block.paragraphs))
    if isinstance(block, Picture):
        return Text(visible("\n".join(block.rows)), no_wrap=True)
    if isinstance(block, Facts):
        return _facts(block)
    return _table(block) if least_width(block) <= width else _records(block)


def _facts(block: Facts) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right" if block.right else "left", no_wrap=block.right, overflow="fold")
    grid.add_column(style="dim", overflow="fold")
    for label, value, remark in block.rows:
        grid.add_row(_cell(label), _cell(value), _cell(remark))
    return grid


def _kept_whole(block: Table, index: int) -> bool:
    """Whether a column is never broken over lines: numbers, and names that are short."""
    longest = max((cells(row[index]) for row in block.rows), default=0)
    return block.aligned_right(index) or (index == 0 and longest <= FIRST_COLUMN_WHOLE)


def least_width(block: Table) -> int:
    """Characters a table needs so that no number is cut."""
    widths = []
    for index, name in enumerate(block.columns):
        longest = max((cells(row[index]) for row in block.rows), default=0)
        whole = _kept_whole(block, index)
        widths.append(max(longest, cells(name)) if whole else min(longest, NARROWEST_WORDS))
    return sum(widths) + GAP * len(widths)


def _table(block: Table) -> RichTable:
    table = RichTable(box=None, padding=(0, GAP, 0, 0), header_style="dim", show_edge=False)
    for index, name in enumerate(block.columns):
        justify: JustifyMethod = "right" if block.aligned_right(index) else "left"
        table.add_column(_cell(name), justify=justify, overflow="fold", no_wrap=_kept_whole(block, index))
    for row in block.rows:
        table.add_row(*(_cell(cell) for cell in row))
    return table


def _records(block: Table) -> RichTable:
    """Each row as its own lines, name and value: for terminals too narrow for the table."""
    grid = RichTable.grid(padding=(0, GAP))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in block.rows:
        for name, cell in zip(block.columns, row, strict=True):
            if cell:
                grid.add_row(_cell(name), _cell(cell))
        grid.add_row("", "")
    return grid


def document_text(document: Document, width: int = 100) -> str:
    """The document as plain text of a given width, wider where a table needs it: a file has no edge."""
    tables = [least_width(block) + INDENT for block in document.blocks if isinstance(block, Table)]
    console = Console(width=max([width, *tables]), no_color=True, highlight=False, force_terminal=False, record=False)
    with console.capture() as captured:
        print_document(document, console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
