"""Parts of figures: names made safe and told apart, rows bounded, waterfalls that tile, axes, legends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.report.figures import parts, scales


@pytest.mark.parametrize(("text", "shown"), [
    ("attention", "attention"),
    ("two\nlines\tand\x00 more", "two lines and more"),
    ("a" * 70, "a" * 59 + "…"),
    ("左\u202e右", "左 右"),
    (None, "None"),
])  # fmt: skip
def test_a_name_is_one_line(text: object, shown: str) -> None:
    assert parts.name_of(text) == shown


def test_of_a_path_the_end_is_kept() -> None:
    assert parts.tail_of("lm_head") == "lm_head"
    assert parts.tail_of("model.language_model.layers.0-47.self_attn.q_proj") == "…el.layers.0-47.self_attn.q_proj"


def test_equal_names_are_numbered() -> None:
    assert parts.unique(["Kernel", "gemm", "Kernel", "Kernel"]) == ["Kernel", "gemm", "Kernel (2)", "Kernel (3)"]


def test_rows_beyond_the_most_are_added_up() -> None:
    rows = [{"name": f"{place}", "value": place} for place in range(30)]
    kept = parts.top(rows, "value", label="name", most=4)
    assert [row["name"] for row in kept] == ["27", "28", "29", "27 others"]
    assert sum(row["value"] for row in kept) == sum(range(30))
    assert parts.top(rows[:4], "value", label="name", most=4) == rows[:4]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12))
def test_a_waterfall_tiles_the_whole(values: list[float]) -> None:
    whole = math.fsum(values)
    rows = parts.running([("x", value) for value in values], down_from=whole)
    assert all(row["begin"] <= row["end"] for row in rows)
    assert rows[0]["end"] == whole
    assert rows[-1]["begin"] == pytest.approx(0, abs=1e-9 * whole)
    up = parts.running([("x", value) for value in values])
    assert up[0]["begin"] == 0 and up[-1]["end"] == pytest.approx(whole)


def test_rounding_does_not_widen_an_axis() -> None:
    """1 − 0.8 − 0.1 − 0.1 is a little below 0 in floating point."""
    rows = parts.running([("a", 0.8), ("b", 0.1), ("c", 0.1)], down_from=1.0)
    assert 1.0 - 0.8 - 0.1 - 0.1 < 0 and rows[-1]["begin"] == 0


@pytest.mark.parametrize(("values", "ticks"), [
    ([3.0, 400.0], [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
    ([1e-8, 1.0], [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]),
    ([], []),
])  # fmt: skip
def test_round_ticks(values: list[float], ticks: list[float]) -> None:
    assert parts.round_ticks(values) == pytest.approx(ticks)


def test_ticks_are_in_the_unit_of_the_axis() -> None:
    axis = parts.log_axis([2e12, 9e12], scales.Unit("TFLOP/s", 1e12), format=",")
    assert axis == {"values": [1, 2, 5, 10, 20, 50], "format": ","}


def test_whole_numbers_too_long_for_others_become_floats() -> None:
    spec = parts.spec_of([{"flops": 10**24, "small": 7, "flag": True}], 10)
    assert spec["data"]["values"] == [{"flops": 1e24, "small": 7, "flag": True}]
    assert isinstance(spec["data"]["values"][0]["flops"], float)


def test_heights_are_rows_times_steps() -> None:
    rows = [{"name": name, "value": 1, "text": ""} for name in "abc"]
    spec = parts.bars(rows, label="name", value="value", unit=scales.Unit("", 1), title="t", text="text", hover=())
    assert spec["height"] == 3 * parts.BAR_STEP
    beside = parts.spec_of(rows, parts.Step(10), encoding={"y": {"sort": ["a", "b"]}, "yOffset": {"sort": ["x", "y"]}})
    assert beside["height"] == 40


@pytest.mark.parametrize(("names", "expr"), [
    (["a", "b"], "containerSize()[0] < 480 ? 2 : 2"),
    (["useful model FLOPs", "exposed communication", "idle"], "containerSize()[0] < 480 ? 1 : 3"),
    (["x" * 80, "y" * 80], "containerSize()[0] < 480 ? 1 : 1"),
])  # fmt: skip
def test_columns_of_a_legend(names: list[str], expr: str) -> None:
    assert parts.columns_of(names) == {"expr": expr}


def test_colours_by_name_or_one_after_another() -> None:
    told = parts.coloured("which", {"this": "#111111", "that": "#222222"})
    assert told["scale"] == {"domain": ["this", "that"], "range": ["#111111", "#222222"]}
    many = parts.coloured("which", [f"{place}" for place in range(12)], legend=False)
    assert many["scale"]["range"][0] == many["scale"]["range"][9] and many["legend"] is None


def test_a_bar_below_zero_has_its_figure_beside_the_axis() -> None:
    rows = [{"name": "less", "value": -3.0, "text": "-3"}]
    spec = parts.bars(rows, label="name", value="value", unit=scales.Unit("", 1), title="t", text="text", hover=())
    assert {"calculate": "max(datum.shown, 0)", "as": "edge"} in spec["transform"]
    assert spec["layer"][1]["encoding"]["x"]["field"] == "edge"


def test_a_narrow_range_has_ticks_of_its_own() -> None:
    within = [tick for tick in parts.round_ticks([2039, 3938]) if 2039 <= tick <= 3938]
    assert within == [2500, 3000]
