"""Templates of torch.compile: the factors among the pointers."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops.attention import LENGTHS
from suanli.explain.ops.call import NO_SHAPES, Call
from suanli.explain.ops.table import cost_of, rule_of
from suanli.explain.ops.triton import AMBIGUOUS
from suanli.nouns.trace import OpDetail

TABLE: list[tuple[str, tuple[Any, ...], float]] = [
    ("triton_tem_fused_mm_0", ((64, 32), (32, 8), (64, 8)), 2 * 64 * 32 * 8),
    ("triton_tem_fused_addmm_3", ((8,), (64, 32), (32, 8), (64, 8)), 2 * 64 * 32 * 8),
    ("triton_tem_fused_bmm_1", ((4, 64, 32), (4, 32, 8), (4, 64, 8)), 4 * 2 * 64 * 32 * 8),
    # what follows the product reads a tensor of the output's shape
    ("triton_tem_fused_add_mm_relu_2", ((64, 32), (32, 8), (64, 8), (64, 8)), 2 * 64 * 32 * 8),
    ("triton_tem_fused_mm_view_5", ((64, 32), (32, 8), (4, 16, 8)), 2 * 64 * 32 * 8),  # the output in other dimensions
    ("triton_tem_fused_mm_0", ((16, 16), (16, 16), (16, 16)), 2 * 16**3),  # any order is the same
]


@pytest.mark.parametrize(("name", "dims", "flops"), TABLE)
def test_flops(name: str, dims: tuple[Any, ...], flops: float) -> None:
    found = cost_of(Call(name, OpDetail(dims=dims, types=("c10::BFloat16",) * len(dims))))
    assert found is not None
    assert (found.flops, found.operands) == (flops, ("c10::BFloat16",))


def test_two_ways_that_differ_are_none() -> None:
    found = cost_of(Call("triton_tem_fused_mm_0", OpDetail(dims=((8, 4), (4, 8), (8, 8), (4, 4)))))
    assert found is not None  # [8,4]·[4,8] → [8,8] or [4,8]·[8,4] → [4,4]: 512 or 256
    assert (found.flops, found.reason) == (None, AMBIGUOUS)


def test_without_tensors() -> None:
    found = cost_of(Call("triton_tem_fused_mm_0", OpDetail(dims=((), ()))))
    assert found is not None
    assert found.reason == NO_SHAPES


def test_flex_attention_skips_blocks_that_no_shape_tells() -> None:
    found = cost_of(Call("triton_tem_fused_flex_attention_0", OpDetail(dims=((1, 8, 64, 16),) * 3)))
    assert found is not None
    assert found.reason == LENGTHS


@pytest.mark.parametrize(
    "name", ["triton_poi_fused_addmm_gelu_view_15", "triton_red_fused_mm_0", "triton_tem_fused_sum"]
)
def test_other_compiled_kernels_multiply_nothing(name: str) -> None:
    """Their names keep what their inputs came from."""
    assert rule_of(name) is None
