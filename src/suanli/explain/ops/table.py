"""Which rule an operator's name has. A name without one costs no FLOPs that anybody counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from suanli.explain.ops import attention, convolutions, custom, products, triton
from suanli.explain.ops.call import MOST_FLOPS, Call, Cost, misfit

Rule = Callable[[Call], Cost]


def _pair(left: int, right: int, transposed: bool = False) -> Rule:
    return lambda call: products.product(call, left, right, transposed=transposed)


def _rules() -> dict[str, Rule]:
    """Exact names."""
    table: dict[str, Rule] = {
        **dict.fromkeys(("aten::mm", "aten::bmm", "aten::matmul", "aten::mv", "aten::dot", "aten::vdot"), _pair(0, 1)),
        **dict.fromkeys(("aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_"), _pair(1, 2)),
        **dict.fromkeys(("aten::addmv", "aten::addmv_", "aten::_addmm_activation", "aten::addbmm"), _pair(1, 2)),
        **dict.fromkeys(("aten::_int_mm", "aten::_scaled_mm", "aten::_scaled_mm_v2"), _pair(0, 1)),
        **dict.fromkeys(("aten::linear", "aten::_weight_int8pack_mm"), _pair(0, 1, True)),
        **dict.fromkeys(("aten::_grouped_mm", "aten::_scaled_grouped_mm"), products.grouped),
        **dict.fromkeys(("aten::addr", "aten::addr_"), products.outer_product),
        **dict.fromkeys(convolutions.FORWARD, convolutions.forward),
        **convolutions.BACKWARD,
        **dict.fromkeys(attention.FUSED, attention.fused),
        **dict.fromkeys(attention.PACKED, attention.packed),
        **dict.fromkeys(custom.PRODUCTS, custom.custom),
        **dict.fromkeys(custom.GROUPED, custom.custom_grouped),
        **dict.fromkeys(custom.TE_GEMM, custom.te_gemm),
        **dict.fromkeys(custom.UNKNOWN, custom.without),
    }
    return table


RULES: Mapping[str, Rule] = _rules()


def rule_of(name: str) -> Rule | None:
    """The rule of an operator, by exact name or as a compiled template."""
    found = RULES.get(name)
    if found is not None or not name.startswith("triton_tem"):
        return found
    if triton.ATTENTION.match(name):
        return attention.packed
    return triton.template if triton.TEMPLATE.match(name) else None


def cost_of(call: Call) -> Cost | None:
    """What a call costs; None for an operator that multiplies nothing we know of."""
    rule = rule_of(call.name)
    if rule is None:
        return None
    found = rule(call)
    return found if found.flops is None or found.flops < MOST_FLOPS else misfit(call)
