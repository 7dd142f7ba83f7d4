"""Which rank each summary is: as its trace says, else as its file is named, else by its place, which is said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suanli.errors import Fault, InputError
from suanli.nouns.fleet import LostRank
from suanli.nouns.summary import RankAbout

_RANK = re.compile(r"(?i)(?<![a-z])rank\W{0,2}_?(\d{1,7})(?!\d)")
_SHOWN = 3
_SPANS = 12


@dataclass(frozen=True)
class Ranked:
    """Places in the list of summaries, in the order of their ranks; copies of one summary are left out."""

    places: tuple[int, ...]
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = ()


def rank_of_name(path: str) -> int | None:
    """The number after `rank` in a file's name, the last of several, else in its folder's; None where there is none."""
    parts = Path(path).parts[-2:]
    for part in reversed(parts):
        found = _RANK.findall(part)
        if found:
            return int(found[-1])
    return None


def rank_all(abouts: Sequence[RankAbout]) -> Ranked:
    """The rank of every summary, in the order they are given. Raises InputError where two traces have the same."""
    kept = _without_copies(abouts)
    said = {place: _said(abouts[place]) for place in kept}
    taken = {rank for rank in said.values() if rank is not None}
    counted = [place for place in kept if said[place] is None]
    free = (rank for rank in range(len(abouts) + len(taken)) if rank not in taken)
    found = {place: rank if rank is not None else next(free) for place, rank in said.items()}
    _check(abouts, found)
    order = sorted(kept, key=lambda place: found[place])
    notes = []
    if len(kept) < len(abouts):
        notes.append(f"summaries of the same trace as another, left out: {len(abouts) - len(kept)}")
    if counted:
        names = ", ".join(Path(abouts[place].path).name for place in counted[:_SHOWN])
        more = f" and {len(counted) - _SHOWN} more" if len(counted) > _SHOWN else ""
        notes.append(f"neither the trace nor the file name says a rank: numbered in the order of names ({names}{more})")
    return Ranked(tuple(order), tuple(found[place] for place in order), tuple(notes))


def missing(world_size: int | None, ranks: Sequence[int], lost: Sequence[LostRank]) -> tuple[LostRank, ...]:
    """Ranks of the job that have no file at all, as one entry; none where the size of the job is not said."""
    if world_size is None:
        return ()
    told = {int(each.ranks) for each in lost if each.ranks.isdigit()}
    absent = sorted(set(range(world_size)) - set(ranks) - told)
    if not absent:
        return ()
    return (LostRank(path=None, ranks=spans(absent), reason=f"no trace of {len(absent)} of {world_size} ranks"),)


def spans(numbers: Sequence[int]) -> str:
    """Sorted numbers as 0–3, 7, 9–11."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [f"{first}" if first == last else f"{first}–{last}" for first, last in found[:_SPANS]]
    return ", ".join(shown) + (" …" if len(found) > _SPANS else "")


def _said(about: RankAbout) -> int | None:
    return about.rank if about.rank is not None else rank_of_name(about.path)


def _without_copies(abouts: Sequence[RankAbout]) -> list[int]:
    """Of summaries of the same file (a trace and its summary in one folder) the first."""
    seen: dict[str, int] = {}
    return [
        place for place, about in enumerate(abouts)
        if not about.digest or seen.setdefault(f"{about.digest} {about.gpu}", place) == place
    ]  # fmt: skip


def _check(abouts: Sequence[RankAbout], found: dict[int, int]) -> None:
    paths = defaultdict(list)
    for place, rank in found.items():
        paths[rank].append(abouts[place].path)
    faults = [
        Fault(
            code="duplicate_rank", message=f"{len(each)} traces are of rank {rank}", where=each[0],
            got=", ".join(Path(path).name for path in each[:_SHOWN]) + (" …" if len(each) > _SHOWN else ""),
            expected="one trace a rank", hint="Give one job and one window of it at a time.",
        )
        for rank, each in sorted(paths.items()) if len(each) > 1
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
