"""Which kernels of different ranks are the same call: by group and number, else by group and order within a step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suanli.explain.communication import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, P2P, REDUCE, REDUCE_SCATTER
from suanli.explain.fleet.pool import Fleet
from suanli.explain.intervals import Array

# No rank of these can end before the last has come.
_SYNCHRONISING = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, "barrier")
# A rank of these can, as can a send that names its peer.
_EARLY = (BROADCAST, REDUCE, "gather", "scatter")
_SEND, _RECEIVE = re.compile(r"send", re.I), re.compile(r"recv|receive", re.I)

ALONE = "no other rank here has the call"
UNEVEN = "the ranks have different numbers of such calls in the step, and the file does not number them"
APART = "on aligned clocks the kernels cannot be one call: they do not overlap, or end too far apart"


@dataclass(frozen=True, eq=False)
class Matched:
    """Of each row of calls its instance (0 …), -1 for none; `reasons` counts the rows that have none."""

    instance: Array
    count: int
    synchronising: Array  # bool, beside the rows: nobody leaves such a call before the last has come
    leaves_early: Array  # bool, beside the rows: somebody can
    reasons: Mapping[str, int]

    @property
    def rows(self) -> Array:
        """Rows that have an instance."""
        return np.flatnonzero(self.instance >= 0)


def match(fleet: Fleet) -> Matched:
    """Instances of at least two units."""
    calls = fleet.calls
    if not len(calls["unit"]):
        nothing = np.zeros(0, dtype=bool)
        return Matched(np.zeros(0, dtype=np.int64), 0, nothing, nothing, {})
    source, target = _ends(fleet)
    pair = source >= 0
    numbered = (calls["sequence"] >= 0) & ~pair
    family = _numbered([
        np.where(pair, -2, calls["collective"]), calls["group"], calls["members"], source, target,
        np.where(numbered, calls["sequence"], -1), np.where(numbered, -1, calls["step"]),
    ])  # fmt: skip
    uneven = _uneven(family, calls["unit"]) & ~numbered
    instance = _numbered([family, calls["nth"]])
    units = _distinct(instance, calls["unit"])
    alone = (units < 2)[instance] & ~uneven
    reasons = {ALONE: int(alone.sum()), UNEVEN: int(uneven.sum())}
    kept = np.where(uneven | alone, -1, instance)
    waits = _kind(fleet, _SYNCHRONISING)
    return Matched(
        *_dense(kept), waits, _kind(fleet, _EARLY) | pair, {reason: count for reason, count in reasons.items() if count}
    )


def without(found: Matched, instances: Array) -> Matched:
    """The same without instances that turned out to be none (bool, one an instance)."""
    gone = (found.instance >= 0) & np.append(instances, False)[found.instance]
    reasons = {**found.reasons, APART: found.reasons.get(APART, 0) + int(gone.sum())}
    return Matched(*_dense(np.where(gone, -1, found.instance)), found.synchronising, found.leaves_early, reasons)


def _kind(fleet: Fleet, collectives: tuple[str, ...]) -> Array:
    """bool: rows of these collectives."""
    places = [place for place, word in enumerate(fleet.words["collective"]) if word in collectives]
    rows: Array = np.isin(fleet.calls["collective"], places)
    return rows


def _dense(instance: Array) -> tuple[Array, int]:
    """Instances renumbered without holes, and how many there are."""
    distinct, back = np.unique(instance, return_inverse=True)
    shift = int(len(distinct) > 0 and distinct[0] == -1)
    return back.reshape(-1) - shift, len(distinct) - shift


def _ends(fleet: Fleet) -> tuple[Array, Array]:
    """Rank that sends and rank that receives, of sends and receives that name their peer; else -1.

    The peer is a place in the group, as torch and NCCL have it, where the group lists its ranks; else a rank.
    """
    calls = fleet.calls
    own = np.array([unit.rank for unit in fleet.units], dtype=np.int64)[calls["unit"]]
    peer = calls["peer"].copy()
    for place, text in enumerate(fleet.words["members"]):
        members = np.array([int(each) for each in text.split(",")], dtype=np.int64)
        rows = (calls["members"] == place) & (peer >= 0) & (peer < len(members))
        peer[rows] = members[peer[rows]]
    pair = _kind(fleet, (P2P,)) & (peer >= 0) & (calls["call"] >= 0)
    sends = _named(fleet, calls["call"], _SEND) & pair
    receives = _named(fleet, calls["call"], _RECEIVE) & pair & ~sends
    source = np.where(sends, own, np.where(receives, peer, -1))
    return source, np.where(sends, peer, np.where(receives, own, -1))


def _named(fleet: Fleet, places: Array, pattern: re.Pattern[str]) -> Array:
    fits = np.array([*(bool(pattern.search(word)) for word in fleet.words["call"]), False], dtype=bool)
    found: Array = fits[places]
    return found


def _numbered(keys: list[Array]) -> Array:
    """Rows that are equal in all keys have one number, 0 …, in the order of the keys."""
    order = np.lexsort(keys[::-1])
    changed = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.concatenate(([0], np.cumsum(changed)))
    return numbers


def _distinct(group: Array, unit: Array) -> Array:
    """How many different units each group has."""
    pairs = np.unique(group * (int(unit.max()) + 1) + unit)
    return np.bincount(pairs // (int(unit.max()) + 1))


def _uneven(family: Array, unit: Array) -> Array:
    """bool: rows of families in which some unit has more rows than another."""
    width = int(unit.max()) + 1
    pairs, count = np.unique(family * width + unit, return_counts=True)
    most = np.zeros(int(family.max()) + 1, dtype=np.int64)
    least = np.full(len(most), np.iinfo(np.int64).max)
    np.maximum.at(most, pairs // width, count)
    np.minimum.at(least, pairs // width, count)
    rows: Array = (most != least)[family]
    return rows
