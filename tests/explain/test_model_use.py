"""A model's FLOPs beside a trace's: MFU by either, with the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from suanli.explain.model_use import ModelAsked, model_use
from suanli.explain.whole import explain_trace
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import Explained, ModelUse
from suanli.nouns.trace import Trace, TraceDevice

Make = Callable[..., Trace]
Attribute = Callable[..., Attribution]
H100 = 989.4e12
ASKED = ModelAsked(
    model="m", phase="train", seq=8, batch=1, gpus=1, convention="causal", step_flops=40e-9 * H100
)  # 40 ns at the peak


def traced(make: Make, attribute: Attribute, flops: list[float | None], again: tuple[int, ...] = ()) -> Explained:
    """Two steps of 100 ns, one product of 80 ns in each. FLOPs in ns at the peak."""
    host: list[dict[str, Any]] = []
    for k in range(2):
        host.append({"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 100 * k, "end_ns": 100 * k + 95})
        host.append({"name": "cudaLaunchKernel", "start_ns": 100 * k + 1, "end_ns": 100 * k + 2})
    work = [{"name": "gemm", "start_ns": 100 * k, "end_ns": 100 * k + (80 if not k else 100), "launch": 2 * k + 1}
            for k in range(2)]  # fmt: skip
    done = [None if each is None else each * 1e-9 * H100 for each in flops]
    dtypes = [None if each is None else "bf16" for each in flops]
    return explain_trace(
        make(work, host), lambda *_: attribute([int(WorkClass.MATMUL)] * 2, done, dtypes, again)
    )  # fmt: skip


def test_both_ways_of_mfu(make: Make, attribute: Attribute) -> None:
    found: ModelUse = model_use(traced(make, attribute, [40.0, 30.0]), ASKED)
    assert (found.steps, found.basis, found.dtype, found.peak_flop_per_s) == (2, "mean step", "bf16", H100)
    assert found.step_s == pytest.approx(100e-9)
    assert found.mfu == pytest.approx(0.4)  # 40 ns of 100
    assert found.mfu_attributed == pytest.approx(0.35)  # (40 + 30) of 200
    assert found.hfu_attributed == pytest.approx(0.35)
    assert found.check.ratio == pytest.approx(70 / 80)
    assert found.check.agrees is False


def test_recomputation_is_hfu_alone(make: Make, attribute: Attribute) -> None:
    found = model_use(traced(make, attribute, [40.0, 30.0], (1,)), ASKED)
    assert found.mfu_attributed == pytest.approx(0.2)
    assert found.hfu_attributed == pytest.approx(0.35)
    assert found.check.recompute_flops == pytest.approx(30e-9 * H100)


def test_devices_that_share_a_step(make: Make, attribute: Attribute) -> None:
    found = model_use(traced(make, attribute, [40.0, 40.0]), replace(ASKED, gpus=4, step_flops=160e-9 * H100))
    assert found.mfu == pytest.approx(0.4)
    assert found.check.agrees is True
    assert " for 2 steps on one of 4 devices" in found.check.message


def test_without_flops_there_is_a_reason_and_with_a_dtype_an_mfu(make: Make, attribute: Attribute) -> None:
    whole = traced(make, attribute, [None, None])
    found = model_use(whole, ASKED)
    assert (found.mfu, found.mfu_attributed) == (None, None)
    assert found.reasons["mfu"] == "the dtype of the products is not known: none has FLOPs; --dtype names it"
    found = model_use(whole, ASKED, "bf16")
    assert found.mfu == pytest.approx(0.4)
    assert found.reasons == {
        "mfu_attributed": "no kernel has FLOPs",
        "hfu_attributed": "no kernel has FLOPs",
    }


def test_above_the_peak_is_not_said(make: Make, attribute: Attribute) -> None:
    found = model_use(traced(make, attribute, [40.0, 40.0]), replace(ASKED, step_flops=140e-9 * H100))
    assert found.mfu is None
    assert found.reasons["mfu"] == "above the peak: check --seq, --batch, --gpus and the device"


def test_a_window_without_steps_is_one(make: Make, attribute: Attribute) -> None:
    trace = make([{"name": "gemm", "start_ns": 0, "end_ns": 100}])
    whole = explain_trace(trace, lambda *_: attribute([0], [50e-9 * H100], ["bf16"]))
    found = model_use(whole, ASKED)
    assert (found.steps, found.basis) == (1, "whole window, taken as one step")
    assert (found.mfu, found.mfu_attributed) == (pytest.approx(0.4), pytest.approx(0.5))


def test_a_device_nobody_knows(make: Make, attribute: Attribute) -> None:
    trace = make([{"name": "gemm", "start_ns": 0, "end_ns": 100}], devices=(TraceDevice(id=0, name="Abacus 9"),))
    whole = explain_trace(trace, lambda *_: attribute([0], [50e-9 * H100], ["bf16"]))
    assert model_use(whole, ASKED).reasons["mfu"] == "the device has no sourced peak of bf16; name it with --gpu"
    assert model_use(explain_trace(make()), ASKED).reasons["mfu"] == "no device work"
