"""Parts that reports share: how figures, shares and differences are written."""

from __future__ import annotations

import pytest

from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, off_by, share
from suanli.report.document import Lines, Table


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (None, ""),
        (0.0, "+0.00 % off the count"),
        (-0.0267, "-2.67 % off the count"),
        (0.5, "+50.00 % off the count"),
        (1.23456, "+123.46 % off the count"),
    ],
)
def test_off_by(fraction: float | None, text: str) -> None:
    assert off_by(fraction) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1234567, "", "1,234,567"), (1234567, "FLOPs", "1,234,567 FLOPs"), (0, "B", "0 B"), (-5, "", "-5")],
)
def test_exact(value: int, unit: str, text: str) -> None:
    assert exact(value, unit) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(1, 3, "33.3 %"), (0, 5, "0.0 %"), (5, 5, "100.0 %"), (1, 0, ""), (0, 0, ""), (1, 2000, "0.1 %")],
)
def test_share(part: float, whole: float, text: str) -> None:
    assert share(part, whole) == text


def test_how_every_report_ends() -> None:
    found = closing(Result("count", {}, None, notes=("a", "b"), sources=("c",)))
    assert found == (Lines("Notes", ("a", "b")), Lines("Sources", ("c",)))


def test_what_is_not_given() -> None:
    assert NOT_GIVEN == "n/a"


@pytest.mark.parametrize(("right", "columns"), [((), [False, True, True]), ((True, False, True), [True, False, True])])
def test_columns_of_numbers(right: tuple[bool, ...], columns: list[bool]) -> None:
    """As told; else every one but the first, which names the row."""
    table = Table("t", ("a", "b", "c"), (), right)
    assert [table.aligned_right(index) for index in range(3)] == columns
