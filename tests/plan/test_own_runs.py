"""A user's own runs: what three of them tell, what they do not, and what is said of runs that cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import find_profile
from suanli.errors import InputError
from suanli.nouns.calibrated import Calibrated
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Profile, StackProfile, Traits
from suanli.plan.observed import Observation
from suanli.plan.own_runs import MOST_FOLDS, calibrate
from suanli.plan.predict import job_of, step_times
from suanli.plan.step_time import features
from suanli.readers.model import read_model

ARCH, FABRIC = read_model("llama-3.1-8b"), node_fabric("hgx-h100")
STACK = StackProfile(name="nemo", half_width=0.2)
LAYOUTS = [
    Layout(dp=dp, tp=tp, micro_batch=micro, zero=1, recompute=again)
    for dp in (8, 16) for tp in (2, 4) for micro in (1, 2) for again in ("none", "full")
]  # fmt: skip


def own(layout: Layout, factor: float, **more: Any) -> Observation:
    run = Observation(
        id="mine", source="mine", model="8B", family="8B", arch=ARCH, seq=4096, global_batch=64, layouts=(layout,),
        device="h100-sxm", dtype="bf16", stack="nemo", fabric=FABRIC, step_s=1.0,
    )  # fmt: skip
    seconds = step_times(features(job_of(run, Traits()), Grid.of([layout]), 64.0), Profile())[0]
    return replace(run, step_s=float(seconds) * factor, **more)


def names(found: Calibrated, *, told: bool) -> set[str]:
    return {row.name for row in found.numbers if row.told == told}


def test_three_runs_are_enough_to_narrow_the_interval() -> None:
    runs = [own(layout, 1.12) for layout in LAYOUTS[:3]]
    found = calibrate(runs, STACK, "mine")
    assert [row.error_before_fraction for row in found.runs] == pytest.approx([1 / 1.12 - 1] * 3)
    assert found.mean_error_before_fraction == pytest.approx(1 - 1 / 1.12)
    assert found.mean_error_held_out_fraction < 0.05
    assert found.half_width_after < found.half_width_before == 0.2
    assert found.narrower_fraction == pytest.approx(1 - found.half_width_after / 0.2)
    profile = found.profile
    assert (profile.name, profile.base, profile.shipped) == ("mine", "nemo", "nemo")
    assert profile.half_width == found.half_width_after and profile.routed_half_width == STACK.routed_half_width
    assert profile.rows == 3 and profile.devices == ("h100-sxm bf16",) and profile.labels == {}
    again = calibrate(runs, profile)
    assert again.mean_error_before_fraction < 0.03
    assert again.base == "mine" and again.profile.base == "nemo"


def test_the_interval_by_hand() -> None:
    """The errors seen, one unseen among them, and two rows of the interval from before: three rows all off alike."""
    found = calibrate([own(layout, 1.0) for layout in LAYOUTS[:3]], STACK)
    errors = [abs(np.log(row.held_out_s / row.step_s)) for row in found.runs]
    assert found.half_width_after == pytest.approx(((3 * max(errors) ** 2 + 2 * 0.2**2) / 5) ** 0.5)


def test_every_run_is_predicted_by_the_others_alone() -> None:
    """A run's own time does not enter its held-out prediction."""
    runs = [own(layout, 1.0) for layout in LAYOUTS[:4]]
    odd = [replace(runs[0], step_s=100 * runs[0].step_s), *runs[1:]]
    plain, strange = calibrate(runs, STACK), calibrate(odd, STACK)
    assert strange.runs[0].held_out_s == pytest.approx(plain.runs[0].held_out_s)
    assert strange.runs[1].held_out_s != pytest.approx(plain.runs[1].held_out_s)


def test_numbers_that_no_run_tells_are_named() -> None:
    found = calibrate([own(layout, 1.1) for layout in LAYOUTS[:4]], STACK)
    assert {"matmul", "memory", "tensor_exposed"} <= names(found, told=True)
    assert {"experts", "expert_exposed", "context_exposed", "gather", "send_exposed"} <= names(found, told=False)
    assert set(found.profile.untold) == names(found, told=False)
    assert found.extrapolates[0] == "other devices and dtypes than h100-sxm bf16"
    assert found.extrapolates[1].startswith("layouts and models with pp above 1, cp above 1, ZeRO 3, routed experts")
    assert found.extrapolates[2] == "more than 16 GPUs"  # dp 8 · tp 2
    assert found.extrapolates[3].startswith("as in nemo, told by no run: ")


