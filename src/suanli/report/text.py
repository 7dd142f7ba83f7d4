"""A document in the terminal, by rich: aligned, coloured where the terminal has colours."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from suanli.report.document import Block, Document, Facts, Lines, Table

FIRST_COLUMN_WHOLE = 52  # names up to this long are not broken over lines


def print_document(document: Document, console: Console) -> None:
    """Print headline and blocks."""
    console.print(Text(document.headline, style="bold"))
    for block in document.blocks:
        if _empty(block):
            continue
        console.print()
        if block.title:
            console.print(Text(block.title, style="bold cyan"))
        console.print(Padding(_body(block), (0, 0, 0, 2)))


def _empty(block: Block) -> bool:
    return not (block.lines if isinstance(block, Lines) else block.rows)


def _body(block: Block) -> RichTable | Text:
    if isinstance(block, Lines):
        return Text("\n".join(block.lines))
    return _facts(block) if isinstance(block, Facts) else _table(block)


def _facts(block: Facts) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right" if block.right else "left", no_wrap=block.right, overflow="fold")
    grid.add_column(style="dim", overflow="fold")
    for label, value, remark in block.rows:
        grid.add_row(escape(label), escape(value), escape(remark))
    return grid


def _table(block: Table) -> RichTable:
    table = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for index, name in enumerate(block.columns):
        right = block.aligned_right(index)
        longest = max((len(row[index]) for row in block.rows), default=0)
        whole = right or (index == 0 and longest <= FIRST_COLUMN_WHOLE)
        table.add_column(escape(name), justify="right" if right else "left", overflow="fold", no_wrap=whole)
    for row in block.rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def document_text(document: Document, width: int = 100) -> str:
    """The document as plain text of a given width."""
    console = Console(width=width, no_color=True, highlight=False, force_terminal=False, record=False)
    with console.capture() as captured:
        print_document(document, console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
