"""Fitting: numbers that made the data are found, what data do not say stays as believed, odd rows are not followed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suanli.catalog.curves import find_curves
from suanli.catalog.fabrics import node_fabric
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Profile, Traits, spreads
from suanli.plan.calibrate import Data, fit, half_width, join_features, spreads_after
from suanli.plan.predict import step_times
from suanli.plan.step_time import Job, features
from suanli.readers.model import read_model

ARCH, FABRIC = read_model("llama-3.1-8b"), node_fabric("hgx-h100")
LAYOUTS = [
    Layout(dp=dp, tp=tp, pp=pp, micro_batch=micro, zero=1, recompute=again)
    for dp in (2, 8) for tp in (1, 8) for pp in (1, 4) for micro in (1, 2) for again in ("none", "full")
]  # fmt: skip
JOB = Job(arch=ARCH, seq=4096, dtype="bf16", curves=find_curves("h100-sxm"), fabric=FABRIC, traits=Traits())
FOUND = features(JOB, Grid.of(LAYOUTS), 64.0)


def data(profile: Profile, factors: Any = 1.0, labels: Any = None) -> Data:
    made = step_times(FOUND, profile) * factors
    return Data(FOUND, made, labels or (("",),) * len(made), np.ones(len(made)))


def test_numbers_that_made_the_times_are_found() -> None:
    truth = replace(Profile(), matmul=1.2, tensor_exposed=0.5, memory=1.5)
    fitted = fit(data(truth), Profile(), ()).numbers
    assert fitted.matmul == pytest.approx(1.2, rel=0.02)
    assert fitted.tensor_exposed == pytest.approx(0.5, abs=0.1)  # believed: 0.9
    assert step_times(FOUND, fitted) == pytest.approx(step_times(FOUND, truth), rel=0.01)


def test_what_the_rows_do_not_say_stays_as_believed() -> None:
    fitted = fit(data(replace(Profile(), matmul=1.3)), Profile(), ()).numbers
    untouched = ("experts", "expert_exposed", "context_exposed", "gather", "imbalance")
    assert {name: getattr(fitted, name) for name in untouched} == {name: getattr(Profile(), name) for name in untouched}


def test_nothing_to_explain_moves_nothing() -> None:
    assert fit(data(Profile()), Profile(), ()).factors == pytest.approx(
        dict.fromkeys(fit(data(Profile()), Profile(), ()).factors, 1.0), abs=1e-3
    )


def test_an_odd_row_is_not_followed() -> None:
    odd = np.ones(len(LAYOUTS))
    odd[3] = 3.0
    fitted = fit(data(Profile(), odd), Profile(), ())
    off = np.abs(np.log(fitted.predict(data(Profile())) / step_times(FOUND, Profile())))
    assert np.delete(off, 3).mean() < 0.02


def test_few_rows_move_little() -> None:
    made = data(Profile(), 1.3)
    one, every = (fit(made.take(rows), Profile(), ()).numbers for rows in (slice(0, 1), slice(None)))
    assert 1 < one.matmul / Profile().matmul < every.matmul / Profile().matmul


def test_labels_shift_what_they_may() -> None:
    half = len(LAYOUTS) // 2
    labels = tuple(("fast" if place < half else "slow",) for place in range(len(LAYOUTS)))
    factors = np.where(np.arange(len(LAYOUTS)) < half, 0.95, 1.05)
    fitted = fit(data(Profile(), factors, labels), Profile(), ({"matmul attention": 0.1},))
    assert fitted.labels["fast"]["matmul"] == fitted.labels["fast"]["attention"] < 1 < fitted.labels["slow"]["matmul"]
    unseen = replace(data(Profile()), labels=(("never seen",),) * len(LAYOUTS))
    assert fitted.predict(unseen) == pytest.approx(step_times(FOUND, fitted.numbers))


def test_weights_count() -> None:
    half = np.arange(len(LAYOUTS)) % 2 == 0
    made = data(Profile(), np.where(half, 0.9, 1.1))
    slow = fit(replace(made, weights=np.where(half, 0.01, 1.0)), Profile(), ()).predict(made)
    fast = fit(replace(made, weights=np.where(half, 1.0, 0.01)), Profile(), ()).predict(made)
    assert (slow > fast).all()


def test_rows_taken_and_joined() -> None:
    parts = [FOUND.take(np.array(rows)) for rows in ([0, 1], list(range(2, len(LAYOUTS))))]
    assert step_times(join_features(parts), Profile()) == pytest.approx(step_times(FOUND, Profile()))


# errors: the size that four fifths stay below, one more being counted that is not yet seen
WIDTHS = [
    ([0.1, -0.2, 0.3, 0.05], 0.3),  # ⌈0.8 · 5⌉ = 4th of 4
    ([0.01, -0.02, 0.03, -0.04, 0.05, 0.06, 0.07, 0.08, 0.09], 0.08),  # ⌈0.8 · 10⌉ = 8th of 9
    ([0.5], 0.5),
]


@pytest.mark.parametrize(("errors", "expected"), WIDTHS)
def test_half_widths(errors: list[float], expected: float) -> None:
    assert half_width(np.array(errors)) == expected


def test_spreads_shrink_where_runs_depend_on_a_number_and_stay_elsewhere() -> None:
    made = data(Profile())
    found = spreads_after(made, fit(made, Profile(), ()))
    assert set(found) == set(spreads())
    for name, (before, after) in found.items():
        assert before == spreads()[name]
        assert after <= before
    for name in ("experts", "expert_exposed", "context_exposed", "gather"):  # no run has experts, cp or ZeRO 3
        assert found[name][0] == found[name][1]
    assert found["matmul"][1] < 0.7 * found["matmul"][0]
    few = spreads_after(made.take(slice(0, 2)), fit(made.take(slice(0, 2)), Profile(), ()))
    assert found["matmul"][1] < few["matmul"][1] < few["matmul"][0]
