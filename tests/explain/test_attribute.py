"""Attribution of a few rows: who carries an operator's FLOPs, what becomes a product, what stays unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.attribute import attribute
from suanli.explain.ops.call import STATED
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
H = "c10::BFloat16"
MM = OpDetail(dims=((64, 32), (32, 8)), types=(H, H))
MM_FLOPS = 2 * 64 * 32 * 8


def op(name: str, start: int, end: int, detail: int = -1, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "op", "start_ns": start, "end_ns": end, "detail": detail, **more}


def call(start: int, **more: Any) -> dict[str, Any]:
    return {"name": "cudaLaunchKernel", "start_ns": start, "end_ns": start + 1, **more}


def kernel(name: str, start: int, length: int, launch: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "start_ns": start, "end_ns": start + length, "launch": launch, **more}


def run(trace: Trace, classes: list[int], **options: Any) -> Attribution:
    return attribute(trace, np.array(classes, dtype=np.uint8), **options)


def test_the_parts_of_a_product_share_its_flops_by_time(make: Make) -> None:
    host = [op("aten::mm", 0, 100, 0), call(10), call(20), call(30)]
    work = [kernel("gemm", 1000, 60, 1), kernel("splitKreduce_kernel", 1060, 20, 2), kernel("fill", 990, 10, 3)]
    trace = make(work, host, details=(MM,))  # by start: fill, gemm, reduce
    found = run(trace, [COMPUTE, MATMUL, COMPUTE])
    assert found.flops.tolist() == [0, MM_FLOPS * 60 / 80, MM_FLOPS * 20 / 80]
    assert found.flops_known.tolist() == [False, True, True]
    assert found.work_class.tolist() == [COMPUTE, MATMUL, MATMUL]  # the sum of the parts belongs to the product
    assert [found.formulas[at] if at >= 0 else None for at in found.formula] == [None, "linear_flops", "linear_flops"]
    assert [found.dtypes[at] if at >= 0 else None for at in found.dtype] == [None, "bf16", "bf16"]
    assert found.reasons == {}


def test_an_operator_counts_once_though_those_around_it_have_formulas_too(make: Make) -> None:
    linear = OpDetail(dims=((64, 32), (8, 32)), types=(H, H))
    host = [op("aten::linear", 0, 100, 1), op("aten::mm", 5, 50, 0), call(10), call(60)]
    work = [kernel("gemm", 1000, 60, 2), kernel("gemm_like_transpose", 1060, 20, 3)]
    found = run(make(work, host, details=(MM, linear)), [MATMUL, MATMUL])
    assert found.flops.tolist() == [MM_FLOPS, 0]
    assert list(found.reasons) == ["kernel of an operator whose product another operator inside it does"]
    assert found.reasons.popitem()[1] == pytest.approx(20e-9)


def test_a_kernel_climbs_to_the_first_operator_with_a_formula(make: Make) -> None:
    host = [op("aten::mm", 0, 100, 0), op("hidden::helper", 5, 50), call(10)]
    found = run(make([kernel("gemm", 1000, 60, 2)], host, details=(MM,)), [MATMUL])
    assert found.flops.tolist() == [MM_FLOPS]
    assert found.op.tolist() == [0]


@pytest.mark.parametrize(
    ("name", "expected"), [("gemv2T_kernel_val", MATMUL), ("vectorized_elementwise_kernel", COMPUTE), ("fill", COMPUTE)]
)
def test_the_only_kernel_of_a_product_is_the_product_unless_it_prepares_one(
    make: Make, name: str, expected: int
) -> None:
    host = [op("aten::mm", 0, 100, 0), call(10)]
    found = run(make([kernel(name, 1000, 60, 1)], host, details=(MM,)), [COMPUTE])
    assert found.work_class.tolist() == [expected]
    assert found.flops.tolist() == [MM_FLOPS if expected == MATMUL else 0]


def test_beside_a_product_other_kernels_stay_what_they_are(make: Make) -> None:
    host = [op("aten::mm", 0, 100, 0), call(10), call(20)]
    work = [kernel("gemm", 1000, 60, 1), kernel("strange", 1060, 20, 2)]
    assert run(make(work, host, details=(MM,)), [MATMUL, COMPUTE]).work_class.tolist() == [MATMUL, COMPUTE]


def test_copies_and_communication_are_never_products(make: Make) -> None:
    host = [op("aten::mm", 0, 100, 0), call(10), call(20)]
    work = [kernel("ncclKernel", 1000, 60, 1), kernel("Memcpy DtoD", 1060, 20, 2, kind="copy", bytes=512)]
    found = run(make(work, host, details=(MM,)), [COMM, COPY])
    assert not found.flops_known.any()
    assert (found.bytes.tolist(), found.bytes_known.tolist()) == ([0, 512], [False, True])


def test_parts_without_length_share_equally(make: Make) -> None:
    host = [op("aten::mm", 0, 100, 0), call(10), call(20)]
    work = [kernel("gemm", 1000, 0, 1), kernel("gemm", 1000, 0, 2)]
    assert run(make(work, host, details=(MM,)), [MATMUL, MATMUL]).flops.tolist() == [MM_FLOPS / 2, MM_FLOPS / 2]


def test_bytes_of_products_and_of_the_rest(make: Make) -> None:
    silu = OpDetail(dims=((4, 8),), types=(H,))
    host = [
        op("aten::mm", 0, 100, 0),
        call(10),
        op("aten::silu", 200, 300, 1),
        call(210),
        op("x::y", 400, 500),
        call(410),
    ]
    work = [kernel("gemm", 1000, 60, 1), kernel("silu", 1100, 60, 3), kernel("other", 1200, 60, 5)]
    found = run(make(work, host, details=(MM, silu)), [MATMUL, COMPUTE, COMPUTE])
    assert found.bytes.tolist() == [2 * (64 * 32 + 32 * 8 + 64 * 8), 2 * (32 + 32), 0]
    assert found.bytes_known.tolist() == [True, True, False]


def test_every_reason_has_its_seconds(make: Make) -> None:
    varlen = OpDetail(dims=((100, 8, 64),) * 3)
    host = [
        op("aten::mm", 0, 100, -1), call(10), op("CompiledFunction", 200, 300), call(210), call(400),
        op("FlashAttnVarlenFunc", 500, 600, 0), call(510), {"name": "cudaGraphLaunch", "start_ns": 700, "end_ns": 701},
    ]  # fmt: skip
    work = [kernel("gemm", 1000 + 100 * i, 10 * (i + 1), launch) for i, launch in enumerate((1, 3, 4, 6, 7, -1))]
    found = run(make(work, host, details=(varlen,)), [MATMUL] * 6)
    assert {why: round(s * 1e9) for why, s in found.reasons.items()} == {
        "not linked: launched before the window, or the launch was dropped": 60,
        "graph replay: one launch for all kernels, and no operator": 50,
        "attention over packed or paged sequences: their lengths are tensors, which a trace does not hold": 40,
        "launched outside any operator": 30,
        "operator without a formula: CompiledFunction": 20,
        "no shapes recorded": 10,
    }
    assert not found.flops_known.any()


def test_a_file_of_the_device_alone(make: Make) -> None:
    found = run(make([kernel("gemm_bf16", 0, 10, -1)]), [MATMUL])
    assert list(found.reasons) == ["no launches in the file: a capture of the device alone"]
    assert found.dtypes == ("bf16",)  # the kernel's name tells
    host = [call(0)]
    assert list(run(make([kernel("gemm", 5, 10, 0)], host), [MATMUL]).reasons) == ["no operators in the file"]


def test_what_the_profiler_counted(make: Make) -> None:
    stated = OpDetail(
        hlo={"text": "%f = bf16[8,8] fusion(bf16[8,4] %a, bf16[4,8] %b)"}, flops=512.0, bytes_accessed=99.0
    )
    dot = OpDetail(hlo={"text": "%d = f32[8,8]{1,0} dot(f32[8,4]{1,0} %a, f32[4,8]{1,0} %b), lhs_contracting_dims={1}"})
    bare = OpDetail(hlo={"op": "fusion.1"})
    work = [kernel("fusion", 100 * i, 10, -1, detail=i) for i in range(3)]
    found = run(make(work, [call(0)], details=(stated, dot, bare)), [MATMUL] * 3)
    assert found.flops.tolist() == [512, 2 * 8 * 8 * 4, 0]
    assert [found.formulas[at] if at >= 0 else None for at in found.formula] == [STATED, "linear_flops", None]
    assert [found.dtypes[at] if at >= 0 else None for at in found.dtype] == ["bf16", "fp32", None]
    assert found.bytes.tolist() == [99, 0, 0]
    assert list(found.reasons) == ["XLA instruction without FLOPs or shapes in the trace"]


def test_causal_attention_by_what_the_kernel_computes_or_by_every_pair(make: Make) -> None:
    shape = (1, 2, 64, 16)
    sdpa = OpDetail(dims=(shape,) * 3, types=(H,) * 3, concrete=("", "", "", "0.", "True"))
    host = [op("aten::_scaled_dot_product_flash_attention", 0, 100, 0), call(10)]
    trace = make([kernel("flash_fwd_kernel", 1000, 60, 1)], host, details=(sdpa,))
    assert run(trace, [MATMUL]).flops.tolist() == [4 * 2 * (64 * 65 // 2) * 16]
    assert run(trace, [MATMUL], full_pairs=True).flops.tolist() == [4 * 2 * 64 * 64 * 16]


def test_nothing_at_all(make: Make) -> None:
    found = run(make(), [])
    assert (len(found.flops), found.formulas, found.dtypes, found.reasons) == (0, (), (), {})


def test_classes_must_be_given_for_every_row(make: Make) -> None:
    with pytest.raises(AssertionError, match="a class for every piece of work"):
        run(make([kernel("gemm", 0, 1, -1)]), [])


OPS = st.lists(
    st.tuples(st.sampled_from(["aten::mm", "aten::linear", "aten::add", "x::y"]), st.integers(0, 3), st.booleans()),
    max_size=8,
)


@given(OPS, st.randoms(use_true_random=False))
def test_flops_of_all_rows_are_those_of_the_operators_that_have_a_product(make: Make, ops: Any, random: Any) -> None:
    """Every operator stands alone here; each with a formula and a kernel of the class MATMUL counts exactly once."""
    linear = OpDetail(dims=((3, 5), (7, 5)), types=(H, H))
    host, work, expected = [], [], 0.0
    for i, (name, kernels, is_product) in enumerate(ops):
        host.append(op(name, 100 * i, 100 * i + 90, {"aten::mm": 0, "aten::linear": 1}.get(name, -1)))
        for k in range(kernels):
            host.append(call(100 * i + 10 + k))
            work.append((len(host) - 1, is_product))
        if kernels and is_product:
            expected += {"aten::mm": MM_FLOPS, "aten::linear": 2 * 3 * 5 * 7}.get(name, 0)
    rows = [
        kernel("k_elementwise", 10_000 + 50 * i, random.randint(0, 40), launch) for i, (launch, _) in enumerate(work)
    ]
    found = run(make(rows, host, details=(MM, linear)), [MATMUL if is_product else COMPUTE for _, is_product in work])
    assert found.flops.sum() == pytest.approx(expected)
    assert (found.flops[~found.flops_known] == 0).all()
    assert np.isfinite(found.flops).all()
    unknown = (found.work_class == MATMUL) & ~found.flops_known
    lasted = sum((row["end_ns"] - row["start_ns"]) for row, lost in zip(rows, unknown, strict=True) if lost)
    assert sum(found.reasons.values()) == pytest.approx(lasted * 1e-9)
