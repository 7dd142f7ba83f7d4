"""Any shapes, types and values under any operator's name: an answer or a reason, never a crash or a strange number."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.explain.ops import memory
from suanli.explain.ops.call import Call, Cost
from suanli.explain.ops.hlo import instruction_cost
from suanli.explain.ops.table import RULES, cost_of
from suanli.nouns.trace import OpDetail

NAMES = st.sampled_from(
    [*RULES, *memory.RULES, "triton_tem_fused_mm_0", "triton_tem_fused_flex_attention_1", "triton_poi_fused_0", "x::y"]
)
SIZES = st.one_of(st.integers(0, 4), st.integers(-2, 2**40))
SHAPES = st.lists(SIZES, max_size=5).map(tuple)
ARGUMENTS = st.one_of(SHAPES, SHAPES, SHAPES, st.lists(SHAPES, max_size=3).map(tuple))
DIMS = st.lists(ARGUMENTS, max_size=12).map(tuple)
TYPES = st.sampled_from(["float", "c10::BFloat16", "c10::complex<float>", "c10::Float4_e2m1fn_x2", "Scalar", "", "?"])
MASK = "[True, False, True]"
WORDS = [
    "",
    "[1, 1]",
    "[0, 0]",
    "[0]",
    "[2]",
    "[-1, 5]",
    "[]",
    "True",
    "False",
    "0",
    "1",
    "2",
    "same",
    MASK,
    "[",
    "nan",
]
WORDS.append("9" * 20)
DETAILS = st.builds(
    OpDetail,
    dims=DIMS,
    types=st.lists(TYPES, max_size=12).map(tuple),
    concrete=st.none() | st.lists(st.sampled_from(WORDS), max_size=18).map(tuple),
)


def fair(cost: Cost) -> bool:
    """A finite number that is not negative, with its formula; or a reason."""
    if cost.flops is None:
        return bool(cost.reason)
    return math.isfinite(cost.flops) and cost.flops >= 0 and bool(cost.formula) and not cost.reason


@given(NAMES, DETAILS, st.none() | DETAILS, st.none() | SHAPES, st.booleans())
@settings(max_examples=300)
def test_any_call(name: str, detail: OpDetail, around: OpDetail | None, output: Any, full: bool) -> None:
    parent = None if around is None else Call("aten::cudnn_convolution_backward", around)
    call = Call(name, detail, parent, output, full)
    cost = cost_of(call)
    assert cost is None or fair(cost)
    for size in (memory.bytes_of(call), memory.product_bytes(call)):
        assert size is None or (math.isfinite(size) and size >= 0)


PIECES = ["bf16[4,8]{1,0}", " dot(", ")", "%a", "lhs_contracting_dims={", "1", "}", ", ", "=", "["]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@settings(max_examples=300)
def test_any_text_of_an_instruction(text: str) -> None:
    cost = instruction_cost(text)
    assert cost is None or fair(cost)


@pytest.mark.parametrize(
    ("name", "dims", "concrete"),
    [
        ("aten::convolution", ((1, 2, 4, 4), (2, 2, 3, 3)), ("", "", "", "[0, 0]", "[0, 0]", "[1, 1]", "False")),
        ("aten::convolution", ((4,), (2,)), ("", "", "", "[1]", "[0]", "[1]", "False")),
        ("aten::convolution", ((1, 2, 4, 4), (2, 2, 9, 9)), ("", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False")),
        ("aten::convolution", ((1, 2, 4, 4), (2, 2, 3, 3)), ("", "", "", "[1, 1, 1]", "[0, 0]", "[1, 1]", "False")),
        ("aten::mm", ((-4, 8), (8, 4)), None),
    ],
)
def test_what_no_operator_can_have_been(name: str, dims: tuple[Any, ...], concrete: Any) -> None:
    cost = cost_of(Call(name, OpDetail(dims=dims, concrete=concrete)))
    assert cost is not None
    assert cost.flops is None
    assert cost.reason
