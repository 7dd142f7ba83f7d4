"""The section `serving` of `verify`: check values alone, with points, and that each of its claims can fail."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest

from suanli.catalog.claims import serving_values
from suanli.catalog.serving_presets import serving_errors
from suanli.nouns.claim import FAILS, HOLDS, PREDICTED, Verification
from suanli.nouns.serving_error import ServingError
from suanli.plan.serving import verdict
from suanli.plan.serving.values import our_value
from suanli.plan.serving.verdict import RECORDED, VALUES, verify_serving
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points

read = functools.cache(read_named_preset)


def test_check_values_hold_without_data() -> None:
    found = verify_serving(None, read)
    assert len(found.claims) == len(serving_values()) > 25
    assert {claim.status for claim in found.claims} == {HOLDS}
    assert found.summary[0].source == VALUES and found.summary[0].within == found.summary[0].n


@pytest.mark.parametrize("value", serving_values(), ids=lambda each: each.id)
def test_a_check_value_can_fail(value) -> None:  # type: ignore[no-untyped-def]
    """Ours is no copy of what is expected: twice the figure is refused."""
    wrong = replace(value, expected=2 * value.expected + 1)
    assert verdict._value(wrong, read).status == FAILS
    assert our_value(value.what, value.inputs, read) == pytest.approx(value.expected, abs=value.tolerance * 1.001)


def test_without_points_the_recorded_errors_are_told() -> None:
    rows = verify_serving(None, read).summary[1:]
    assert [row.mape_held_out for row in rows] == [each.mean_held_out for each in serving_errors()]
    assert all(row.why_not_fitted == RECORDED and not row.folds for row in rows)


def error(**changes: object) -> ServingError:
    base = ServingError(
        quantity="q", source="s", n=3, mean_fitted=0.1, mean_held_out=0.2, median_fitted=0.05, median_held_out=0.1,
        bias_held_out=0.0, judged="mean", bar_fitted=0.15, bar_held_out=0.25,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "met"),
    [
        ({}, True),
        ({"mean_held_out": 0.26}, False),
        ({"mean_fitted": 0.16}, False),
        ({"judged": "median"}, True),
        ({"judged": "median", "median_held_out": 0.3}, False),
        ({"judged": ""}, None),
        ({"bar_fitted": None, "mean_fitted": 9.0}, True),
    ],
)
def test_bars_are_of_the_error_that_is_judged(changes: dict[str, object], met: bool | None) -> None:
    assert error(**changes).met is met


@pytest.fixture(scope="module")
def measured(shared: Path) -> Verification:
    return verify_serving(read_serving_points(shared / "data" / "measured_serving.csv"), read)


@pytest.mark.shared
def test_every_bar_is_a_claim_and_is_met(measured: Verification) -> None:
    bars = {claim.id.removeprefix("serving-bar-"): claim for claim in measured.claims if "-bar-" in claim.id}
    assert {name: claim.expected for name, claim in bars.items()} == {
        "time-per-output-token-held-out": 0.15, "output-throughput-fitted": 0.15, "output-throughput-held-out": 0.20,
        "GPU-energy-per-output-token-fitted": 0.20, "GPU-energy-per-output-token-held-out": 0.25,
    }  # fmt: skip
    assert {claim.status for claim in bars.values()} == {HOLDS}


@pytest.mark.shared
def test_what_was_recorded_is_what_comes_out(measured: Verification) -> None:
    for row, recorded in zip(measured.summary[1:], serving_errors(), strict=True):
        assert row.source == f"{recorded.quantity}: {recorded.source}"
        assert row.n == recorded.n
        assert row.mape_held_out == pytest.approx(recorded.mean_held_out, abs=1e-4)
        assert row.median_fitted == pytest.approx(recorded.median_fitted, abs=1e-4)


@pytest.mark.shared
def test_points_are_told_apart_from_each_other_and_by_fold(measured: Verification) -> None:
    rows = [claim for claim in measured.claims if claim.status == PREDICTED]
    assert len(rows) == 401 == measured.summary[1].n
    assert len({claim.id for claim in rows}) == len(rows)
    mean = sum(abs(claim.error or 0) / (claim.expected or 1) for claim in rows) / len(rows)
    assert mean == pytest.approx(measured.summary[1].mape_held_out)
    assert measured.summary[1].worst in {name.rpartition(" (")[0] for name in measured.summary[1].folds}
    assert sum(measured.summary[1].not_recomputed.values()) == 671 - 401 - 148


@pytest.mark.shared
def test_a_fold_left_out_does_not_move_its_own_prediction(shared: Path) -> None:
    """Times of one fold a hundred times longer: what is predicted for it stays as it was."""
    points = read_serving_points(shared / "data" / "measured_serving.csv")
    fold = "llama-3.1-8b on h200-sxm"
    moved = [
        replace(point, tpot_s=100 * point.tpot_s)
        if point.fold == fold and point.tpot_s and point.kind == "served" else point
        for point in points
    ]  # fmt: skip

    def predicted(rows: list) -> dict[str, float]:  # type: ignore[type-arg]
        return {claim.id: claim.got or 0.0 for claim in verify_serving(rows, read).claims
                if claim.status == PREDICTED and claim.source.startswith(fold)}  # fmt: skip

    before, after = predicted(list(points)), predicted(moved)
    assert before and before == pytest.approx(after)
