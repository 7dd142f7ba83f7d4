"""Charts in characters: where values come to lie, at 80 columns, with and without colours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suanli
from suanli.report import document_of
from suanli.report.chart import HEIGHT, NARROWEST, WIDEST, Chart, Curve, drawn, plain
from suanli.report.document import Document
from suanli.report.files import as_csv, as_markdown
from suanli.report.text import document_text, print_document


def chart(points=((1, 1.0), (10, 10.0), (100, 100.0)), **changes) -> Chart:
    return Chart(
        "t", (Curve("a", "●", "bold green", points),), ((1, "1"), (10, "ten"), (100, "100")),
        ((1.0, "1×"), (100.0, "100×")), "x", "y", **changes,
    )  # fmt: skip


def cells(lines: list[str]) -> dict[tuple[int, int], str]:
    """Marks by column from the axis and row from below."""
    rows = lines[1 : HEIGHT + 1]
    left = min(row.index("│") if "│" in row else row.index("┤") for row in rows)
    return {(at - left - 1, HEIGHT - 1 - row): mark for row, line in enumerate(rows)
            for at, mark in enumerate(line) if mark == "●"}  # fmt: skip


def test_equal_factors_are_equal_distances() -> None:
    """1, 10, 100 on both axes: the corners and the middle. 80 columns less six for labels and axis are 74."""
    lines = plain(chart(), 80)
    left = len("100×") + 2
    assert set(cells(lines)) == {(0, 0), (round((80 - left - 1) / 2), round((HEIGHT - 1) / 2)), (79 - left, HEIGHT - 1)}


def test_an_axis_may_be_linear() -> None:
    """10 of 100 lies a tenth up: row 1.3 of 13 and 100 at the top."""
    found = cells(plain(chart(log_y=False), 80))
    assert sorted(row for _, row in found) == [0, 1, 13]


def test_labels_stand_below_their_ticks() -> None:
    *_, axis, labels, legend = plain(chart(), 40)
    assert [axis[axis.index("└") + 1], axis[-1]] == ["┬", "┬"]
    assert labels.split() == ["1", "ten", "100"]
    assert abs(labels.index("ten") + 1 - axis.index("┬", axis.index("┬") + 1)) <= 1
    assert legend.strip() == "● a"


def test_labels_that_have_no_room_are_left_out_and_the_outer_ones_kept() -> None:
    ticks = tuple((each, f"{each:,} GPUs") for each in (1, 50, 60, 70, 100))
    chart_ = Chart("t", (Curve("a", "●", "", ((1, 1.0), (100, 2.0))),), ticks, ((1.0, "1"),), "x", "y")
    labels = plain(chart_, 40)[-2]
    assert labels.split("  ")[-1].strip() == "100 GPUs"
    assert "1 GPUs" in labels
    assert "70 GPUs" not in labels


def test_a_line_has_a_mark_in_every_column() -> None:
    curve = Curve("a", "●", "", ((1, 1.0), (100, 100.0)), line=True)
    found = cells(plain(Chart("t", (curve,), ((1, "1"),), ((1.0, "1"),), "x", "y"), 60))
    assert sorted(column for column, _ in found) == list(range(60 - len("1") - 2))


def test_a_range_is_an_upright_line_under_the_mark() -> None:
    with_range = drawn(chart(ranges=((10, 5.0, 20.0),)), 80)
    column = [index for index, cell in enumerate(with_range[HEIGHT // 2]) if cell[0] == "│"][-1]
    assert sum(line[column][0] == "│" for line in with_range[1 : HEIGHT + 1] if column < len(line)) >= 3


@given(
    values=st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9)), min_size=1, max_size=8),
    width=st.integers(1, 300), line=st.booleans(),
)  # fmt: skip
def test_any_values_fit(values, width, line) -> None:
    """No line is longer than it may be, nothing raises, and where points are marked each is seen or hidden by one."""
    points = tuple(sorted(values))
    ticks = tuple((x, f"{x:.3g}") for x, _ in points)
    made = Chart("t", (Curve("a", "●", "", points, line=line),), ticks, ((points[0][1], "y"),), "x", "y")
    lines = plain(made, width)
    most = max(min(width, WIDEST), NARROWEST + len("y") + 2)
    assert len(lines) == HEIGHT + 4
    assert all(len(each) <= most for each in lines[:-1])
    assert cells(lines) or (line and len(points) == 1)  # one point is no line


SCALE = {"points": "3072:23.66,6144:12.21,8192:9.23,12288:6.34", "metric": "time", "global_batch": 6144}
RUNS = {
    "scale_80": lambda: suanli.scale(**SCALE, project="16384,32768"),
    "goodput_80": lambda: suanli.goodput(
        gpus=512, mtbf="50000h", restart="10min", checkpoint_save="60s", interval="4h"
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_eighty_columns(name, golden) -> None:
    """The whole page as a terminal of 80 columns shows it, without colours; no line is longer."""
    text = document_text(document_of(RUNS[name]()), width=80)
    charts = [line for line in text.splitlines() if any(mark in line for mark in "┤│└┬")]
    assert len(charts) >= HEIGHT
    assert max(map(len, charts)) <= 80
    golden(f"{name}.txt", text)


def test_colours_change_no_character() -> None:
    """With colours the same characters stand in the same places, and the marks have their styles."""
    from rich.console import Console

    document = document_of(RUNS["scale_80"]())
    console = Console(width=80, force_terminal=True, color_system="standard", highlight=False)
    with console.capture() as captured:
        print_document(document, console)
    coloured = captured.get()
    assert "\x1b[1;32m●" in coloured and "\x1b[36m─" in coloured and "\x1b[35m○" in coloured
    bare = "\n".join(line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", coloured).splitlines())
    assert bare.strip() == document_text(document, width=80).strip()


def test_files_have_it_where_text_has_a_place() -> None:
    result = RUNS["scale_80"]()
    assert "```text\nspeed-up\n" in as_markdown(result)
    assert "└" not in as_csv(result)


def test_nothing_to_draw_is_nothing() -> None:
    """A checkpoint that costs nothing has no best interval, two sizes no law: the chart of sizes stays."""
    free = document_text(document_of(suanli.goodput(mtti="3h", restart="10min", checkpoint_save="0s")))
    assert "Wall time lost over" not in free
    two = document_text(document_of(suanli.scale(points="8:1,16:0.6", metric="time")))
    assert "· linear  ● measured" in two
    empty = Chart("t", (Curve("a", "●", "", ()),), (), ((0.0, ""),), "", "")
    assert document_text(Document("head", (empty,))) == "head\n"
    assert as_markdown(suanli.goodput(mtti="3h", restart="10min", checkpoint_save="0s")).count("```") == 0
