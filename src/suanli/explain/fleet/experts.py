"""Ranks that exchange tokens with experts: how evenly the bytes that come in are spread over them."""

from __future__ import annotations

import numpy as np

from suanli.explain.communication import ALL_TO_ALL
from suanli.explain.fleet.pool import Fleet
from suanli.explain.intervals import Array
from suanli.nouns.fleet import ExpertGroup

_EXCHANGES = (ALL_TO_ALL, "dispatch", "combine")
NONE, UNSAID = "no all-to-all, dispatch or combine", "the traces do not say how many bytes all-to-alls move"


def expert_groups(fleet: Fleet) -> tuple[tuple[ExpertGroup, ...], str | None]:
    """Groups of two ranks or more, the least even first, and why there are none."""
    calls = fleet.calls
    named = [place for place, word in enumerate(fleet.words["collective"]) if word in _EXCHANGES]
    rows = np.flatnonzero(np.isin(calls["collective"], named))
    if not len(rows):
        return (), NONE
    said = rows[calls["out_bytes"][rows] >= 0]
    if not len(said):
        return (), UNSAID
    _, group = np.unique(np.stack([calls["group"][said], calls["members"][said]]), axis=1, return_inverse=True)
    group = group.reshape(-1)
    made = [_group(fleet, said[group == each]) for each in range(int(group.max()) + 1)]
    kept = [each for each in made if len(each.ranks) > 1]
    return tuple(sorted(kept, key=lambda each: (-(each.imbalance or 0), each.ranks))), None if kept else NONE


def _group(fleet: Fleet, rows: Array) -> ExpertGroup:
    calls = fleet.calls
    units, back, count = np.unique(calls["unit"][rows], return_inverse=True, return_counts=True)
    received = np.zeros(len(units), dtype=np.int64)
    np.add.at(received, back.reshape(-1), calls["out_bytes"][rows])
    mean = float(received.mean())
    return ExpertGroup(
        group=fleet.word("group", int(calls["group"][rows[0]])),
        ranks=tuple(fleet.units[unit].rank for unit in units),
        calls=int(count.max()),
        received_bytes=tuple(received.tolist()),
        mean_bytes=mean,
        busiest=fleet.units[int(units[received.argmax()])].rank,
        imbalance=float(received.max()) / mean - 1 if mean else None,
    )
