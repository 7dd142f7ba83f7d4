"""The profiles that ship are what the command finds again; rows of one's own move them, not their interval."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.catalog.profiles import find_profile
from suanli.plan.predictions import observations
from suanli.plan.shipped import STACKS, fit_shipped

pytestmark = pytest.mark.xdist_group("published steps")  # judged once, being slow

QUICK = ("nemo", "deepspeed-zero3", "megascale", "llama3", "megatron-2021")  # of few rows
DIGITS = 1e-4  # five digits ship, of which the last is rounded


@pytest.mark.parametrize("name", QUICK)
def test_what_ships_is_what_is_found(name: str) -> None:
    found = fit_shipped([name]).stacks[0]
    assert found.largest_difference_fraction < DIGITS
    assert found.half_width_fitted == pytest.approx(found.half_width_shipped, abs=1e-4)
    assert (found.rows, found.own_rows) == (find_profile(name).rows, 0)
    assert set(found.sources) == set(find_profile(name).sources)


def test_the_stacks_are_those_with_runs_of_their_own() -> None:
    assert set(QUICK) < set(STACKS) and all(find_profile(name).rows for name in STACKS)


def test_a_number_that_does_not_ship_as_found_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from suanli.plan import shipped

    real = find_profile("llama3")
    off = replace(real, numbers=replace(real.numbers, matmul=1.01 * real.numbers.matmul))
    monkeypatch.setattr(shipped, "find_profile", lambda _: off)
    assert fit_shipped(["llama3"]).largest_difference_fraction == pytest.approx(1 - 1 / 1.01, abs=DIGITS)


def test_rows_of_ones_own_move_the_numbers_and_not_the_interval() -> None:
    mine = [run for run in observations() if run.stack == "llama3"]
    slow = [replace(run, step_s=1.2 * run.step_s, id=f"{run.id} {copy}") for run in mine for copy in range(4)]
    plain, moved = fit_shipped(["llama3"]).stacks[0], fit_shipped(["llama3"], slow).stacks[0]
    assert (moved.rows, moved.own_rows) == (plain.rows + 8, 8)
    assert moved.profile.numbers.tensor_exposed > 1.05 * plain.profile.numbers.tensor_exposed
    assert moved.half_width_fitted == plain.half_width_fitted
    other = [replace(run, stack="nemo") for run in slow]
    assert fit_shipped(["llama3"], other).stacks[0].own_rows == 0


def test_what_no_run_tells_is_kept() -> None:
    found = fit_shipped(["llama3"]).stacks[0]
    assert set(found.kept) == {
        "experts", "launch_s", "span_s", "context_exposed", "expert_exposed", "data_exposed", "gather", "imbalance",
    }  # fmt: skip
    assert not {row.name for row in found.numbers} & set(found.kept)


def test_labels_are_compared_too() -> None:
    rows = {row.name: row for row in fit_shipped(["nemo"]).stacks[0].numbers}
    assert rows["h100-sxm fp8: matmul"].believed == 1
    assert rows["h100-sxm fp8: matmul"].shipped == find_profile("nemo").labels["h100-sxm fp8"]["matmul"]
