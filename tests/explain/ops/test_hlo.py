"""Text of XLA instructions."""

from __future__ import annotations

import pytest

from suanli.explain.ops.hlo import instruction_cost

DOT = (
    "%dot.3 = bf16[64,8]{1,0} dot(bf16[64,32]{1,0} %a, bf16[32,8]{1,0} %b), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
)
BATCHED = (
    "%dot.4 = f32[4,64,8]{2,1,0} dot(f32[4,64,32]{2,1,0} %a, f32[4,32,8]{2,1,0} %b), lhs_batch_dims={0}, "
    "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
)
CUBLAS = (
    "%custom-call.1 = (bf16[64,8]{1,0}, s8[4194304]{0}) custom-call(bf16[64,32]{1,0} %a, bf16[32,8]{1,0} %b), "
    'custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":'
    '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[]}}}'
)


@pytest.mark.parametrize(
    ("text", "flops", "operands"),
    [
        (DOT, 2 * 64 * 32 * 8, ("bf16", "bf16")),
        (BATCHED, 4 * 2 * 64 * 32 * 8, ("f32", "f32")),
        (CUBLAS, 2 * 64 * 32 * 8, ("bf16", "bf16")),
    ],
)
def test_products(text: str, flops: float, operands: tuple[str, str]) -> None:
    found = instruction_cost(text)
    assert found is not None
    assert (found.flops, found.formula, found.operands) == (flops, "linear_flops", operands)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%add.1 = f32[4]{0} add(f32[4]{0} %a, f32[4]{0} %b)",
        '%c = f32[4,4]{1,0} custom-call(f32[4,4]{1,0} %a, f32[4,4]{1,0} %b), custom_call_target="topk"',
        "%d = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}",  # shapes left out
        "%d = f32[4]{0} dot(f32[4]{0} %a, f32[4]{0} %b), lhs_contracting_dims={3}",  # no such dimension
        "%d = f32[4,4]{1,0} dot(f32[4,4]{1,0} %a, f32[4,4]{1,0} %b)",  # nothing summed over is named
    ],
)
def test_what_is_no_product_or_unclear(text: str) -> None:
    assert instruction_cost(text) is None
