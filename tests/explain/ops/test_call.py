"""What a call says of its arguments, and what it does not."""

from __future__ import annotations

import pytest

from suanli.explain.ops.call import Call
from suanli.nouns.trace import OpDetail

CALL = Call(
    "aten::thing",
    OpDetail(
        dims=((4, 8), (), ((2, 3), (5,)), (7,)),
        types=("c10::BFloat16", "Scalar", "TensorList", "float"),
        concrete=("", "3", "[1, -2]", "[True, False]"),
    ),
)
BARE = Call("aten::thing", OpDetail())


@pytest.mark.parametrize(("at", "shape"), [(0, (4, 8)), (1, None), (2, None), (3, (7,)), (4, None), (-1, (7,))])
def test_a_shape_is_that_of_a_tensor_alone(at: int, shape: object) -> None:
    assert CALL.shape(at) == shape


def test_tensors_inside_lists_are_listed_too() -> None:
    assert CALL.shapes() == [(4, 8), (2, 3), (5,), (7,)]
    assert BARE.shapes() == []


@pytest.mark.parametrize(("at", "text"), [(0, None), (1, "3"), (2, "[1, -2]"), (9, None)])
def test_values_of_scalars(at: int, text: str | None) -> None:
    assert CALL.text(at) == text
    assert BARE.text(at) is None


def test_numbers_lists_and_truths() -> None:
    assert CALL.whole(1) == 3
    assert CALL.whole(2) is None
    assert CALL.wholes(2) == (1, -2)
    assert CALL.wholes(1) is None
    assert CALL.flags(3) == (True, False)
    assert CALL.flags(1) is None
    assert CALL.flag(1) is None  # 3 is no truth
    assert Call("x", OpDetail(concrete=("True", "False", "0.125"))).flag(0) is True
    assert Call("x", OpDetail(concrete=("True", "False", "0.125"))).flag(1) is False
    assert Call("x", OpDetail(concrete=("True", "False", "0.125"))).flag(2) is None


def test_types() -> None:
    assert [CALL.type(at) for at in (0, 3, 9)] == ["c10::BFloat16", "float", ""]
    assert BARE.type(0) == ""
