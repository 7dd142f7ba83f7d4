"""A document in the terminal: what a file of others holds is shown, never obeyed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from suanli.report.document import Document, Facts, Lines, Picture, Prose, Table
from suanli.report.text import document_text, print_document, visible

EVIL = "\x1b[2J\x1b]0;title\x07 a\x9b31m\r"
TOLD = r"\x1b[2J\x1b]0;title\x07 a\x9b31m\r"
BLOCKS = [
    Facts("Facts" + EVIL, ((EVIL, EVIL, EVIL),)),
    Table("Table", ("name" + EVIL, "other"), ((EVIL, EVIL),)),
    Lines("Lines", (EVIL, "second")),
    Prose("Prose", (EVIL,)),
    Picture("Picture", (EVIL,)),
]


@pytest.mark.parametrize(
    ("text", "told"),
    [(EVIL, TOLD), ("two\nlines", "two\nlines"), ("算力 µs → é", "算力 µs → é"), ("\x7f\0", r"\x7f\x00")],
)
def test_control_characters_are_written_out(text: str, told: str) -> None:
    assert visible(text) == told


@pytest.mark.parametrize("width", [20, 200])
@pytest.mark.parametrize("block", BLOCKS, ids=[type(each).__name__ for each in BLOCKS])
def test_nothing_of_a_document_moves_the_terminal(block: object, width: int) -> None:
    document = Document("headline" + EVIL, (block,))  # type: ignore[arg-type]
    out = io.StringIO()
    print_document(document, Console(file=out, width=width, no_color=True))
    for text in (out.getvalue(), document_text(document)):
        assert not set(text) & set("\x1b\x07\x9b\r")
        assert r"\x1b[2J" in text.replace("\n", "")
