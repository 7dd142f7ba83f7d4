"""How a lesson is written: numbers filled in, sections checked, headings said once."""

from __future__ import annotations

import sys

import pytest

from suanli.learn.book import Book, filled, numbers_of
from suanli.nouns.lesson import Boxes, Grid, Plot, Series, Shades, Words

FILLED = [
    ("{x:.2f}", {"x": 1.234}, "1.23"),
    ("{x:,}", {"x": 1234567}, "1,234,567"),
    ("{x:percent}", {"x": 0.4162}, "41.62 %"),
    ("{x:flops} at {y:bytes}", {"x": 2e12, "y": 2**30}, "2.000 TFLOPs at 1.000 GiB"),
    ("{x} {x:g}", {"x": 0.5}, "0.5 0.5"),
    ("{name}", {"name": "gpt2"}, "gpt2"),
    ("no number", {}, "no number"),
]


@pytest.mark.parametrize(("text", "values", "wanted"), FILLED)
def test_filled(text: str, values: dict, wanted: str) -> None:
    assert filled(text, values) == wanted


def test_a_number_without_value_is_our_mistake() -> None:
    with pytest.raises(KeyError):
        filled("{x}", {})


def test_numbers_of() -> None:
    assert numbers_of("{a:,} of {b} and {a:,}") == {("a", ","), ("b", "")}
    assert numbers_of("none") == frozenset()


WORDS = {
    "lesson": {"title": {"en": "L", "zh": "课"}},
    "one": {"title": {"en": "T", "zh": "题"}, "text": {"en": "a {x:,}", "zh": "甲 {x:,}"},
            "columns": {"en": ["c", "d"], "zh": ["丙", "丁"]}},
    "two": {"columns": {"en": ["c"], "zh": ["丙"]}},
    "name": {"text": {"en": "n {k}", "zh": "名 {k}"}},
}  # fmt: skip


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Book:
    module = sys.modules[Book.__module__]
    monkeypatch.setattr(module, "lesson_file", lambda name: {} if name == "shared" else WORDS)
    return Book("flops", "zh")


def test_a_heading_is_said_once(book: Book) -> None:
    book.say("one", x=1000)
    book.table("one", ("text", ","), [("a", 1)])
    words, table = book.blocks
    assert isinstance(words, Words) and isinstance(table, Grid)
    assert (words.title, table.title) == ("题", "")
    assert words.paragraphs == ("甲 1,000",) and words.values == {"x": 1000}
    assert table.columns == ("丙", "丁")


def test_a_table_alone_has_its_heading(book: Book) -> None:
    book.table("one", ("text", ","), [("a", 1)])
    assert book.blocks[0].title == "题"


@pytest.mark.parametrize("values", [{}, {"x": 1, "y": 2}, {"y": 1}])
def test_numbers_too_many_or_too_few_are_our_mistake(book: Book, values: dict) -> None:
    with pytest.raises(AssertionError, match=r"flops\.one"):
        book.say("one", **values)


@pytest.mark.parametrize(
    ("formats", "rows"), [(("text",), [("a",)]), (("text", ","), [("a",)]), (("text", ","), [(1, 2, 3)])]
)
def test_columns_that_do_not_fit_are_our_mistake(book: Book, formats: tuple, rows: list) -> None:
    with pytest.raises(AssertionError, match=r"flops\.one"):
        book.table("one", formats, rows)


def test_pictures_words_and_results(book: Book) -> None:
    book.plot("one", ("g", "g"), [Series(name="s", points=((1.0, 2.0),))], log_y=False)
    book.shades("two", ["r"], ["c"], [[0.5]])
    book.boxes("two", [("b", ["x", "y"])], per_row=3, between="→")
    book.keep(a=1)
    book.keep(b=None)
    found = book.lesson()
    plot, shades, boxes = found.blocks
    assert isinstance(plot, Plot) and (plot.x_name, plot.y_name, plot.log_y) == ("丙", "丁", False)
    assert isinstance(shades, Shades) and shades.values == ((0.5,),)
    assert isinstance(boxes, Boxes) and boxes.boxes[0].lines == ("x", "y") and boxes.between == "→"
    assert found.values == {"a": 1, "b": None} and found.title == "课" and found.lang == "zh"
    assert book.word("name", k="v") == "名 v"
