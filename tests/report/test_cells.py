"""Widths of text in a terminal, and where a line may be broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from suanli.report.cells import cells, padded, pieces, wrapped

TEXT = st.text(alphabet="ab c，。（）「」12.%=×算力每个数字 ", max_size=80)

WIDTHS = [("", 0), ("abc", 3), ("算力", 4), ("a算b", 4), ("，", 2), ("é", 1), ("e\u0301", 1), ("│─█", 3), ("½²", 2)]


@pytest.mark.parametrize(("text", "width"), WIDTHS)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x9FFF, categories=["L", "Nd", "Po", "Sm"])))
def test_cells_are_rich_s_where_scripts_are_ours(text: str) -> None:
    ours = "".join(
        each for each in text if each.isascii() or "\u4e00" <= each <= "\u9fff" or each in "，。、；：！？（）"
    )
    assert cells(ours) == cell_len(ours)


@pytest.mark.parametrize(
    ("text", "width", "right", "wanted"),
    [
        ("a", 3, False, "a  "),
        ("a", 3, True, "  a"),
        ("算", 3, False, "算 "),
        ("算", 3, True, " 算"),
        ("算力", 3, False, "算力"),
    ],
)
def test_padded(text: str, width: int, right: bool, wanted: str) -> None:
    assert padded(text, width, right=right) == wanted


# text, width → lines
LINES = [
    ("one two three", 7, ["one two", "three"]),
    ("one two three", 80, ["one two three"]),
    ("extraordinarily long", 5, ["extraordinarily", "long"]),  # a word is never cut
    ("每个数字都有", 6, ["每个数", "字都有"]),
    ("每个数字，都有", 8, ["每个数", "字，都有"]),  # a comma never begins a line
    ("每个（数字）都", 8, ["每个（数", "字）都"]),  # a bracket is never parted from what it holds
    ("is 41.62 % of it", 10, ["is 41.62 %", "of it"]),
    ("is 41.62 % of it", 9, ["is", "41.62 %", "of it"]),  # percent stays with its number
    ("a = b", 3, ["a =", "b"]),
    ("is (y − t)·y", 8, ["is", "(y − t)·y"]),  # a difference stays whole
    ("token 有 3 个", 8, ["token 有", "3 个"]),
    ("", 10, []),
    ("  ", 10, []),
]


@pytest.mark.parametrize(("text", "width", "wanted"), LINES)
def test_wrapped(text: str, width: int, wanted: list[str]) -> None:
    assert wrapped(text, width) == wanted


@given(TEXT)
def test_pieces_put_together_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@given(TEXT, st.integers(1, 40))
def test_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(line == line.strip() and line for line in lines)


@given(TEXT, st.integers(1, 40))
def test_lines_fit_but_for_one_piece_that_cannot(text: str, width: int) -> None:
    for line in wrapped(text, width):
        assert cells(line) <= width or len(wrapped(line, 1)) == 1


@given(st.text(alphabet="ab12，。（）「」算力每个", max_size=80), st.integers(4, 40))
def test_no_line_begins_with_what_closes_or_ends_with_what_opens(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert not any(line[0] in "，。）」" for line in lines[1:])
    assert not any(line[-1] in "（「" for line in lines[:-1])
