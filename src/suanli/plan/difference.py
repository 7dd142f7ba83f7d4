"""Two layouts entry by entry: where one is faster, where it is smaller."""

from __future__ import annotations

from collections.abc import Mapping

from suanli.nouns.plans import Difference, DifferenceRow, PlannedLayout

NOTHING = 1e-12  # of both together: an entry below that is none


def difference(first: PlannedLayout, second: PlannedLayout) -> Difference:
    """Second less first. Raises AssertionError where the differences do not add up to that of the totals."""
    step = _rows({each.entry: each.seconds for each in first.account},
                 {each.entry: each.seconds for each in second.account})  # fmt: skip
    memory = _rows(_terms(first), _terms(second))
    total = second.step_time_s - first.step_time_s
    assert abs(sum(row.difference for row in step) - total) <= 1e-9 * max(first.step_time_s, second.step_time_s)
    assert sum(row.difference for row in memory) == second.memory_bytes["total"] - first.memory_bytes["total"]
    return Difference(first=first, second=second, step=step, memory=memory)


def _terms(layout: PlannedLayout) -> dict[str, float]:
    return {name: size for name, size in layout.memory_bytes.items() if name != "total"}


def _rows(first: Mapping[str, float], second: Mapping[str, float]) -> tuple[DifferenceRow, ...]:
    """Entries that either has, largest difference first."""
    names = dict.fromkeys([*first, *second])
    pairs = [(name, first.get(name, 0), second.get(name, 0)) for name in names]
    least = NOTHING * sum([*first.values(), *second.values()])  # rounding of entries that are none
    rows = [DifferenceRow(entry=name, first=a, second=b, difference=b - a) for name, a, b in pairs if max(a, b) > least]
    return tuple(sorted(rows, key=lambda row: -abs(row.difference)))
