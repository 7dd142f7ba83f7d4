"""What the operators of a trace cost: each different call once, however often it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.grouping import alike
from suanli.explain.ops import convolutions, memory, table
from suanli.explain.ops.call import NO_SHAPES, Call, Cost, Shape, unknown
from suanli.explain.outputs import convolution_outputs
from suanli.nouns.trace import OpDetail, Trace

Array = npt.NDArray[Any]
_NOTHING = OpDetail()


@dataclass(frozen=True, eq=False)
class Names:
    """What the names of a trace are to this package. Columns beside `Trace.names`."""

    multiplies: Array  # bool: has a rule for FLOPs
    moves: Array  # bool: has a rule for bytes


def known_names(trace: Trace) -> Names:
    """Each name looked up once."""
    multiplies = np.array([table.rule_of(name) is not None for name in trace.names], dtype=bool)
    moves = np.array([memory.has_rule(name) for name in trace.names], dtype=bool)
    return Names(multiplies, moves)


class Costs:
    """Costs of rows of `Host`. Calls that are alike in everything that counts are looked up once."""

    def __init__(self, trace: Trace, parent: Array, *, full_pairs: bool) -> None:
        self._trace, self._parent, self._full_pairs = trace, parent, full_pairs
        self._outputs: dict[int, Shape] = {}

    def flops(self, rows: Array) -> tuple[list[Cost], Array]:
        """Different costs, and the place among them of each of `rows`."""
        self._outputs = convolution_outputs(self._trace, self._parent, self._without_strides(rows))
        return self._each(rows, _cost)

    def product_bytes(self, rows: Array) -> tuple[list[float | None], Array]:
        """Least bytes of products, as `flops`."""
        return self._each(rows, memory.product_bytes)

    def moved_bytes(self, rows: Array) -> tuple[list[float | None], Array]:
        """Least bytes of what multiplies nothing, as `flops`."""
        return self._each(rows, memory.bytes_of)

    def call(self, row: int) -> Call:
        """One call, with the one around it."""
        outer = int(self._parent[row])
        around = None if outer < 0 else Call(self._name(outer), self._detail(outer))
        return Call(self._name(row), self._detail(row), around, self._outputs.get(row), self._full_pairs)

    def _each(self, rows: Array, of: Callable[[Call], Any]) -> tuple[list[Any], Array]:
        if not len(rows):
            return [], np.zeros(0, dtype=np.int64)
        first, place = alike(*self._keys(rows))
        return [of(self.call(int(rows[at]))) for at in first], place

    def _keys(self, rows: Array) -> list[Array]:
        """What tells calls apart: name and detail of each and of the one around it, and the output found."""
        host = self._trace.host
        outer = self._parent[rows]
        around = [np.where(outer < 0, -1, column[outer]) for column in (host.name, host.detail)]
        keys = [host.name[rows], host.detail[rows], *around]
        if self._outputs:
            shapes = {shape: i for i, shape in enumerate(dict.fromkeys(self._outputs.values()))}
            keys.append(np.array([shapes[self._outputs[row]] if row in self._outputs else -1 for row in rows.tolist()]))
        return keys

    def _without_strides(self, rows: Array) -> Array:
        """Convolutions whose scalar arguments were not recorded."""
        host = self._trace.host
        is_one = np.array([name in convolutions.FORWARD for name in self._trace.names], dtype=bool)
        bare = np.array([detail.concrete is None for detail in self._trace.details] + [False], dtype=bool)
        kept: Array = rows[is_one[host.name[rows]] & bare[host.detail[rows]]]  # detail -1 takes the last place
        return kept

    def _name(self, row: int) -> str:
        name: str = self._trace.names[self._trace.host.name[row]]
        return name

    def _detail(self, row: int) -> OpDetail:
        place = self._trace.host.detail[row]
        detail: OpDetail = self._trace.details[place] if place >= 0 else _NOTHING
        return detail


def _cost(call: Call) -> Cost:
    """The call's cost; it has a rule, or it would not be asked for."""
    if call.detail.dims is None:
        return unknown(NO_SHAPES)
    found = table.cost_of(call)
    assert found is not None, call.name
    return found
