"""The sizes of a plain product: rows, columns and inner size of the one matrix product that a call is."""

from __future__ import annotations

from math import prod

from suanli.explain.ops.call import Call, Shape
from suanli.explain.ops.products import outer_sizes

# operator → places of the factors, and whether the right one stands transposed
PLAIN: dict[str, tuple[int, int, bool]] = {
    **dict.fromkeys(("aten::mm", "aten::matmul", "aten::_int_mm", "aten::_scaled_mm", "aten::bmm"), (0, 1, False)),
    **dict.fromkeys(("aten::addmm", "aten::addmm_", "aten::_addmm_activation", "aten::baddbmm"), (1, 2, False)),
    "aten::linear": (0, 1, True),
}


def product_sizes(call: Call) -> Shape | None:
    """(m, n, k) of a call that is one product of two matrices; None for a batch of them and for all else."""
    if call.name not in PLAIN:
        return None
    left, right, transposed = PLAIN[call.name]
    a, b = call.shape(left), call.shape(right)
    if a is None or b is None or len(a) < 2 or len(b) < 2 or prod(b[:-2]) != 1:
        return None
    outer = outer_sizes(a, b, transposed)
    return None if outer is None else (outer[0], outer[1], a[-1])
