"""Templates that torch.compile fills in: `triton_tem_fused_mm_0` is a product with whatever follows it."""

from __future__ import annotations

import re
from itertools import permutations
from math import prod

from suanli.explain.ops.call import NO_SHAPES, Call, Cost, Shape, unknown
from suanli.formulas import counting

TEMPLATE = re.compile(r"^triton_tem_fused_\w*?(mm|bmm|addmm|baddbmm|linear|matmul|einsum)(_|$)")
ATTENTION = re.compile(r"^triton_tem_fused_\w*?(flex_attention|attention)")
AMBIGUOUS = "a compiled template whose factors cannot be told from its other tensors"


def template(call: Call) -> Cost:
    """[m, k] by [k, n] with an [m, n] that comes out, batched or not: the one way in which the tensors fit.

    Tensors that join in before or after the product are pointers too, so several ways may fit; they count where all
    of them give the same FLOPs.
    """
    shapes = [shape for shape in call.shapes() if len(shape) > 1]
    if len(shapes) < 2:
        return unknown(NO_SHAPES)
    found = {_flops(a, b) for a, b in permutations(shapes, 2) if _fits(a, b, shapes)}
    if len(found) != 1:
        return unknown(AMBIGUOUS)
    return Cost(found.pop(), counting.linear_flops.__name__, (_first_type(call),))


def _fits(a: Shape, b: Shape, shapes: list[Shape]) -> bool:
    """Whether a·b is a product whose result is among the tensors. The output may be seen in other dimensions."""
    if a[-1] != b[-2] or (len(b) > 2 and a[:-2] != b[:-2]):
        return False
    others = list(shapes)
    others.remove(a)
    others.remove(b)
    return any(prod(shape) == prod(a[:-1]) * b[-1] for shape in others)


def _flops(a: Shape, b: Shape) -> int:
    return counting.linear_flops(prod(a[:-1]), a[-1], b[-1])


def _first_type(call: Call) -> str:
    dims = call.detail.dims or ()
    return next((call.type(i) for i, each in enumerate(dims) if each and len(each) > 1), "")
