"""Products of matrices: every form against its arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.ops.call import NO_SHAPES, Call
from suanli.explain.ops.table import cost_of
from suanli.nouns.trace import OpDetail

BF16 = "c10::BFloat16"
TABLE: list[tuple[str, tuple[Any, ...], float]] = [
    ("aten::mm", ((64, 32), (32, 8)), 2 * 64 * 32 * 8),
    ("aten::addmm", ((8,), (64, 32), (32, 8), (), ()), 2 * 64 * 32 * 8),
    ("aten::_addmm_activation", ((8,), (64, 32), (32, 8)), 2 * 64 * 32 * 8),
    ("aten::bmm", ((4, 64, 32), (4, 32, 8)), 4 * 2 * 64 * 32 * 8),
    ("aten::baddbmm", ((4, 64, 8), (4, 64, 32), (4, 32, 8), (), ()), 4 * 2 * 64 * 32 * 8),
    ("aten::addbmm", ((64, 8), (4, 64, 32), (4, 32, 8)), 4 * 2 * 64 * 32 * 8),
    ("aten::linear", ((2, 16, 32), (8, 32), (8,)), 2 * 2 * 16 * 32 * 8),
    ("aten::linear", ((32,), (8, 32)), 2 * 32 * 8),
    ("aten::matmul", ((2, 16, 32), (32, 8)), 2 * 2 * 16 * 32 * 8),
    ("aten::matmul", ((3, 1, 16, 32), (5, 32, 8)), 3 * 5 * 2 * 16 * 32 * 8),  # [3, 1] and [5] broadcast to [3, 5]
    ("aten::matmul", ((1, 16, 32), (7, 32, 8)), 7 * 2 * 16 * 32 * 8),
    ("aten::matmul", ((32,), (7, 32, 8)), 7 * 2 * 32 * 8),
    ("aten::matmul", ((16, 32), (32,)), 2 * 16 * 32),
    ("aten::mv", ((16, 32), (32,)), 2 * 16 * 32),
    ("aten::dot", ((32,), (32,)), 2 * 32),
    ("aten::addmv", ((16,), (16, 32), (32,)), 2 * 16 * 32),
    ("aten::addr", ((16, 8), (16,), (8,)), 2 * 16 * 8),
    ("aten::_scaled_mm", ((64, 32), (32, 8), (), ()), 2 * 64 * 32 * 8),
    ("aten::_int_mm", ((64, 32), (32, 8)), 2 * 64 * 32 * 8),
    ("aten::_weight_int8pack_mm", ((64, 32), (8, 32), (8,)), 2 * 64 * 32 * 8),
    ("aten::mm", ((0, 32), (32, 8)), 0),
    # every row belongs to one of the groups, whatever their sizes; 3 groups
    ("aten::_grouped_mm", ((100, 32), (3, 32, 8), (3,)), 2 * 100 * 32 * 8),
    ("aten::_grouped_mm", ((3, 100, 32), (32, 50), (3,)), 2 * 100 * 32 * 50),
    ("aten::_grouped_mm", ((16, 100), (100, 8), (3,)), 2 * 16 * 100 * 8),  # weights' gradients: the inner side is cut
    ("aten::_grouped_mm", ((3, 10, 32), (3, 32, 8)), 3 * 2 * 10 * 32 * 8),
    ("aten::_scaled_grouped_mm", ((100, 32), (3, 32, 8), (100,), (3, 8), (3,)), 2 * 100 * 32 * 8),
]


@pytest.mark.parametrize(("name", "dims", "flops"), TABLE)
def test_flops(name: str, dims: tuple[Any, ...], flops: float) -> None:
    cost = cost_of(Call(name, OpDetail(dims=dims, types=(BF16,) * len(dims))))
    assert cost is not None
    assert (cost.flops, cost.formula, cost.operands) == (flops, "linear_flops", (BF16, BF16))


def test_a_complex_product_is_four_real_ones() -> None:
    kind = "c10::complex<float>"
    cost = cost_of(Call("aten::mm", OpDetail(dims=((4, 5), (5, 6)), types=(kind, kind))))
    assert cost is not None
    assert (cost.flops, cost.formula) == (8 * 4 * 5 * 6, "complex_linear_flops")


def test_two_numbers_of_four_bits_stand_in_one_element() -> None:
    packed = "c10::Float4_e2m1fn_x2"
    cost = cost_of(Call("aten::_scaled_mm", OpDetail(dims=((64, 16), (16, 8)), types=(packed, packed))))
    assert cost is not None
    assert cost.flops == 2 * 64 * (2 * 16) * 8


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        (((64, 32), ()), NO_SHAPES),
        (((64, 32), (31, 8)), "aten::mm: shapes that do not fit"),
        (((2, 64, 32), (3, 32, 8)), "aten::mm: shapes that do not fit"),
    ],
)
def test_what_cannot_be_said_is_said(dims: tuple[Any, ...], reason: str) -> None:
    cost = cost_of(Call("aten::mm", OpDetail(dims=dims)))
    assert cost is not None
    assert (cost.flops, cost.reason) == (None, reason)


SIZES = st.integers(1, 6)


@given(st.lists(SIZES, max_size=3), SIZES, SIZES, SIZES)
def test_matmul_of_a_batch_is_so_many_products(lead: list[int], m: int, k: int, n: int) -> None:
    batch = 1
    for size in lead:
        batch *= size
    both = cost_of(Call("aten::matmul", OpDetail(dims=((*lead, m, k), (*lead, k, n)))))
    turned = cost_of(Call("aten::linear", OpDetail(dims=((*lead, m, k), (n, k)))))
    assert both is not None
    assert turned is not None
    assert both.flops == turned.flops == 2 * batch * m * k * n
