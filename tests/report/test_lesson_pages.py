"""Each kind of block of a lesson as it is shown: by hand, character by character."""

from __future__ import annotations

import pytest

from suanli.nouns.lesson import Box, Boxes, Grid, Lesson, Plot, Series, Shades, Words
from suanli.nouns.result import Result
from suanli.report.chart import Chart
from suanli.report.document import Document, Picture, Prose, Table
from suanli.report.files import as_csv, as_markdown
from suanli.report.lesson_pages import learn_document
from suanli.report.text import document_text


def result(*blocks) -> Result:
    found = Lesson(topic="t", lang="zh", title="课", blocks=blocks, values={})
    return Result(kind="learn", inputs={}, result=found, notes=("a note",))


def shown(*blocks) -> Document:
    return learn_document(result(*blocks))


def test_text() -> None:
    block = shown(Words(title="题", paragraphs=("每个 " * 30, "end"), values={})).blocks[0]
    assert block == Prose("题", ("每个 " * 30, "end")) and block.rows
    lines = document_text(Document("h", (block,)), 80).splitlines()
    assert lines[2] == "题" and lines[-1] == "  end" and lines[-2] == ""


def test_a_table_prints_by_its_formats() -> None:
    grid = Grid(title="T", columns=("a", "b", "c"), formats=("text", "percent", ",.1f"),
                rows=(("x", 0.5, 1234.56), ("y", None, 0)))  # fmt: skip
    assert shown(grid).blocks[0] == Table(
        "T", ("a", "b", "c"), (("x", "50.00 %", "1,234.6"), ("y", "", "0.0")), right=(False, True, True)
    )


def test_chinese_in_a_table_is_two_cells_wide() -> None:
    grid = Grid(title="", columns=("名", "数"), formats=("text", ","), rows=(("算力", 1), ("ab", 20)))
    assert document_text(shown(grid), 80).splitlines()[2:5] == ["  名    数", "  算力   1", "  ab    20"]


def test_shades_by_hand() -> None:
    """Blank for nothing, then four darknesses, two characters a cell."""
    block = Shades(title="S", rows=("算", "b"), columns=("x", "y", "z"), values=((0, 0.1, 0.3), (0.6, 0.99, 1.0)))
    picture = shown(block).blocks[0]
    assert picture == Picture("S", ("算   ░░▒▒", " b ▓▓████"))


def test_boxes_by_hand() -> None:
    block = Boxes(
        title="B", per_row=2, between="→",
        boxes=(Box(name="x", lines=("1",)), Box(name="算", lines=("力", "22")), Box(name="z", lines=())),
    )  # fmt: skip
    assert shown(block).blocks[0].rows == (
        "┌x─┐ ┌算┐",
        "│1 │ │力│",
        "│  │→│22│",
        "└──┘ └──┘",
        "┌z─┐",
        "└──┘",
    )


@pytest.mark.parametrize("log_y", [True, False])
def test_a_plot(log_y: bool) -> None:
    series = (
        Series(name="l", points=((1.0, 1.0), (100.0, 100.0))),
        Series(name="m", points=((10.0, 10.0),), line=False),
        Series(name="k", points=((1.0, 50.0), (9.0, 2.0))),
    )
    chart = shown(
        Plot(title="P", series=series, x_name="x", y_name="y", x_format="g", y_format=".0f", log_y=log_y)
    ).blocks[0]
    assert isinstance(chart, Chart) and chart.log_y is log_y
    assert [(curve.mark, curve.line) for curve in chart.curves] == [("─", True), ("●", False), ("·", True)]
    assert chart.x_ticks == ((1, "1"), (10, "10"), (100, "100"))
    assert [label for _, label in chart.y_ticks] == (["1", "10", "100"] if log_y else ["20", "40", "60", "80", "100"])


def test_notes_close_the_page() -> None:
    assert shown().blocks[-2].lines == ("a note",)


def test_in_files() -> None:
    made = result(
        Words(title="T", paragraphs=("a | b", "c"), values={}),
        Grid(title="G", columns=("a",), formats=(",",), rows=((1000,),)),
        Boxes(title="", per_row=1, boxes=(Box(name="x", lines=()),)),
    )
    assert as_markdown(made).split("\n## This report")[0] == (
        "# 课\n\n## T\n\na | b\n\nc\n\n## G\n\n| a |\n| ---: |\n| 1,000 |\n\n"
        "```text\n┌x┐\n└─┘\n```\n\n## Notes\n\n- a note\n"
    )
    assert as_csv(made).splitlines()[:4] == ["quantity,value,unit", "topic,t,", "lang,zh,", "title,课,"]
    assert as_csv(made).splitlines()[5].startswith("blocks[].kind,blocks[].title,blocks[].paragraphs")
