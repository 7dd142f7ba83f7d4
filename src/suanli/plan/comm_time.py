"""Seconds of collectives inside a block, and where the ranks of each group stand: what crosses nodes follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Array = Any
_LAUNCHES, _TENSOR, _CONTEXT, _EXPERT, _ACROSS, _SPANS = 4, 5, 6, 7, 8, 9  # columns of compute_time.COLUMNS
_SOCKETS = 2  # of a host, each with its share of the node's GPUs


@dataclass(frozen=True)
class Places:
    """A cluster as its groups see it: ranks in order tp, cp, dp, pp, nodes filled one after another."""

    node: int  # GPUs that one fast domain holds
    fabric: Any

    def inside(self, ranks: Array, stride: Array) -> Array:
        """Ranks of a group with that stride that share a node."""
        import numpy as np  # noqa: PLC0415

        return np.clip(np.floor(self.node / stride), 1, ranks)


def collective(tally: Any, at: Any, kind: str, moved_bytes: Array, *, backward: bool) -> None:
    """Add one exchange of a block: `reduce` over tp (in the pass named only), `ring` of keys and values over cp,
    `exchange` of routed tokens over ep (to the experts and back, in both passes).
    """
    timed, places = at.curves.collective_s, at.places
    if kind == "reduce":
        inside = places.inside(at.tp, 1)
        whole = timed("all_reduce", moved_bytes, at.tp, places.fabric, inside)
        parts = [timed(each, moved_bytes, at.tp, places.fabric, inside) for each in ("reduce_scatter", "all_gather")]
        once = whole + at.sp * (parts[0] + parts[1] - whole)
        across = at.tp > inside
        spans = (inside * _SOCKETS > places.node) * (1 + at.sp)
        for column, value in ((_TENSOR, once * ~across), (_ACROSS, once * across), (_SPANS, spans),
                              (_LAUNCHES, (at.tp > 1) * (1 + at.sp))):  # fmt: skip
            tally.add(column, *((0.0, value) if backward else (value, 0.0)))
    elif kind == "ring":
        inside = places.inside(at.cp, at.tp)
        once = timed("all_gather", moved_bytes * at.cp, at.cp, places.fabric, inside)
        tally.add(_CONTEXT, once, 2 * once)  # backward also sends their gradients
        tally.add(_LAUNCHES, 2 * (at.cp - 1), 4 * (at.cp - 1))
    else:
        inside = places.inside(at.ep, at.etp)
        once = timed("all_to_all", moved_bytes, at.ep, places.fabric, inside)
        tally.add(_EXPERT, 2 * once, 2 * once)
        tally.add(_LAUNCHES, 2 * (at.ep > 1), 2 * (at.ep > 1))
