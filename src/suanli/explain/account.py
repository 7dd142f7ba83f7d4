"""The account of a device: one owner an instant, from idle time to useful FLOPs, closing to the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suanli.explain.idle import PARTS
from suanli.explain.intervals import Array
from suanli.explain.sweep import Pieces, owned_ns
from suanli.explain.usage import seconds
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import Account, AccountEntry
from suanli.nouns.trace import DeviceWork
from suanli.units import GIGA

COMMUNICATION, PEER, COPIES = "exposed communication", "exposed peer copies", "exposed copies"
OTHER = "non-matmul kernels"
MATMUL, UNATTRIBUTED, NO_PEAK = "matmul", "matmul, not attributed", "matmul, no peak of its dtype"
INEFFICIENCY, RECOMPUTE, USEFUL = "matmul inefficiency", "recompute", "useful model FLOPs"
ENTRIES = (
    *PARTS, COMMUNICATION, PEER, COPIES, OTHER, MATMUL, UNATTRIBUTED, NO_PEAK, INEFFICIENCY, RECOMPUTE, USEFUL,
)  # fmt: skip
CLOSES_WITHIN = 1e-9  # of the window

# Who owns an instant, first to last. Of matmul work that whose FLOPs stand against a peak goes first, so that its
# time never is less than its FLOPs need because unknown work runs beside it.
SPLIT, WITHOUT_PEAK, WITHOUT_FLOPS, COMPUTE_RANK, COMMUNICATION_RANK, PEER_RANK, COPY_RANK = range(7)
_RANK_OF_CLASS = np.array(
    [WITHOUT_FLOPS, COMPUTE_RANK, COMMUNICATION_RANK, PEER_RANK, COPY_RANK], dtype=np.int8
)  # by WorkClass
_ENTRY_OF_RANK = {
    WITHOUT_PEAK: NO_PEAK, WITHOUT_FLOPS: UNATTRIBUTED, COMPUTE_RANK: OTHER, COMMUNICATION_RANK: COMMUNICATION,
    PEER_RANK: PEER, COPY_RANK: COPIES,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ideal:
    """Columns beside the rows of work: their owner's rank, and the time their FLOPs take at the peak of their dtype."""

    rank: Array
    ideal_s: Array
    recompute: Array
    reasons: Mapping[str, str]  # entry → why its time is not split
    faster: int  # rows that would be faster than their peak


def ideal_of(
    work: DeviceWork, work_class: Array, attribution: Attribution | None, peaks: Mapping[str, float], reason: str | None
) -> Ideal:
    """Ranks and ideal seconds. `reason` says why there are no peaks, where there are none."""
    rank, ideal, again = _RANK_OF_CLASS[work_class], np.zeros(len(work)), np.zeros(len(work), dtype=bool)
    if not peaks:
        return Ideal(rank, ideal, again, {MATMUL: reason or "the device has no sourced peak"}, 0)
    if attribution is None:
        return Ideal(rank, ideal, again, {UNATTRIBUTED: "no FLOPs were attributed to kernels"}, 0)
    known = (work_class == WorkClass.MATMUL) & attribution.flops_known
    rates = np.array([peaks.get(dtype, 0.0) for dtype in attribution.dtypes] + [0.0])[attribution.dtype]
    np.divide(attribution.flops, rates, out=ideal, where=known & (rates > 0))
    faster = ideal * GIGA > work.end_ns - work.start_ns
    rank[known & (rates == 0)] = WITHOUT_PEAK
    rank[known & (rates > 0) & ~faster] = SPLIT
    ideal[rank != SPLIT] = 0
    reasons = {NO_PEAK: _no_peak(attribution, known & (rates == 0))}
    return Ideal(rank, ideal, attribution.recompute & (rank == SPLIT), reasons, int((faster & known).sum()))


def _no_peak(attribution: Attribution, rows: Array) -> str:
    places = np.unique(attribution.dtype[rows])
    names = [attribution.dtypes[place] if place >= 0 else "unknown" for place in places]
    return f"the device has no sourced peak of {', '.join(names)}"


def entries_s(pieces: Pieces, ideal: Ideal, length_ns: Array, periods: int) -> dict[str, Array]:
    """Entry → seconds of each period, idle left out. `length_ns` is the duration of every row."""
    rank = ideal.rank[pieces.row]
    owned = owned_ns(pieces.start, pieces.end, rank)
    found = {entry: pieces.total(owned * (rank == place), periods) / GIGA for place, entry in _ENTRY_OF_RANK.items()}
    portion = (pieces.end - pieces.start) / np.maximum(length_ns[pieces.row], 1)
    need = ideal.ideal_s[pieces.row] * portion
    again = ideal.recompute[pieces.row]
    split = pieces.total(owned * (rank == SPLIT), periods) / GIGA
    found[RECOMPUTE] = pieces.total(need * again, periods)
    found[USEFUL] = pieces.total(need * ~again, periods)
    # kernels side by side can need more than the time they share: then their FLOPs are wrong, and no split is right
    fits = found[RECOMPUTE] + found[USEFUL] <= split * (1 + CLOSES_WITHIN)
    found[UNATTRIBUTED] = found[UNATTRIBUTED] + split * ~fits
    found[RECOMPUTE], found[USEFUL] = found[RECOMPUTE] * fits, found[USEFUL] * fits
    found[INEFFICIENCY] = np.maximum(split * fits - found[RECOMPUTE] - found[USEFUL], 0)
    return found


def account_of(entries: Mapping[str, float], window_s: float, reasons: Mapping[str, str]) -> Account:
    """The account of one window. Entries of no time are left out; the others must close."""
    kept = {entry: float(entries.get(entry, 0.0)) for entry in ENTRIES}
    total = sum(kept.values())
    assert abs(total - window_s) <= CLOSES_WITHIN * max(window_s, 1 / GIGA), f"the account does not close: {entries}"
    assert min(kept.values()) >= 0, f"a negative entry: {entries}"
    if MATMUL in reasons:  # without any peak no part of it can be told from another
        kept[MATMUL], kept[UNATTRIBUTED] = kept[UNATTRIBUTED], 0.0
    shown = tuple(
        AccountEntry(entry, value, value / window_s if window_s else None) for entry, value in kept.items() if value
    )
    return Account(peak_s=window_s, entries=shown, reasons={e: why for e, why in reasons.items() if kept.get(e)})


def total_account(accounts: tuple[Account, ...]) -> tuple[tuple[AccountEntry, ...], float]:
    """Entries of several accounts added up, and their whole time."""
    whole = sum(each.peak_s for each in accounts)
    sums = {entry: sum(each.seconds(entry) for each in accounts) for entry in ENTRIES}
    return tuple(AccountEntry(e, s, s / whole if whole else None) for e, s in sums.items() if s), whole


def closes(entries: tuple[AccountEntry, ...], total_s: float) -> bool:
    """Whether entries add up to a total, to 1e-9 of it."""
    return abs(sum(each.seconds for each in entries) - total_s) <= CLOSES_WITHIN * max(total_s, seconds(1))
