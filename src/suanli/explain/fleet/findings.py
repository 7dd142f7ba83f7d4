"""What stands out in a fleet, in sentences with their evidence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from suanli.explain.fleet.ranks import spans
from suanli.nouns.fleet import FleetReport, RankRow
from suanli.units import MEGA, counted, format_bytes_per_s, format_percent, format_seconds

NOTABLE_FRACTION = 0.01  # of device time, of waiting that is worth a sentence
OUTSTANDING = 2.0  # times the even share of waiting for which a rank is named
UNEVEN = 0.1  # above the mean, of stages and experts
COARSE_CLOCK_US = 100


def findings(report: FleetReport) -> FleetReport:
    """The report with its findings."""
    ways = (_lost, _waiting, _late, _slow, _kernels, _stages, _experts, _links, _clocks)
    return replace(report, findings=tuple(sentence for way in ways for sentence in way(report)))


def _time(value: float) -> str:
    return format_seconds(value)


def _lost(report: FleetReport) -> list[str]:
    return [f"{each.path or 'ranks ' + each.ranks}: {each.reason}" for each in report.lost]


def _waiting(report: FleetReport) -> list[str]:
    waiting = sum(row.waiting_s for row in report.ranks)
    share = waiting / report.peak_s if report.peak_s else 0.0
    if share < NOTABLE_FRACTION:
        return []
    return [
        f"{format_percent(share)} of device time is spent in collectives before the last rank has come "
        f"({_time(waiting)} over {counted(len(report.ranks), '{count} {devices|device}')})"
    ]


def _late(report: FleetReport) -> list[str]:
    total = sum(row.waited_for_s for row in report.ranks)
    if not report.peak_s or total / report.peak_s < NOTABLE_FRACTION or len(report.ranks) < 2:
        return []
    row = max(report.ranks, key=lambda each: (each.waited_for_s, -each.rank))
    share = row.waited_for_s / total
    if share < OUTSTANDING / len(report.ranks):
        return []
    return [
        f"{_name(row)} is waited for most: {format_percent(share)} of all waiting, last to "
        + counted(row.matched, f"{row.last:,} of {{count}} {{collectives|collective}}")
    ]


def _name(row: RankRow) -> str:
    return f"rank {row.rank}" + (f" on {row.host}" if row.host else "")


def _slow(report: FleetReport) -> list[str]:
    return [
        f"rank {each.rank} computes {format_percent(each.slower_fraction)} longer than the ranks beside it in "
        f"{each.times} of {counted(each.of, '{count} {steps|step}')} "
        f"({_time(each.seconds)} against {_time(each.median_s)})"
        for each in report.stragglers if each.by == "step"
    ]  # fmt: skip


def _kernels(report: FleetReport) -> list[str]:
    ranks: dict[int, list[float]] = defaultdict(list)
    for each in report.stragglers:
        if each.by == "kernel":
            ranks[each.rank].append(each.seconds - each.median_s)
    return [
        f"rank {rank} takes {_time(sum(more))} longer than others in "
        f"{counted(len(more), '{count} {kernels|kernel}')} that it runs as often"
        for rank, more in sorted(ranks.items(), key=lambda each: -sum(each[1]))[:3]
    ]


def _stages(report: FleetReport) -> list[str]:
    known = [each for each in report.stages if each.relative is not None]
    if not known:
        return []
    worst = max(known, key=lambda each: each.relative or 0)
    if (worst.relative or 0) < 1 + UNEVEN:
        return []
    return [
        f"stage {worst.stage} computes {format_percent((worst.relative or 1) - 1)} more than the mean of "
        f"{len(report.stages)} stages: the others wait for it"
    ]


def _experts(report: FleetReport) -> list[str]:
    worst = next(iter(report.experts), None)
    if worst is None or (worst.imbalance or 0) < UNEVEN:
        return []
    return [
        f"rank {worst.busiest} receives {format_percent(worst.imbalance or 0)} more than the mean of the "
        f"{len(worst.ranks)} ranks it exchanges tokens with"
    ]


def _links(report: FleetReport) -> list[str]:
    fast = [each for each in report.collectives if each.above_link]
    if not fast:
        return []
    first = fast[0]
    moves, link = format_bytes_per_s(first.busbw_bytes_per_s or 0), format_bytes_per_s(first.link_bytes_per_s or 0)
    return [
        f"{first.collective} on group {first.group or 'not said'} moves {moves}, above the link of {link}: reduced in"
        f" the network, or fewer bytes moved than the call names (rows like this: {len(fast)})"
    ]


def _clocks(report: FleetReport) -> list[str]:
    residuals = [row.clock_residual_s for row in report.ranks if row.clock_residual_s is not None]
    clocks = {row.clock for row in report.ranks if row.clock is not None}
    said = []
    alone = sorted({row.rank for row in report.ranks if row.clock is None})
    if len(clocks) > 1:
        said.append(f"ranks fall into {len(clocks)} sets that share no collective: no time is compared across them")
    if alone and len(report.ranks) > 1:
        said.append(f"no matched collective, so no aligned clock: rank {spans(alone)}")
    if residuals and max(residuals) > COARSE_CLOCK_US / MEGA:
        said.append(f"clocks are aligned to {_time(max(residuals))} only: shorter skews say nothing")
    return said
