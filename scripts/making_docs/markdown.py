"""Markdown that every page is made of."""

from __future__ import annotations

MADE = "<!-- made by scripts/make_docs.py from the code: change it there, then `make docs` -->\n\n"

Rows = list[tuple[str, ...]]


def table(columns: tuple[str, ...], rows: Rows, right: str = "") -> str:
    """A table; `right` has an `r` for every column set flush right."""
    rule = tuple("---:" if right[index : index + 1] == "r" else "---" for index in range(len(columns)))
    lines = [columns, rule, *(tuple(cell(each) for each in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(text: object) -> str:
    """Text that may stand in a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as code; nothing stays nothing."""
    return f"`{text}`" if text else ""
