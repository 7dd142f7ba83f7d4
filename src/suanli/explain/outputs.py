"""What a convolution gave out, where the trace keeps no strides: from its backward operator, else from who used it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.ops.call import Call, Shape
from suanli.explain.recompute import is_backward
from suanli.nouns.trace import OpDetail, Trace

Array = npt.NDArray[Any]
_NEAR = 16  # operators after a convolution among which its user is looked for


def convolution_outputs(trace: Trace, parent: Array, rows: Array) -> dict[int, Shape]:
    """Shape of the output of each of `rows` (of Host), where something in the trace shows it."""
    gradients = _gradients(trace) if len(rows) else {}
    found = {}
    for row in rows.tolist():
        shape = _by_sequence(trace, parent, row, gradients) or _by_user(trace, row)
        if shape is not None:
            found[row] = shape
    return found


def _gradients(trace: Trace) -> dict[int, int]:
    """Sequence number of the forward -> row of the backward operator, which is given the output's gradient."""
    host = trace.host
    named = np.array([is_backward(name) for name in trace.names], dtype=bool)[host.name]
    rows = np.nonzero((named | (host.forward_thread > 0)) & (host.sequence >= 0) & (host.detail >= 0))[0]
    return dict(zip(host.sequence[rows].tolist(), rows.tolist(), strict=True))


def _by_sequence(trace: Trace, parent: Array, row: int, gradients: dict[int, int]) -> Shape | None:
    """The first argument of the backward operator that has the number of this one or of the one around it."""
    host, at = trace.host, row
    while at >= 0:
        backward = gradients.get(int(host.sequence[at]))
        if backward is not None:
            return _fitting(_detail(trace, row), [Call("", _detail(trace, backward)).shape(0)])
        at = int(parent[at])
    return None


def _by_user(trace: Trace, row: int) -> Shape | None:
    """The first tensor that fits among the arguments of the operators that follow on the thread."""
    host, seen = trace.host, 0
    for after in range(row + 1, len(host)):
        if host.thread[after] != host.thread[row] or seen >= _NEAR:
            return None
        if host.start_ns[after] < host.end_ns[row] or host.detail[after] < 0:
            continue
        seen += 1
        shape = _fitting(_detail(trace, row), Call("", _detail(trace, after)).shapes())
        if shape is not None:
            return shape
    return None


def _fitting(detail: OpDetail, shapes: list[Shape | None] | list[Shape]) -> Shape | None:
    """The first of `shapes` that the convolution can have given: its samples and channels, and no larger grid."""
    call = Call("", detail)
    x, weight = call.shape(0), call.shape(1)
    if x is None or weight is None:
        return None
    for shape in shapes:
        if shape is None or len(shape) != len(x) or shape[:2] != (x[0], weight[0]):
            continue
        grids = zip(shape[2:], x[2:], weight[2:], strict=True)
        if prod(shape[2:]) and all(out <= size + window for out, size, window in grids):
            return shape
    return None


def _detail(trace: Trace, row: int) -> OpDetail:
    detail: OpDetail = trace.details[trace.host.detail[row]]
    return detail
