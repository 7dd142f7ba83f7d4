"""The reports of many ranks: `summarise`, and `explain` over a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from suanli.nouns.fleet import FleetReport, RankRow, Straggler
from suanli.nouns.result import Result
from suanli.nouns.summarised import Summarised
from suanli.report.common import NOT_GIVEN, closing, exact
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.heat import heat_rows
from suanli.units import format_bytes, format_bytes_per_s, format_percent, format_seconds

MOST_RANKS, MOST_COLLECTIVES, MOST_WAITS, MOST_STRAGGLERS, MOST_EXPERTS = 32, 20, 12, 20, 12
MOST_CLOCKS, MOST_KERNELS = 16, 10
NAME_WIDTH = 44


def summarise_document(result: Result) -> Document:
    """Traces with the summaries made of them."""
    found: Summarised = result.result
    made = [each for each in found.files if each.output]
    rows = tuple(
        (
            Path(each.path).name, NOT_GIVEN if each.rank is None else exact(each.rank), exact(each.devices),
            exact(each.steps), exact(each.work), format_bytes(each.trace_bytes), format_bytes(each.summary_bytes),
            each.output or "", "kept" if each.reused else "",
        )
        for each in made
    )  # fmt: skip
    columns = ("trace", "rank", "devices", "steps", "work", "bytes", "of summary", "summary", "")
    right = (False, True, True, True, True, True, True, False, False)
    failed = tuple(f"{each.path}: {each.reasons['output']}" for each in found.files if not each.output)
    return Document(
        f"{len(made)} of {len(found.files)} traces summarised",
        (
            Table("", columns, rows, right),
            Lines("Not read", failed),
            Lines("Left alone", found.ignored),
            *closing(result),
        ),
    )


def fleet_document(result: Result) -> Document:
    """The account of all ranks, who waits for whom, who is slow, and the heat map."""
    found: FleetReport = result.result
    ranks = len({row.rank for row in found.ranks})
    return Document(
        f"{ranks} {'rank' if ranks == 1 else 'ranks'}, {len(found.ranks)} "
        f"{'device' if len(found.ranks) == 1 else 'devices'}: {_headline(found)}",
        (
            Lines("Findings", found.findings),
            _account(found),
            _heat(found),
            _ranks(found),
            _collectives(found),
            _transfers(found),
            _unmatched(found),
            _waits(found),
            _stragglers(found),
            _kernels(found),
            _stages(found),
            _experts(found),
            _clocks(found),
            Lines("Warnings", tuple(each.message for each in found.warnings)),
            Lines("Not given", tuple(f"{name}: {why}" for name, why in found.reasons.items())),
            *closing(result),
        ),
    )


def _headline(found: FleetReport) -> str:
    waiting = sum(row.waiting_s for row in found.ranks)
    share = format_percent(waiting / found.peak_s) if found.peak_s else NOT_GIVEN
    return f"{format_seconds(found.peak_s)} of device time, {share} waiting for the last rank of collectives"


def _account(found: FleetReport) -> Facts:
    rows = tuple(
        (
            each.entry,
            format_seconds(each.seconds),
            NOT_GIVEN if each.fraction is None else format_percent(each.fraction),
        )
        for each in found.account
    )
    return Facts("Account of all devices", rows)


def _heat(found: FleetReport) -> Table:
    """Compute of steps where there are steps (all take as long as the slowest rank's); else the account's entries."""
    if found.step_names:
        columns, values = found.step_names, [row.step_computes_s for row in found.ranks]
        title = "Compute, ranks by steps: ░ the median of the step or less … █ half as much again, · none"
    else:
        columns = tuple(each.entry for each in found.account)
        values = [_shares(row, columns) for row in found.ranks]
        title = "Ranks by entries: ░ the median of the entry or less … █ half as much again, · none"
    header, rows = heat_rows(labels_of(found.ranks), columns, values)
    return Table(title, header, rows, (False,) * len(header))


def _shares(row: RankRow, entries: Sequence[str]) -> tuple[float | None, ...]:
    own = {each.entry: each.seconds for each in row.account}
    return tuple(own.get(entry) for entry in entries)


def labels_of(rows: Sequence[RankRow]) -> list[str]:
    """A name for each row: its rank, with the device where the rank has several."""
    times = Counter(row.rank for row in rows)
    return [str(row.rank) if times[row.rank] == 1 else f"{row.rank}.{row.device}" for row in rows]


def _ranks(found: FleetReport) -> Table:
    """All ranks where they are few, else those that others waited for longest."""
    order = sorted(found.ranks, key=lambda row: (-row.waited_for_s, row.rank, row.device))
    shown = found.ranks if len(found.ranks) <= MOST_RANKS else tuple(order[:MOST_RANKS])
    more = "" if len(shown) == len(found.ranks) else f": the {MOST_RANKS} that others waited for longest"
    rows = tuple(
        (
            label, format_seconds(row.step_s), format_seconds(row.compute_s),
            format_seconds(row.exposed_communication_s), format_seconds(row.idle_s), format_seconds(row.waiting_s),
            format_seconds(row.waited_for_s), f"{row.last}/{row.matched}",
        )
        for label, row in zip(labels_of(shown), shown, strict=True)
    )  # fmt: skip
    columns = ("rank", "step", "compute", "exposed", "idle", "waits", "waited for", "last")
    return Table(f"Ranks{more}", columns, rows, (True,) * len(columns))


def _clocks(found: FleetReport) -> Table:
    """Clocks that are furthest off; none where no two ranks could be aligned."""
    pairs = [pair for pair in zip(labels_of(found.ranks), found.ranks, strict=True) if pair[1].clock is not None]
    pairs.sort(key=lambda pair: (-abs(pair[1].clock_offset_s or 0), pair[1].rank, pair[1].device))
    rows = tuple(
        (label, row.host or NOT_GIVEN, exact(row.clock or 0), _signed(row.clock_offset_s or 0.0),
         format_seconds(row.clock_residual_s or 0.0))
        for label, row in pairs[:MOST_CLOCKS]
    )  # fmt: skip
    columns = ("rank", "host", "set", "ahead of the first", "uncertain by")
    return Table("Clocks, the furthest first", columns, rows, (True, False, True, True, True))


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{format_seconds(abs(value))}"


def _collectives(found: FleetReport) -> Table:
    rows = tuple(
        (
            exact(each.calls), _cut(each.collective), _cut(each.group or NOT_GIVEN), format_seconds(each.waiting_s),
            format_seconds(each.skew_median_s), f"{each.last_rank} in {format_percent(each.last_fraction, 0)}",
        )
        for each in found.collectives[:MOST_COLLECTIVES]
    )  # fmt: skip
    columns = ("calls", "collective", "group", "waiting", "skew", "last")
    return Table("Collectives: arrivals, median skew", columns, rows, (True, False, False, True, True, True))


def _transfers(found: FleetReport) -> Table:
    rows = tuple(
        (
            f"{each.ranks}/{NOT_GIVEN if each.group_size is None else each.group_size}", _cut(each.collective),
            _cut(each.group or NOT_GIVEN), format_seconds(each.transfer_s), _rate(each.busbw_bytes_per_s),
            _against(each.above_link),
        )
        for each in found.collectives[:MOST_COLLECTIVES]
    )  # fmt: skip
    columns = ("ranks", "collective", "group", "transfer", "busbw", "link")
    title = "Collectives: transfer, the shortest kernel of each call"
    return Table(title, columns, rows, (True, False, False, True, True, False))


def _unmatched(found: FleetReport) -> Facts:
    """Kernels of collectives that have no counterpart, and why."""
    if found.matched_fraction is None or not found.unmatched:
        return Facts("", ())
    rows = [("matched with other ranks", format_percent(found.matched_fraction), "of communication kernels")]
    rows += [("not matched", exact(count), reason) for reason, count in found.unmatched.items()]
    return Facts("Kernels of the same call", tuple(rows))


def _rate(value: float | None) -> str:
    return NOT_GIVEN if value is None else format_bytes_per_s(value)


def _against(above: bool | None) -> str:
    return {None: "", True: "ABOVE", False: "below"}[above]


def _cut(text: str) -> str:
    return text if len(text) <= NAME_WIDTH else text[: NAME_WIDTH - 1] + "…"


def _waits(found: FleetReport) -> Table:
    rows = tuple(
        (exact(each.waiting), exact(each.waited_for), format_seconds(each.seconds), exact(each.calls))
        for each in found.waits[:MOST_WAITS]
    )
    columns = ("rank", "waits for", "time", "collectives")
    return Table("Who waits for whom", columns, rows, (True,) * len(columns))


def _stragglers(found: FleetReport) -> Table:
    rows = tuple(_straggler(each) for each in found.stragglers[:MOST_STRAGGLERS])
    columns = ("rank", "what", "time", "median", "slower", "from", "times")
    title = f"Stragglers: {found.straggler_rule}"
    return Table(title, columns, rows, tuple(name != "what" for name in columns))


def _straggler(each: Straggler) -> tuple[str, ...]:
    return (
        exact(each.rank), _cut(each.what), format_seconds(each.seconds), format_seconds(each.median_s),
        format_percent(each.slower_fraction), format_seconds(each.threshold_s), f"{each.times}/{each.of}",
    )  # fmt: skip


def _kernels(found: FleetReport) -> Table:
    rows = tuple(
        (
            exact(each.count), _cut(each.name), format_seconds(each.total_s), format_seconds(each.median_s),
            format_seconds(each.longest_s), exact(each.slowest_rank),
        )
        for each in found.kernels[:MOST_KERNELS]
    )  # fmt: skip
    columns = ("runs", "kernel", "all ranks", "middle", "longest", "on rank")
    title = "Kernels that compute, by time over all ranks"
    return Table(title, columns, rows, tuple(name != "kernel" for name in columns))


def _stages(found: FleetReport) -> Table:
    rows = tuple(
        (
            exact(each.stage), exact(len(each.ranks)), format_seconds(each.compute_s), format_seconds(each.idle_s),
            format_seconds(each.exposed_communication_s),
            NOT_GIVEN if each.relative is None else format_percent(each.relative),
        )
        for each in found.stages
    )  # fmt: skip
    columns = ("stage", "ranks", "compute", "idle", "exposed comm.", "of the mean")
    return Table("Stages of the pipeline", columns, rows, (True,) * len(columns))


def _experts(found: FleetReport) -> Table:
    rows = tuple(
        (
            _cut(each.group or NOT_GIVEN), exact(len(each.ranks)), exact(each.calls), format_bytes(each.mean_bytes),
            format_bytes(max(each.received_bytes)), exact(each.busiest),
            NOT_GIVEN if each.imbalance is None else format_percent(each.imbalance),
        )
        for each in found.experts[:MOST_EXPERTS]
    )  # fmt: skip
    columns = ("group", "ranks", "calls", "received, mean", "most", "by rank", "above the mean")
    return Table("Exchange of tokens", columns, rows, tuple(name != "group" for name in columns))
