"""Products of matrices: which arguments are multiplied, and how."""

from __future__ import annotations

from math import prod

from suanli.explain.ops.call import NO_SHAPES, Call, Cost, Shape, misfit, unknown
from suanli.explain.ops.dtypes import PACKED
from suanli.formulas import counting, operators

_COMPLEX = "c10::complex"


def product(call: Call, left: int, right: int, *, transposed: bool = False, inner_scale: int = 1) -> Cost:
    """[…, m, k] by […, k, n], or by [n, k] where the weight stands transposed. Vectors are matrices of one column."""
    a, b = call.shape(left), call.shape(right)
    if a is None or b is None:
        return unknown(NO_SHAPES)
    outer = outer_sizes(a, b, transposed)
    if outer is None:
        return misfit(call)
    operands = (call.type(left), call.type(right))
    form = operators.complex_linear_flops if _COMPLEX in operands[0] else counting.linear_flops
    packed = PACKED.get(operands[0], 1) * inner_scale
    return Cost(form(outer[0], a[-1] * packed, outer[1]), form.__name__, operands)


def outer_sizes(a: Shape, b: Shape, transposed: bool) -> Shape | None:
    """Rows in all (batch and m), and columns n; None where the inner sizes differ."""
    inner, columns = _sides(b, transposed)
    if inner != a[-1]:
        return None
    lead_a, lead_b = a[:-2], b[:-2]
    rows = prod(a[:-1])
    if prod(lead_b) > 1:
        batch = _broadcast(lead_a, lead_b)
        if batch is None:
            return None
        rows = prod(batch) * (a[-2] if len(a) > 1 else 1)
    return rows, columns


def _sides(b: Shape, transposed: bool) -> Shape:
    """Inner and outer size of the right factor."""
    if len(b) == 1:
        return b[0], 1
    return (b[-1], b[-2]) if transposed else (b[-2], b[-1])


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    """Leading sizes joined as torch joins them; None where they do not fit."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    joined = tuple(max(x, y) if 1 in (x, y) or x == y else -1 for x, y in pairs)
    return None if -1 in joined else joined


def outer_product(call: Call) -> Cost:
    """addr, ger: a column by a row."""
    a, b = call.shape(1), call.shape(2)
    if a is None or b is None:
        return unknown(NO_SHAPES)
    flops = counting.linear_flops(a[-1], 1, b[-1])
    return Cost(flops, counting.linear_flops.__name__, (call.type(1), call.type(2)))


def grouped(call: Call) -> Cost:
    """torch._grouped_mm: [T, k] by [g, k, n] whatever the groups; [k, T] by [T, n] gives a product a group.

    The offsets are a tensor, so groups' sizes are not in a trace; they are not needed where every row of the
    first factor belongs to one group. Padding rows between groups are counted as rows.
    """
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None:
        return unknown(NO_SHAPES)
    name, operands = counting.linear_flops.__name__, (call.type(0), call.type(1))
    packed = PACKED.get(operands[0], 1)
    if min(len(a), len(b)) < 2:
        return misfit(call)
    if len(a) == 2 and len(b) == 3:
        return Cost(counting.linear_flops(a[0], a[1] * packed, b[-1]), name, operands)
    if len(a) == 3 and len(b) == 2:
        return Cost(counting.linear_flops(a[1], a[2] * packed, b[-1]), name, operands)
    if len(a) == 2 and len(b) == 2:
        return Cost(counting.linear_flops(a[0], a[1] * packed, b[-1]), name, operands)
    return product(call, 0, 1)
