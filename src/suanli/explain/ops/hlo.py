"""Products in the text of XLA instructions: dots and calls of GEMM libraries, from the shapes they name."""

from __future__ import annotations

import re
from math import prod

from suanli.explain.ops.call import Cost, Shape
from suanli.formulas import counting

_SHAPE = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_OPERATION = re.compile(r"\s(dot|custom-call)\((.*)", re.DOTALL)
_GEMM = re.compile(r"__cublas\$|__triton_gemm|__cudnn\$gemm")
_CONTRACTED = re.compile(r'"?lhs_contracting_dim(?:ension)?s"?\s*[:=]\s*[\[{]([^\]}]*)[\]}]')


def instruction_cost(text: str) -> Cost | None:
    """FLOPs of one instruction: its result times the sizes summed over. None for what is no product, or unclear."""
    operation = _OPERATION.search(text)
    if operation is None or (operation[1] == "custom-call" and not _GEMM.search(text)):
        return None
    result, operands = _SHAPE.findall(text[: operation.start()]), _SHAPE.findall(operation[2])
    contracted = _CONTRACTED.search(text)
    if not result or len(operands) < 2 or contracted is None:
        return None
    left = _sizes(operands[0][1])
    places = [int(place) for place in re.findall(r"\d+", contracted[1])]
    if any(place >= len(left) for place in places):
        return None
    inner = prod(left[place] for place in places)
    flops = counting.linear_flops(prod(_sizes(result[0][1])), inner, 1)
    return Cost(flops, counting.linear_flops.__name__, (operands[0][0], operands[1][0]))


def _sizes(text: str) -> Shape:
    return tuple(int(part) for part in text.split(",") if part)
