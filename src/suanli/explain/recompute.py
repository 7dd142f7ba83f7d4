"""Which operators belong to the backward pass, and which do forward work once more for it.

Checkpointing runs a part of the forward again inside a node of the autograd engine. Backward formulas call the plain
products (`aten::mm`) and never the operators a model calls (`aten::linear`, `aten::conv2d`): where one of those stands
inside a node, it is recomputed, with everything inside it. What runs beside it in the same node with autograd recording
(a residual sum, a flatten) is recomputed too. No Python stack is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.link import climb, first_of
from suanli.nouns.trace import Trace

Array = npt.NDArray[Any]

ENGINE = "autograd::engine::evaluate_function"
# Operators that models call and no backward formula does.
_FORWARD_ONLY = """
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention
    layer_norm rms_norm group_norm batch_norm instance_norm gelu silu relu relu_ softmax dropout embedding max_pool2d
    avg_pool2d adaptive_avg_pool2d multi_head_attention_forward
"""
FORWARD = frozenset(f"aten::{name}" for name in _FORWARD_ONLY.split()) | {
    "flash_attn::_flash_attn_forward", "flash_attn::_flash_attn_varlen_forward", "FlashAttnFunc", "FlashAttnVarlenFunc",
    "aiter::_flash_attn_forward",
}  # fmt: skip
_BACKWARD = re.compile(r"Backward\d*$|^<backward op>$|^torch::autograd::(AccumulateGrad|GraphRoot|CopyBackwards)$")


def is_backward(name: str) -> bool:
    """Whether an operator's name is that of an autograd node."""
    return _BACKWARD.search(name) is not None


@dataclass(frozen=True, eq=False)
class Passes:
    """Columns beside `Host`, bool [M], or beside some rows of it. No span is in both."""

    backward: Array
    recompute: Array


def passes(trace: Trace, parent: Array) -> Passes:
    """The pass of every operator of `trace`, whose enclosing operators are `parent`."""
    node = _nodes(trace)
    inside = climb(np.arange(len(parent)), parent, node) >= 0
    root = _rows(trace, [name in FORWARD for name in trace.names]) & inside & ~node
    if not root.any():  # nothing is recomputed, as in most traces
        return Passes(backward=inside, recompute=np.zeros(len(parent), dtype=bool))
    again = climb(np.arange(len(parent)), parent, root) >= 0
    again |= _beside(trace, parent, node, root, inside)
    return Passes(backward=inside & ~again, recompute=again)


def passes_of(trace: Trace, parent: Array, rows: Array) -> Passes:
    """What `passes` says of some rows of `Host`; of -1 neither. Quick where nothing is recomputed, which is mostly."""
    node = _nodes(trace)
    calls = np.flatnonzero(_rows(trace, [name in FORWARD for name in trace.names]) & ~node)
    if (climb(calls, parent, node) >= 0).any():
        every = passes(trace, parent)
        return Passes(*(first_of(rows, each, False).astype(bool) for each in (every.backward, every.recompute)))
    return Passes(backward=climb(rows, parent, node) >= 0, recompute=np.zeros(len(rows), dtype=bool))


def _nodes(trace: Trace) -> Array:
    """Operators that are nodes of autograd's backward pass. bool [M]."""
    named = _rows(trace, [name.startswith(ENGINE) or is_backward(name) for name in trace.names])
    found: Array = named | (trace.host.forward_thread > 0)
    return found


def _rows(trace: Trace, of_names: list[bool]) -> Array:
    table = np.array(of_names, dtype=bool)
    rows: Array = table[trace.host.name] if len(table) else np.zeros(0, dtype=bool)
    return rows


def _beside(trace: Trace, parent: Array, node: Array, root: Array, inside: Array) -> Array:
    """Operators that record for autograd, in a node that also runs a forward operator, and what is inside them."""
    holder = climb(parent, parent, node)  # the node around a span
    holds = np.zeros(len(parent) + 1, dtype=bool)
    holds[holder[root]] = True
    holds[-1] = False
    records = inside & ~node & (trace.host.sequence >= 0) & first_of(holder, holds[:-1], False).astype(bool)
    found: Array = climb(np.arange(len(parent)), parent, records) >= 0
    return found & inside
