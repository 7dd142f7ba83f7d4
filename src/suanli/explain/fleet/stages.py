"""Stages of a pipeline: from process groups that are called so, else from who sends to whom."""

from __future__ import annotations

import re

import numpy as np

from suanli.explain.communication import P2P
from suanli.explain.fleet.pool import Fleet
from suanli.nouns.fleet import RankRow, Stage

_PIPELINE = re.compile(r"(?i)(^|[^a-z])pp([^a-z]|$)|pipe(?!.*embedding)")


def stage_of(fleet: Fleet) -> dict[int, int]:
    """Rank → its stage; empty where no pipeline is seen."""
    return _by_groups(fleet) or _by_peers(fleet)


def stages(rows: tuple[RankRow, ...], of: dict[int, int]) -> tuple[Stage, ...]:
    """One row a stage; none for fewer than two stages."""
    places = sorted({of[row.rank] for row in rows if row.rank in of})
    if len(places) < 2:
        return ()
    members = {place: [row for row in rows if of.get(row.rank) == place] for place in places}
    compute = {place: _median([row.compute_s for row in each]) for place, each in members.items()}
    mean = sum(compute.values()) / len(compute)
    return tuple(
        Stage(
            stage=place,
            ranks=tuple(sorted({row.rank for row in each})),
            compute_s=compute[place],
            idle_s=_median([row.idle_s for row in each]),
            exposed_communication_s=_median([row.exposed_communication_s for row in each]),
            relative=compute[place] / mean if mean else None,
        )
        for place, each in members.items()
    )


def _median(values: list[float]) -> float:
    return float(np.median(values))


def _by_groups(fleet: Fleet) -> dict[int, int]:
    """Place of each rank in the lists of the groups that are called pipelines."""
    found: dict[int, int] = {}
    calls = fleet.calls
    kinds = np.unique(np.stack([calls["group"], calls["group_label"], calls["members"]]), axis=1).T
    for group, label, members in kinds.tolist():
        said = " ".join(filter(None, (fleet.word("group", group), fleet.word("group_label", label))))
        listed = fleet.word("members", members)
        if listed and "," in listed and _PIPELINE.search(said):
            for place, rank in enumerate(listed.split(",")):
                found.setdefault(int(rank), place)
    return found


def _by_peers(fleet: Fleet) -> dict[int, int]:
    """Chains of ranks that send to each other: from the end with the lower rank, 0, 1, 2 …; all chains equally long."""
    beside = _neighbours(fleet)
    if not beside or any(len(each) > 2 for each in beside.values()):
        return {}
    found: dict[int, int] = {}
    lengths = set()
    for end in sorted(rank for rank, each in beside.items() if len(each) == 1):
        if end not in found:
            chain = _chain(end, beside)
            lengths.add(len(chain))
            found |= {rank: place for place, rank in enumerate(chain)}
    return found if len(lengths) == 1 and len(found) == len(beside) else {}


def _neighbours(fleet: Fleet) -> dict[int, set[int]]:
    calls = fleet.calls
    named = [place for place, word in enumerate(fleet.words["collective"]) if word == P2P]
    rows = np.flatnonzero(np.isin(calls["collective"], named) & (calls["peer"] >= 0))
    pairs = np.unique(np.stack([calls["unit"][rows], calls["peer"][rows], calls["members"][rows]]), axis=1).T
    beside: dict[int, set[int]] = {}
    for unit, peer, members in pairs.tolist():
        listed = (fleet.word("members", members) or "").split(",")
        other = int(listed[peer]) if listed != [""] and peer < len(listed) else peer
        beside.setdefault(fleet.units[unit].rank, set()).add(other)
        beside.setdefault(other, set()).add(fleet.units[unit].rank)
    return beside


def _chain(end: int, beside: dict[int, set[int]]) -> list[int]:
    chain, before = [end], -1
    while True:
        following = [each for each in beside[chain[-1]] if each != before]
        if not following:
            return chain
        before = chain[-1]
        chain.append(following[0])
