"""Bars that tile a width from right to left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suanli.report.waterfall import bars


def test_a_bar_begins_where_the_one_before_ended() -> None:
    assert bars([0.5, 0.25, 0.25], 8) == ["    ████", "  ██", "██"]


def test_a_trifle_is_seen_and_nothing_is_not() -> None:
    assert bars([0.001, 0.0, 0.999], 8) == [" " * 7 + "▏", "", "████████"]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any), st.integers(1, 60))
def test_the_bars_tile_the_width(parts: list[int], width: int) -> None:
    drawn = bars([part / sum(parts) for part in parts], width)
    assert sum(bar.count("█") for bar in drawn) == width
    assert all(len(bar) <= width for bar in drawn)
    assert all(bool(bar) == bool(part) for bar, part in zip(drawn, parts, strict=True))
