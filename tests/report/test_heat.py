"""The heat map: shades by the median of a column, never wider or longer than it may be, no straggler averaged away."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suanli.report.heat import MOST_ROWS, SHADES, WIDEST, heat_cells, heat_rows


def test_by_hand() -> None:
    # medians of the columns: 1 and 2 (the lower of two is taken); rank 1 is half as long again in both
    header, rows = heat_rows(["0", "1", "2"], ["s1", "s2"], [[1.0, 2.0], [1.5, 3.0], [1.2, None]])
    assert header == ("rank", "s1 … s2", "most")
    # medians 1.2 and 2: −17 % and 0; 25 % and 50 %; 0 and nothing
    assert rows == (("0", "░░", "+0.00 %"), ("1", "▒█", "+50.00 %"), ("2", "░·", "+0.00 %"))


def test_thousands_of_ranks_share_rows_and_the_slow_one_stays() -> None:
    values = [[1.0, 1.0] for _ in range(4096)]
    values[1234][1] = 2.0
    _, rows = heat_rows([str(k) for k in range(4096)], ["a", "b"], values)
    assert len(rows) == MOST_ROWS
    assert [row for row in rows if "█" in row[1]] == [("1152–1279", "░█", "+100.00 %")]


def test_many_steps_share_cells() -> None:
    values = [[1.0] * 500, [1.0] * 500]
    values[0][321] = 3.0
    _, rows = heat_rows(["0", "1"], [f"s{k}" for k in range(500)], values)
    assert [len(row[1]) for row in rows] == [WIDEST, WIDEST]
    assert rows[0][1].count("█") == 1 and rows[1][1] == SHADES[0] * WIDEST


def test_nothing() -> None:
    assert heat_rows([], [], []) == (("rank", "", "most"), ())
    assert heat_rows(["0"], ["a"], [[None]])[1] == (("0", "·", "·"),)
    assert heat_rows(["0"], ["a"], [[0.0]])[1] == (("0", "·", "·"),)  # nothing stands against 0


@given(
    st.lists(
        st.lists(st.none() | st.floats(0, 1e9, allow_subnormal=False), min_size=7, max_size=7), min_size=1, max_size=70
    )
)
def test_rows_fit_eighty_columns(values: list[list[float | None]]) -> None:
    header, rows = heat_rows(
        [str(k + 10_000) for k in range(len(values))], [f"ProfilerStep#{k}" for k in range(7)], values
    )
    assert 1 <= len(rows) <= MOST_ROWS
    assert all(2 + len(row[0]) + 2 + len(row[1]) + 2 + len(row[2]) <= 80 for row in (header, *rows))


def test_cells_are_numbers_of_the_same_map() -> None:
    labels, columns = ["0", "1", "2"], ["a", "b"]
    values = [[1.0, 2.0], [1.0, None], [2.0, 2.0]]
    assert heat_cells(labels, columns, values, 10, 10) == [
        ("0", "a", 0.0), ("0", "b", 0.0), ("1", "a", 0.0), ("1", "b", None), ("2", "a", 1.0), ("2", "b", 0.0),
    ]  # fmt: skip
    assert heat_cells(labels, columns, values, 1, 1) == [("0–2", "a–b", 1.0)]
