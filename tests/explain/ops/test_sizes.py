"""Rows, columns and inner size of plain products."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops.call import Call
from suanli.explain.ops.sizes import PLAIN, product_sizes
from suanli.explain.ops.table import cost_of
from suanli.nouns.trace import OpDetail


def call(name: str, *dims: Any) -> Call:
    return Call(name, OpDetail(dims=dims, types=("c10::BFloat16",) * len(dims)))


@pytest.mark.parametrize(
    ("made", "sizes"),
    [
        (call("aten::mm", (8, 32), (32, 16)), (8, 16, 32)),
        (call("aten::addmm", (16,), (8, 32), (32, 16), (), ()), (8, 16, 32)),
        (call("aten::linear", (2, 4, 32), (16, 32), (16,)), (8, 16, 32)),  # 2 × 4 rows, weight transposed
        (call("aten::bmm", (1, 8, 32), (1, 32, 16)), (8, 16, 32)),
        (call("aten::bmm", (4, 8, 32), (4, 32, 16)), None),  # four products
        (call("aten::mm", (8, 32), (31, 16)), None),  # does not fit
        (call("aten::mv", (8, 32), (32,)), None),
        (call("aten::mm", (), ()), None),
        (call("aten::convolution", (8, 3, 4, 4), (2, 3, 3, 3)), None),
    ],
)
def test_sizes(made: Call, sizes: tuple[int, ...] | None) -> None:
    assert product_sizes(made) == sizes


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_sizes_are_those_that_are_counted(name: str) -> None:
    """2·m·n·k is what the table says the call costs."""
    left, right, transposed = PLAIN[name]
    dims: list[Any] = [(7,), (5, 3), (3, 2)] if left else [(5, 3), (3, 2)]
    if transposed:
        dims[right] = (2, 3)
    if name in ("aten::bmm", "aten::baddbmm"):
        dims[left], dims[right] = (1, 5, 3), (1, 3, 2)
    made = call(name, *dims)
    sizes, cost = product_sizes(made), cost_of(made)
    assert sizes == (5, 2, 3)
    assert cost is not None and cost.flops == 2 * 5 * 2 * 3
