"""Summaries of ranks put together: one table of communication kernels, one of kernels by name, by rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.kernels import KINDS
from suanli.nouns.attribution import WorkClass
from suanli.nouns.explained import DeviceAccount
from suanli.nouns.summary import COLUMNS, WORDS, RankAbout, RankSummary, StepTime

# What the report needs of a summary's columns; a reader need not load the others.
NEEDED = tuple(name for name in COLUMNS if name not in ("stream", "formula", "flops"))
_OF_CALLS = tuple(name for name in NEEDED if name not in ("device", "duration_ns", "name", "work_class"))
_OF_KERNELS = ("unit", "name", "count", "total_ns")
_COMPUTES = (KINDS[WorkClass.MATMUL], KINDS[WorkClass.COMPUTE])


@dataclass(frozen=True, eq=False)
class Unit:
    """One device of one rank."""

    rank: int
    device: int
    about: RankAbout
    account: DeviceAccount

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """The steps of this device."""
        return tuple(each for each in self.about.steps if each.device == self.device)


@dataclass(frozen=True, eq=False)
class Fleet:
    """All units, sorted by rank and device, with their calls and kernels as columns."""

    units: tuple[Unit, ...]
    calls: Mapping[str, Array]  # unit, start_ns, end_ns and columns of COLUMNS
    kernels: Mapping[str, Array]  # unit, name, count, total_ns
    words: Mapping[str, tuple[str, ...]]
    without_work: tuple[tuple[int, str], ...] = ()  # rank and trace of summaries without any device

    def word(self, column: str, place: int) -> str | None:
        """The text of a place in a column; None for -1."""
        return self.words[column][place] if place >= 0 else None


@dataclass(eq=False)
class _Words:
    """Texts of one column over all summaries, each once."""

    places: dict[str, int] = field(default_factory=dict)

    def table(self, words: tuple[str, ...]) -> Array:
        """Old place → new place; -1 stays."""
        return np.array([*(self.places.setdefault(each, len(self.places)) for each in words), -1], dtype=np.int64)


def pool(ranked: Iterable[tuple[int, RankSummary]]) -> Fleet:
    """One fleet of summaries that come in the order of their ranks, each looked at once and let go."""
    units: list[Unit] = []
    words = {name: _Words() for name in WORDS if name in NEEDED}
    calls: list[dict[str, Array]] = []
    kernels: list[dict[str, Array]] = []
    empty: list[tuple[int, str]] = []
    for rank, summary in ranked:
        if not summary.about.devices:
            empty.append((rank, summary.about.path))
        first = len(units)
        units += [Unit(rank, each.device, summary.about, each) for each in summary.about.devices]
        unit = _unit_of(summary, units[first:], first)
        new = {name: table.table(summary.words[name])[summary.columns[name]] for name, table in words.items()}
        calls.append(_calls(summary, new, unit))
        kernels.append(_kernels(summary, new["name"], unit))
    assert all((a.rank, a.device) < (b.rank, b.device) for a, b in itertools.pairwise(units)), "by rank"
    known = {name: tuple(table.places) for name, table in words.items()}
    return Fleet(
        tuple(units), _joined(calls, ("unit", "end_ns", *_OF_CALLS)), _joined(kernels, _OF_KERNELS), known, tuple(empty)
    )


def _unit_of(summary: RankSummary, units: list[Unit], first: int) -> Array:
    """The unit of each row; -1 for a device without an account (a broken file of somebody else)."""
    found = np.full(len(summary), -1, dtype=np.int64)
    for place, unit in enumerate(units):
        found[summary.columns["device"] == unit.device] = first + place
    return found


def _calls(summary: RankSummary, new: Mapping[str, Array], unit: Array) -> dict[str, Array]:
    rows = np.flatnonzero((summary.columns["collective"] >= 0) & (unit >= 0))
    columns = {name: new.get(name, summary.columns[name])[rows].astype(np.int64) for name in _OF_CALLS}
    return columns | {"unit": unit[rows], "end_ns": columns["start_ns"] + summary.columns["duration_ns"][rows]}


def _kernels(summary: RankSummary, name: Array, unit: Array) -> dict[str, Array]:
    """Runs and time of each kernel that computes, on each unit."""
    classes = [place for place, each in enumerate(summary.words["work_class"]) if each in _COMPUTES]
    rows = np.flatnonzero(np.isin(summary.columns["work_class"], classes) & (unit >= 0) & (name >= 0))
    width = int(name.max(initial=0)) + 1
    distinct, back = np.unique(unit[rows] * width + name[rows], return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, back.reshape(-1), summary.columns["duration_ns"][rows])
    count = np.bincount(back.reshape(-1), minlength=len(distinct))
    return {"unit": distinct // width, "name": distinct % width, "count": count, "total_ns": total}


def _joined(parts: list[dict[str, Array]], names: tuple[str, ...]) -> dict[str, Array]:
    return {name: np.concatenate([np.zeros(0, dtype=np.int64), *(part[name] for part in parts)]) for name in names}
