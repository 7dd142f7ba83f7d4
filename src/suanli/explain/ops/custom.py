"""Products that frameworks bring as operators of their own: names, and which arguments are multiplied, as data.

Only operators whose shapes determine their FLOPs have a row. `sides` says how the factors lie: NN [m, k] by [k, n],
NT [m, k] by [n, k]. Where a weight is packed, `packed` numbers stand in one element of the inner dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

from suanli.explain.ops.call import NO_SHAPES, Call, Cost, misfit, unknown
from suanli.explain.ops.products import grouped, product
from suanli.formulas import counting


@dataclass(frozen=True)
class Row:
    """Where the factors of an operator stand."""

    left: int
    right: int
    sides: str = "NT"
    packed: int = 1


_NT, _NN = Row(0, 1), Row(0, 1, "NN")
PRODUCTS: dict[str, Row] = {
    "aiter::gemm_a16w16": _NT,
    "aiter::gemm_a8w8": _NT,
    "aiter::gemm_a8w8_CK": _NT,
    "aiter::gemm_a8w8_bpreshuffle": _NT,
    "aiter::gemm_a8w8_blockscale": _NT,
    "aiter::gemm_a4w4": Row(0, 1, packed=2),
    "vllm::rocm_unquantized_gemm": _NT,
    "vllm::rocm_unquantized_gemm_impl": _NT,
    "vllm::w8a8_block_fp8_matmul": _NT,
    "vllm::apply_w8a8_block_fp8_linear": _NT,
    "_C::cutlass_scaled_mm": Row(1, 2, "NN"),
    "_C::cutlass_scaled_mm_azp": Row(1, 2, "NN"),
    "_C::cutlass_scaled_fp4_mm": Row(1, 2, packed=2),
    "sgl_kernel::fp8_scaled_mm": _NN,
    "sgl_kernel::int8_scaled_mm": _NN,
    "sgl_kernel::fp8_blockwise_scaled_mm": _NN,
    "trtllm::cublas_scaled_mm": _NN,
    "bitsandbytes::int8_linear_matmul": _NT,
    "fbgemm::f8f8bf16": _NT,
    "fbgemm::f8f8bf16_rowwise": _NT,
    "fbgemm::f8f8bf16_rowwise_batched": _NT,
    "fbgemm::f8f8bf16_blockwise": _NT,
    "fbgemm::f8f8bf16_tensorwise": _NT,
    "fbgemm::i8i8bf16": _NT,
    "quantized::linear": _NT,
}
# [T, k] rows sorted by group, one [n, k] (NT) or [k, n] (NN) a group
GROUPED: dict[str, str] = {
    "fbgemm::f8f8bf16_rowwise_grouped_stacked": "NT",
    "fbgemm::bf16bf16bf16_grouped_stacked": "NT",
    "primus_turbo::grouped_gemm": "either",
    "primus_turbo::grouped_gemm_impl": "either",
    "primus_turbo_cpp_extension::grouped_gemm": "either",
    "primus_turbo_cpp_extension::ck_grouped_gemm": "either",
    "grouped_gemm::gmm": "either",
}
TE_GEMM = ("tex_ts::te_gemm_ts", "te_moe::moe_gemm")
ROUTED = "experts' product: how many rows each expert gets is a tensor, which a trace does not hold"
UNKNOWN: dict[str, str] = dict.fromkeys(
    (
        "vllm::fused_experts", "vllm::inplace_fused_experts", "vllm::outplace_fused_experts", "vllm::moe_forward",
        "vllm::moe_forward_shared", "sglang::inplace_fused_experts", "sglang::outplace_fused_experts",
        "aiter::fmoe", "aiter::fused_moe_", "aiter::ck_moe_stage1", "aiter::ck_moe_stage2", "aiter::fmoe_g1u1",
        "_moe_C::topk_softmax",
    ),
    ROUTED,
)  # fmt: skip


def custom(call: Call) -> Cost:
    """One product by its row."""
    row = PRODUCTS[call.name]
    return product(call, row.left, row.right, transposed=row.sides == "NT", inner_scale=row.packed)


def custom_grouped(call: Call) -> Cost:
    """Rows of all groups times the matrix of one; which side of a square-looking weight is inner must be clear."""
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None:
        return unknown(NO_SHAPES)
    if len(a) != 2 or len(b) != 3:
        return grouped(call)
    inner_last, inner_first = b[2] == a[1], b[1] == a[1]
    if GROUPED[call.name] == "NT" or (inner_last and not inner_first):
        outer = b[1]
    elif inner_first:
        outer = b[2]  # both sides fit only where the matrix is square, and then it does not matter
    else:
        return misfit(call)
    flops = counting.linear_flops(a[0], a[1], outer)
    return Cost(flops, counting.linear_flops.__name__, (call.type(0), call.type(1)))


def te_gemm(call: Call) -> Cost:
    """Transformer Engine's GEMM as cuBLAS takes it: A [a, k] where transposed, else [k, a]; B [b, k], else [k, b]."""
    a, b = call.shape(0), call.shape(5)
    turned_a, turned_b = call.flag(4), call.flag(9)
    if a is None or b is None or turned_a is None or turned_b is None:
        return unknown(NO_SHAPES)
    if (len(a), len(b)) != (2, 2):
        return misfit(call)
    rows, inner = (a[0], a[1]) if turned_a else (a[1], a[0])
    columns, other = (b[1], b[0]) if turned_b else (b[0], b[1])
    if inner != other:
        return misfit(call)
    flops = counting.linear_flops(rows, inner, columns)
    return Cost(flops, counting.linear_flops.__name__, (call.type(0), call.type(5)))


def without(call: Call) -> Cost:
    """An operator whose FLOPs shapes do not determine."""
    return unknown(UNKNOWN[call.name])
