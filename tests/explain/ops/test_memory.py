"""Least bytes of operators: each reads its inputs once and writes its output once."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops import memory
from suanli.explain.ops.call import Call
from suanli.nouns.trace import OpDetail

F, H, L = "float", "c10::BFloat16", "long int"
TABLE: list[tuple[str, tuple[Any, ...], tuple[Any, ...], float]] = [
    ("aten::mul", ((4, 8), (4, 8)), (F, F), (32 + 32 + 32) * 4),  # two read, one written
    ("aten::mul", ((4, 8), (8,)), (F, F), (32 + 8 + 32) * 4),
    ("aten::add", ((4, 1), (8,), ()), (F, F, "Scalar"), (4 + 8 + 32) * 4),  # broadcast to [4, 8]
    ("aten::silu", ((4, 8),), (H,), (32 + 32) * 2),
    ("aten::add_", ((4, 8), (4, 8), ()), (F, F, "Scalar"), (32 + 32 + 32) * 4),  # read, read, written over the first
    ("aten::copy_", ((4, 8), (4, 8), ()), (H, F, "Scalar"), 32 * 2 + 32 * 4),
    ("aten::fill_", ((4, 8), ()), (F, "Scalar"), 32 * 4),
    ("aten::sum", ((4, 8), ()), (F, "ScalarList"), 32 * 4),
    ("aten::_softmax", ((4, 8), (), ()), (H, "Scalar", "Scalar"), 2 * 32 * 2),
    ("aten::native_layer_norm", ((4, 8), (), (8,), (8,), ()), (H, "ScalarList", H, H, "Scalar"), (32 + 8 + 8 + 32) * 2),
    # gradient, input, mean and rstd (fp32) and weight read; gradient of the input written
    ("aten::native_layer_norm_backward", ((4, 8), (4, 8), (), (4,), (4,), (8,)), (H, H, "ScalarList", F, F, H),
     (32 + 32) * 2 + (4 + 4) * 4 + 8 * 2 + 32 * 2),
    ("aten::embedding", ((1000, 16), (2, 5)), (H, L), 10 * 8 + 2 * 10 * 16 * 2),  # 10 rows of 16, and their indices
    ("aten::index_select", ((1000, 16), (), (10,)), (H, "Scalar", L), 10 * 8 + 2 * 10 * 16 * 2),
    ("aten::cat", (((4, 8), (2, 8)), ()), ((F, F), "Scalar"), 2 * 48 * 4),
    ("triton_poi_fused_add_cos_sin_0", ((10, 10), (10, 10), (10, 10), ()), (F, F, F, "Scalar"), 300 * 4),
    ("sgl_kernel::silu_and_mul", ((4, 8), (4, 16)), (H, H), (32 + 64) * 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "types", "size"), TABLE)
def test_least_bytes(name: str, dims: tuple[Any, ...], types: tuple[Any, ...], size: float) -> None:
    assert memory.has_rule(name)
    assert memory.bytes_of(Call(name, OpDetail(dims=dims, types=types))) == size


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::mul", ((4, 8), (4, 8)), (F, "QUInt4x2")),  # a type that is not known
        ("aten::mul", ((4, 8), (4, 8)), ()),
        ("aten::mul", (), ()),
        ("aten::embedding", ((1000, 16), ()), (H, L)),
        ("aten::cat", (((4, 8), (2, 8)), ()), ("TensorList", "Scalar")),
        ("aten::nonzero", ((4, 8),), (F,)),
    ],
)
def test_what_is_not_known_is_none(name: str, dims: tuple[Any, ...], types: tuple[Any, ...]) -> None:
    assert memory.bytes_of(Call(name, OpDetail(dims=dims, types=types))) is None


PRODUCTS: list[tuple[str, tuple[Any, ...], float]] = [
    ("aten::mm", ((64, 32), (32, 8)), 64 * 32 + 32 * 8 + 64 * 8),
    ("aten::addmm", ((8,), (64, 32), (32, 8)), 8 + 64 * 32 + 32 * 8 + 64 * 8),
    ("aten::bmm", ((4, 64, 32), (4, 32, 8)), 4 * (64 * 32 + 32 * 8 + 64 * 8)),
    ("aten::linear", ((2, 64, 32), (8, 32), (8,)), 2 * 64 * 32 + 8 * 32 + 8 + 2 * 64 * 8),
    ("aten::linear", ((2, 64, 32), (8, 32), ()), 2 * 64 * 32 + 8 * 32 + 2 * 64 * 8),
    ("aiter::gemm_a16w16", ((64, 32), (8, 32)), 64 * 32 + 8 * 32 + 64 * 8),
]


@pytest.mark.parametrize(("name", "dims", "elements"), PRODUCTS)
def test_products_read_factors_and_write_the_result(name: str, dims: tuple[Any, ...], elements: int) -> None:
    assert memory.product_bytes(Call(name, OpDetail(dims=dims, types=(H,) * len(dims)))) == 2 * elements


@pytest.mark.parametrize("name", ["aten::convolution", "aten::mm"])
def test_products_without_a_rule_or_types(name: str) -> None:
    assert memory.product_bytes(Call(name, OpDetail(dims=((64, 32), (32, 8))))) is None
