"""Collectives over ranks: skew, and the rate of the transfer itself, without the waiting that kernels contain."""

from __future__ import annotations

import numpy as np

from suanli.explain.communication import formula_of, rates
from suanli.explain.fleet.arrivals import Arrivals
from suanli.explain.fleet.pool import Fleet
from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.fleet import FleetCollective

_KEYS = ("collective", "group", "group_label", "members", "group_size")


def fleet_collectives(fleet: Fleet, found: Arrivals) -> tuple[FleetCollective, ...]:
    """One row a collective and group, the longest waiting first."""
    if not len(found.last):
        return ()
    # of an instance what its first row says: a send and its receive are one call
    _, first = np.unique(found.instance, return_index=True)
    rows = found.rows[first]
    _, group = np.unique(np.stack([fleet.calls[key][rows] for key in _KEYS]), axis=1, return_inverse=True)
    sizes = np.full(len(first), -1, dtype=np.int64)
    np.maximum.at(sizes, found.instance, fleet.calls["bytes"][found.rows])
    waiting = np.zeros(len(first), dtype=np.int64)
    np.add.at(waiting, found.instance, found.waiting_ns)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(group))[:-1])
    by_group = np.split(np.argsort(group[found.instance], kind="stable"),
                        np.cumsum(np.bincount(group[found.instance]))[:-1])  # fmt: skip
    made = [
        _row(fleet, found, int(rows[part[0]]), part, np.unique(found.unit[members]), sizes[part], waiting[part])
        for part, members in zip(parts, by_group, strict=True)
    ]
    return tuple(sorted(made, key=lambda row: (-row.waiting_s, -row.total_s, row.collective, row.group or "")))


def _row(
    fleet: Fleet, found: Arrivals, row: int, instances: Array, units: Array, sizes: Array, waiting: Array
) -> FleetCollective:
    collective = fleet.word("collective", int(fleet.calls["collective"][row])) or ""
    size = int(fleet.calls["group_size"][row])
    ranks = size if size > 0 else None
    total = int(sizes.sum()) if (sizes >= 0).all() else None
    transfer = seconds(int(found.transfer_ns[instances].sum()))
    algbw, busbw, reasons = rates(collective, ranks, total, transfer)
    link = _link(fleet, units)
    last, times = _usual(found.last[instances])
    if link is None:
        reasons = {**reasons, "above_link": "the link of the device is not known"}
    return FleetCollective(
        collective=collective,
        group=_group(fleet, row),
        group_size=ranks,
        ranks=len(units),
        calls=len(instances),
        total_s=seconds(int(found.whole_ns[instances].sum())),
        waiting_s=seconds(int(waiting.sum())),
        skew_median_s=seconds(float(np.median(found.skew_ns[instances]))),
        skew_max_s=seconds(int(found.skew_ns[instances].max())),
        transfer_s=transfer,
        last_rank=fleet.units[last].rank,
        last_fraction=times / len(instances),
        bytes=total,
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=busbw,
        link_bytes_per_s=link,
        above_link=busbw > link if busbw is not None and link is not None else None,
        formula=formula_of(collective),
        reasons=reasons,
    )


def _group(fleet: Fleet, row: int) -> str | None:
    name, label = (fleet.word(key, int(fleet.calls[key][row])) for key in ("group", "group_label"))
    return f"{name} ({label})" if name and label else name or label


def _link(fleet: Fleet, units: Array) -> float | None:
    """One direction of the slowest link among the devices; None where one is not known."""
    found = [fleet.units[unit].about.links.get(fleet.units[unit].device) for unit in units]
    known = [each for each in found if each is not None]
    return min(known) / 2 if len(known) == len(found) and known else None


def _usual(last: Array) -> tuple[int, int]:
    """The unit that came last most often, the first of several, and how often."""
    units, count = np.unique(last, return_counts=True)
    return int(units[count.argmax()]), int(count.max())
