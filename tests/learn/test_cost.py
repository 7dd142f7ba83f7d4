"""The price of a thousand tokens: which utilisation it hides, and what ten per cent more would do."""

from __future__ import annotations

import pytest

from suanli.learn import teach
from suanli.nouns.lesson import Grid, Lesson, Plot


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("cost", "en")


def usd(utilisation: float) -> float:
    """2·175e9 FLOPs a token, A100 at 312 TFLOP/s, an eighth of $19.22 an hour."""
    return 1000 * 2 * 175e9 / (312e12 * utilisation) / 3600 * 19.22 / 8


def test_it_holds_at_21_3_to_21_4_percent(taught: Lesson) -> None:
    assert taught.values["usd_per_thousand"] == pytest.approx(usd(0.213)) == pytest.approx(0.003515, abs=5e-7)
    assert taught.values["usd_at_214"] == pytest.approx(usd(0.214)) == pytest.approx(0.003498, abs=5e-7)
    assert 0.213 < taught.values["utilisation"] < 0.214
    assert usd(taught.values["utilisation"]) == pytest.approx(0.0035)
    said = " ".join(taught.blocks[0].paragraphs)
    assert all(text in said for text in ("$0.0035", "21.3 %", "21.4 %", "0.003515", "0.003498"))


def test_the_ends_of_what_rounds_to_it(taught: Lesson) -> None:
    values = taught.blocks[0].values
    assert usd(values["low"]) == pytest.approx(0.00355) and usd(values["high"]) == pytest.approx(0.00345)


def test_ten_points_and_a_tenth(taught: Lesson) -> None:
    assert taught.values["by_points"] == pytest.approx(21.3 / 31.3 - 1) == pytest.approx(-0.3195, abs=5e-5)
    assert taught.values["by_ratio"] == pytest.approx(1 / 1.1 - 1) == pytest.approx(-0.0909, abs=5e-5)
    said = " ".join(taught.blocks[-2].paragraphs)
    assert "-31.95 %" in said and "-9.09 %" in said and "31.3 %" in said and "23.4 %" in said


def test_the_table_goes_as_one_over_the_utilisation(taught: Lesson) -> None:
    rows = next(block for block in taught.blocks if isinstance(block, Grid)).rows
    for utilisation, cost, million, margin in rows:
        assert cost == pytest.approx(usd(utilisation)) and million == pytest.approx(1000 * cost)
        assert margin == pytest.approx(1 - cost / 0.02)
    at = {round(row[0], 3): row[3] for row in rows}
    assert at[0.213] == pytest.approx(0.824, abs=5e-4)  # the article: about 80 %


def test_the_curve_is_the_table(taught: Lesson) -> None:
    plot = next(block for block in taught.blocks if isinstance(block, Plot))
    rows = next(block for block in taught.blocks if isinstance(block, Grid)).rows
    assert plot.series[0].points == tuple(row[:2] for row in rows)
