"""Operators of frameworks: the rows of the table against their arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops import custom
from suanli.explain.ops.call import Call, Cost
from suanli.explain.ops.table import RULES, cost_of
from suanli.nouns.trace import OpDetail

FP8 = "c10::Float8_e4m3fn"


def cost(name: str, dims: tuple[Any, ...], **detail: Any) -> Cost:
    found = cost_of(Call(name, OpDetail(dims=dims, types=(FP8,) * len(dims), **detail)))
    assert found is not None
    return found


@pytest.mark.parametrize("name", custom.PRODUCTS)
def test_every_row_multiplies_its_two_arguments(name: str) -> None:
    row = custom.PRODUCTS[name]
    dims: list[Any] = [()] * 3
    inner = 32 // row.packed
    dims[row.left] = (64, inner)
    dims[row.right] = (8, inner) if row.sides == "NT" else (inner, 8)
    found = cost(name, tuple(dims))
    assert (found.flops, found.operands) == (2 * 64 * 32 * 8, (FP8, FP8))


@pytest.mark.parametrize("name", custom.GROUPED)
def test_grouped_rows_are_all_rows(name: str) -> None:
    assert cost(name, ((100, 32), (3, 8, 32))).flops == 2 * 100 * 32 * 8


def test_either_side_of_a_grouped_weight_may_be_inner() -> None:
    assert cost("primus_turbo::grouped_gemm", ((100, 32), (3, 32, 8))).flops == 2 * 100 * 32 * 8
    wrong = cost("primus_turbo::grouped_gemm", ((100, 32), (3, 31, 8)))
    assert wrong.reason == "primus_turbo::grouped_gemm: shapes that do not fit"


@pytest.mark.parametrize(
    ("a", "turned_a", "b", "turned_b"),
    [
        ((8, 32), "True", (64, 32), "False"),  # forward: weight [n, k], input [m, k]
        ((32, 8), "False", (64, 32), "False"),  # gradient of the input: weight [k, n], gradient [m, k]
        ((32, 8), "False", (32, 64), "True"),  # gradient of the weight: input [k, n], gradient [k, m]
    ],
)
def test_transformer_engine(a: tuple[int, int], turned_a: str, b: tuple[int, int], turned_b: str) -> None:
    values = ("", "", "", "", turned_a, "", "", "", "", turned_b)
    assert cost("tex_ts::te_gemm_ts", (a, (), (), (), (), b), concrete=values).flops == 2 * 8 * 32 * 64


def test_transformer_engine_with_sides_that_do_not_meet() -> None:
    values = ("", "", "", "", "True", "", "", "", "", "True")
    found = cost("tex_ts::te_gemm_ts", ((8, 32), (), (), (), (), (64, 31)), concrete=values)
    assert found.reason == "tex_ts::te_gemm_ts: shapes that do not fit"


@pytest.mark.parametrize("name", custom.UNKNOWN)
def test_routed_experts_are_unknown(name: str) -> None:
    found = cost(name, ((64, 32), (8, 32, 16)))
    assert found.reason == "experts' product: how many rows each expert gets is a tensor, which a trace does not hold"


def test_no_operator_has_two_rows() -> None:
    groups = (custom.PRODUCTS, custom.GROUPED, dict.fromkeys(custom.TE_GEMM), custom.UNKNOWN)
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert set().union(*groups) <= set(RULES)
