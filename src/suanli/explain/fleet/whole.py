"""Many summaries → one report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from suanli.explain.account import total_account
from suanli.explain.fleet.arrivals import Arrivals, arrivals, per_unit, waits
from suanli.explain.fleet.clocks import Clocks, align, same_call
from suanli.explain.fleet.experts import expert_groups
from suanli.explain.fleet.findings import findings
from suanli.explain.fleet.match import Matched, match, without
from suanli.explain.fleet.pool import Fleet, Unit, pool
from suanli.explain.fleet.ranks import missing, rank_all
from suanli.explain.fleet.robust import FEWEST, RULE
from suanli.explain.fleet.stages import stage_of, stages
from suanli.explain.fleet.stragglers import StepTable, step_table, stragglers
from suanli.explain.fleet.tables import fleet_kernels, fleet_steps
from suanli.explain.fleet.transfers import fleet_collectives
from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.fleet import FleetReport, LostRank, RankRow
from suanli.nouns.summary import RankSummary
from suanli.nouns.trace import TraceFault
from suanli.units import counted

NO_WORK = "the trace has no work of a device"
ROUNDS = 3  # of letting go what is no call: each makes the clocks a little better


def explain_fleet(summaries: Sequence[RankSummary], lost: Sequence[LostRank] = ()) -> FleetReport:
    """The report of summaries in any order. Raises InputError where two are of the same rank."""
    ranked = rank_all([each.about for each in summaries])
    pairs = zip(ranked.ranks, (summaries[place] for place in ranked.places), strict=True)
    return report_of(pool(pairs), lost, ranked.notes)


def report_of(fleet: Fleet, lost: Sequence[LostRank] = (), notes: Sequence[str] = ()) -> FleetReport:
    """The report of summaries that are put together. `lost` names what could not be read, `notes` what was assumed."""
    lost = (*lost, *(LostRank(path=path, ranks=str(rank), reason=NO_WORK) for rank, path in fleet.without_work))
    found, clocks = _aligned(fleet)
    arrived = arrivals(fleet, found, clocks)
    table, of = step_table(fleet), stage_of(fleet)
    rows = _rows(fleet, arrived, clocks, table)
    entries, peak_s = total_account(tuple(unit.account.account for unit in fleet.units))
    world = max((unit.about.world_size or 0 for unit in fleet.units), default=0) or None
    experts, no_experts = expert_groups(fleet)
    placed = stages(rows, of)
    matmul = sum(unit.account.matmul_s for unit in fleet.units)
    calls = len(fleet.calls["unit"])
    report = FleetReport(
        account=entries,
        peak_s=peak_s,
        attributed_fraction=sum(unit.account.attributed_s for unit in fleet.units) / matmul if matmul else None,
        ranks=rows,
        world_size=world,
        step_names=table.names,
        steps=fleet_steps(fleet, table),
        kernels=fleet_kernels(fleet),
        collectives=fleet_collectives(fleet, arrived),
        matched_fraction=len(arrived.rows) / calls if calls else None,
        unmatched=found.reasons,
        waits=waits(fleet, arrived),
        stragglers=stragglers(fleet, table, of),
        straggler_rule=RULE,
        stages=placed,
        experts=experts,
        lost=(*lost, *missing(world, [row.rank for row in rows], lost)),
        findings=(),
        warnings=_warnings(fleet.units, notes),
        reasons=_reasons(matmul, calls, len(fleet.units), bool(placed), no_experts),
    )
    return findings(report)


def _aligned(fleet: Fleet) -> tuple[Matched, Clocks]:
    """Calls and clocks; calls that turn out not to be one are let go, and the clocks set again without them."""
    found = match(fleet)
    for _ in range(ROUNDS):
        clocks = align(fleet, found)
        fits = same_call(fleet, found, clocks)
        if fits.all():
            break
        found = without(found, ~fits)
    return found, align(fleet, found)


def _rows(fleet: Fleet, arrived: Arrivals, clocks: Clocks, table: StepTable) -> tuple[RankRow, ...]:
    count = len(fleet.units)
    figures = per_unit(arrived, count)
    calls = np.bincount(fleet.calls["unit"], minlength=count)
    distinct = np.unique(clocks.component[clocks.component >= 0])
    return tuple(
        _row(unit, tuple(int(each[place]) for each in (*figures, calls)), (table.seconds[place], table.compute[place]),
             _clock(clocks, place, distinct))
        for place, unit in enumerate(fleet.units)
    )  # fmt: skip


def _clock(clocks: Clocks, place: int, distinct: Array) -> tuple[int | None, float | None, float | None]:
    if clocks.component[place] < 0:
        return None, None, None
    number = int(np.searchsorted(distinct, clocks.component[place]))
    return number, seconds(int(clocks.offset_ns[place])), seconds(int(clocks.residual_ns[place]))


def _row(
    unit: Unit,
    figures: tuple[int, ...],
    steps: tuple[Array, Array],
    clock: tuple[int | None, float | None, float | None],
) -> RankRow:
    waited, waited_for, last, matched, calls = figures
    usage, own = unit.account.usage, unit.steps
    return RankRow(
        rank=unit.rank,
        device=unit.device,
        name=unit.account.name,
        host=unit.about.host,
        path=unit.about.path,
        steps=len(own),
        step_s=_median([each.seconds for each in own], usage.window_s),
        compute_s=_median([each.compute_s for each in own], usage.compute_s),
        exposed_communication_s=_median([each.exposed_communication_s for each in own], usage.exposed_communication_s),
        idle_s=_median([each.idle_s for each in own], usage.idle_s),
        window_s=usage.window_s,
        waiting_s=seconds(waited),
        waited_for_s=seconds(waited_for),
        last=last,
        matched=matched,
        communication=calls,
        clock=clock[0],
        clock_offset_s=clock[1],
        clock_residual_s=clock[2],
        attributed_fraction=unit.account.attributed_fraction,
        account=unit.account.account.entries,
        step_times_s=_known(steps[0]),
        step_computes_s=_known(steps[1]),
    )


def _known(values: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(each) else float(each) for each in values)


def _median(values: list[float], without: float) -> float:
    return float(np.median(values)) if values else without


def _warnings(units: Iterable[Unit], notes: Sequence[str]) -> tuple[TraceFault, ...]:
    """Warnings of all traces by kind: over how many ranks, how many events, and one of them in its own words."""
    found: dict[str, dict[int, TraceFault]] = defaultdict(dict)
    for unit in units:
        for fault in unit.about.warnings:
            found[fault.code].setdefault(unit.rank, fault)
    made = [TraceFault(code="rank", count=0, message=note) for note in notes]
    for code, by_rank in found.items():
        first = min(by_rank)
        more = f"{len(by_rank)} ranks; rank {first}: " if len(by_rank) > 1 else f"rank {first}: "
        total = sum(fault.count for fault in by_rank.values())
        made.append(TraceFault(code=code, count=total, message=more + by_rank[first].message))
    return tuple(made)


def _reasons(matmul: float, calls: int, units: int, staged: bool, no_experts: str | None) -> Mapping[str, str]:
    found = {
        "attributed_fraction": "" if matmul else "no matmul time",
        "matched_fraction": "" if calls else "no rank communicates",
        "stragglers": ""
        if units >= FEWEST
        else f"{counted(units, '{count} {devices|device}')}: a median of others needs {FEWEST}",
        "stages": ""
        if staged
        else "no group called a pipeline, and no chain of sends and receives that name their peer",
        "experts": no_experts or "",
    }
    return {name: why for name, why in found.items() if why}
