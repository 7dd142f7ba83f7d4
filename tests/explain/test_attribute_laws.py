"""Any table of rows, however broken: attribution never crashes, and its laws hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.explain.attribute import attribute
from suanli.explain.roofline import roofline
from suanli.explain.share import share
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
H = "c10::BFloat16"
DETAILS = (
    OpDetail(dims=((64, 32), (32, 8)), types=(H, H), concrete=("", "")),
    OpDetail(dims=((8, 3, 9, 9), (4, 3, 3, 3)), types=("float", "float")),
    OpDetail(dims=((8, 4, 7, 7),), types=("float",)),
    OpDetail(dims=((1, 2, 64, 16),) * 3, types=(H,) * 3, concrete=("",) * 4 + ("True", "True")),
    OpDetail(kernel={"grid": (4, 1, 1), "block": (128, 1, 1)}),
    OpDetail(flops=7.0, hlo={"text": ""}, bytes_accessed=float("nan")),
    OpDetail(dims=((2, 2), ()), types=()),
)
OPS = ["aten::mm", "aten::linear", "aten::conv2d", "aten::cudnn_convolution", "aten::add", "aten::cat", "MmBackward0"]
OPS += ["aten::scaled_dot_product_attention", "autograd::engine::evaluate_function: X", "triton_tem_fused_mm_0"]
CALLS = ["cudaLaunchKernel", "cudaGraphLaunch", "cudaStreamBeginCapture", "cudaStreamEndCapture"]
KERNELS = ["gemm", "splitKreduce_kernel", "vectorized_elementwise_kernel", "ncclKernel"]
TIMES = {"start_ns": st.integers(0, 60), "length": st.integers(0, 40)}
PLACE = st.integers(-1, len(DETAILS) - 1)
NUMBER = st.integers(-1, 3)
SPAN = st.fixed_dictionaries(
    TIMES
    | {"name": st.sampled_from(OPS + CALLS), "detail": PLACE, "thread": st.integers(0, 1), "sequence": NUMBER}
    | {"forward_thread": st.sampled_from([-1, 1])}
)
WORK = st.fixed_dictionaries(
    TIMES
    | {"name": st.sampled_from(KERNELS), "detail": PLACE, "kind": st.sampled_from(["kernel", "kernel", "copy"])}
    | {"launch": st.integers(-1, 11), "op": st.integers(-1, 11), "bytes": st.integers(-1, 99)}
    | {"graph": NUMBER, "graph_node": NUMBER, "correlation": NUMBER}
)


def rows(made: list[dict[str, Any]], spans: int) -> list[dict[str, Any]]:
    """Lengths become ends, and places beyond the table none."""
    for row in made:
        row["end_ns"] = row["start_ns"] + row.pop("length")
        for column in ("launch", "op"):
            if row.get(column, -1) >= spans:
                row[column] = -1
        row.setdefault("kind", "op" if row["name"] in OPS else "runtime")
    return made


@given(st.lists(WORK, max_size=12), st.lists(SPAN, max_size=12), st.lists(st.sampled_from(range(5)), min_size=12))
@settings(max_examples=100)
def test_laws(make: Make, work: list[dict[str, Any]], host: list[dict[str, Any]], classes: list[int]) -> None:
    trace = make(rows(work, len(host)), rows(host, len(host)), details=DETAILS)
    given_class = np.array(classes[: len(work)], dtype=np.uint8)
    found = attribute(trace, given_class)
    changed = found.work_class != given_class
    assert (given_class[changed] == WorkClass.COMPUTE).all()
    assert (found.work_class[changed] == WorkClass.MATMUL).all()
    for values, known in ((found.flops, found.flops_known), (found.bytes, found.bytes_known)):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values[~known] == 0).all()
    assert (found.work_class[found.flops_known] == WorkClass.MATMUL).all()
    assert ((found.formula >= 0) == found.flops_known).all()
    assert not (found.recompute & found.backward).any()
    lost = (found.work_class == WorkClass.MATMUL) & ~found.flops_known
    seconds = (trace.work.end_ns - trace.work.start_ns)[lost].sum() * 1e-9
    assert sum(found.reasons.values()) == pytest.approx(seconds)
    assert bool(found.reasons) == bool(lost.any())
    assert share(trace, found).message
    assert sum(group.count for group in roofline(trace, found)) == len(work)


@given(st.lists(WORK, max_size=8), st.lists(SPAN, max_size=8), st.integers(0, 10**15))
@settings(max_examples=100)
def test_a_shift_of_time_changes_nothing(
    make: Make, work: list[dict[str, Any]], host: list[dict[str, Any]], shift: int
) -> None:
    work, host = rows(work, len(host)), rows(host, len(host))
    found = [
        attribute(
            make(*([{**row, "start_ns": row["start_ns"] + by, "end_ns": row["end_ns"] + by} for row in table]
                   for table in (work, host)), details=DETAILS),
            np.zeros(len(work), dtype=np.uint8),
        )
        for by in (0, shift)
    ]  # fmt: skip
    assert found[0].flops.tolist() == found[1].flops.tolist()
    assert found[0].reasons == found[1].reasons