def test_the_number_that_made_the_times_moves_most() -> None:
    """Times made with tensor parallelism fully exposed: that number rises, products stay."""
    slow, runs = replace(Profile(), tensor_exposed=1.8), []
    for layout in LAYOUTS:
        run = own(layout, 1.0)
        seconds = step_times(features(job_of(run, Traits()), Grid.of([layout]), 64.0), slow)[0]
        runs.append(replace(run, step_s=float(seconds)))
    after = {row.name: row.after / row.before for row in calibrate(runs, STACK).numbers}
    assert max(after, key=lambda name: after[name]) == "tensor_exposed"
    assert after["tensor_exposed"] > 1.7 and abs(after["matmul"] - 1) < 0.05


def test_more_runs_narrow_it_further() -> None:
    widths = [calibrate([own(each, 1.1) for each in LAYOUTS[:count]], STACK).half_width_after for count in (3, 6, 12)]
    assert widths == sorted(widths, reverse=True)


def test_many_runs_are_left_out_in_groups() -> None:
    runs = [own(LAYOUTS[place % len(LAYOUTS)], 1.1) for place in range(MOST_FOLDS + 5)]
    found = calibrate(runs, STACK)
    assert len(found.runs) == MOST_FOLDS + 5 and found.mean_error_held_out_fraction < 0.02


def test_models_with_routed_experts_have_the_wider_interval() -> None:
    mixture, stack = read_model("mixtral-8x7b"), replace(STACK, routed_half_width=0.3)
    runs = [own(Layout(dp=16, ep=8, micro_batch=micro, zero=1), 1.0, arch=mixture) for micro in (1, 2, 4)]
    runs = [replace(run, step_s=5.0) for run in runs]
    found = calibrate(runs, stack)
    assert found.half_width_before == 0.3
    assert found.profile.half_width == 0.2 and found.profile.routed_half_width == found.half_width_after
    assert found.profile.routed_rows == 3


# --- what is said of odd runs ------------------------------------------------------------------------------------


def test_runs_that_contradict_one_another_widen_it_and_are_named() -> None:
    found = calibrate([own(LAYOUTS[0], factor, id=f"{factor}") for factor in (0.6, 1.0, 1.7)], STACK)
    assert found.half_width_after > found.half_width_before and found.narrower_fraction < 0
    twins, *odd, grown = found.warnings
    assert twins.startswith("0.6 and 1.7 are alike in every column and take ")
    assert [line.split(":")[0] for line in odd] == ["0.6 contradicts the others", "1.7 contradicts the others"]
    assert grown.startswith(
        "the interval grew: the runs are less alike than those the stack was fitted to (22.1% above"
    )


def test_a_run_that_does_not_fit_is_named() -> None:
    large = [own(Layout(dp=8, micro_batch=micro), 1.0, id=f"mb{micro}") for micro in (1, 2, 4)]
    warnings = calibrate(large, STACK).warnings
    assert warnings[0].startswith("mb1 does not fit by this stack's memory: ")
    assert warnings[0].endswith(" of 74.51 GiB on the fullest rank; is its layout as written?")
    assert len(warnings) == 3


def test_an_open_micro_batch_is_the_fastest_that_fits() -> None:
    layouts = tuple(Layout(tp=4, dp=8, micro_batch=micro, zero=1) for micro in (1, 2, 8))
    run = replace(own(layouts[0], 1.0), layouts=layouts)
    found = calibrate([run, *(own(layout, 1.0) for layout in LAYOUTS[:3])], find_profile("nemo"))
    seconds = [row.before_s for row in found.runs]
    assert found.runs[0].layout in {layout.short for layout in layouts}
    assert seconds[0] <= min(float(step_times(features(job_of(run, find_profile("nemo").traits), Grid.of([layout]),
                                                       64.0), find_profile("nemo").at("h100-sxm bf16"))[0])
                             for layout in layouts[:2]) * (1 + 1e-9)  # fmt: skip


def test_every_fault_of_the_runs_at_once() -> None:
    runs = [own(LAYOUTS[0], 1.0), own(LAYOUTS[0], 1.0, dtype="fp8")]
    with pytest.raises(InputError) as problem:
        calibrate(runs, STACK)
    assert str(problem.value).splitlines() == [
        "too few step times to fit to and to judge by; got 2; expected 3 or more, best of several layouts.",
        "runs of several devices, dtypes or releases; got h100-sxm bf16, h100-sxm fp8; "
        "expected one of each: calibrate them one after another.",
    ]
