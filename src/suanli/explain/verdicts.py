"""The section `traces` of `verify`: figures of public traces got again, the samples read or refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from suanli.catalog.trace_claims import Samples, TraceClaim, samples, trace_claims
from suanli.errors import InputError
from suanli.explain.account import CLOSES_WITHIN
from suanli.explain.attribute import attribute
from suanli.explain.share import share
from suanli.explain.whole import explain_trace
from suanli.nouns.attribution import Attribution
from suanli.nouns.claim import DIFFERS, FAILS, HOLDS, REPRODUCED, ClaimResult, SourceSummary, Verification
from suanli.nouns.explained import Account, Explained
from suanli.nouns.trace import Trace
from suanli.readers.traces import read_trace

SECTION = "traces"
FOLDER = Path("traces", "files")
READ, CLOSE = "samples read or refused", "accounts close"
CONVOLUTION = "aten::convolution"
_STEPS, _DEVICE_1 = "steps_", " of device 1"
_NOTHING_FITTED = "nothing is fitted"


@dataclass(frozen=True, eq=False)
class Sample:
    """One file explained."""

    trace: Trace
    attribution: Attribution
    found: Explained


def explained(path: Path) -> Sample:
    """The sample in a file. Raises InputError for one that cannot be read."""
    kept: list[tuple[Trace, Attribution]] = []

    def attributed(trace: Trace, classes: Any) -> Attribution:
        kept.append((trace, attribute(trace, classes)))
        return kept[0][1]

    found = explain_trace(read_trace(path), attributed)
    return Sample(*kept[0], found)


def figure_of(sample: Sample, figure: str) -> float | None:
    """A figure of the table by its name; None where the sample has none of it."""
    found = sample.found
    if figure == "attributed share":
        return share(sample.trace, sample.attribution).fraction
    if figure == "recomputed convolutions":
        return float(_recomputed(sample))
    if figure.startswith(_STEPS):
        return getattr(found.whole_steps[0], figure.removeprefix(_STEPS), None) if found.whole_steps else None
    place = 1 if figure.endswith(_DEVICE_1) else 0
    if len(found.devices) <= place:
        return None
    device = found.devices[place]
    name = figure.removesuffix(_DEVICE_1)
    if name.endswith("_s"):
        seconds: float = getattr(device.usage, name)
        return seconds
    account = device.account
    return (account.idle_s if name == "idle" else account.seconds(name)) / account.peak_s


def _recomputed(sample: Sample) -> int:
    """Calls of convolutions whose kernels are recomputed."""
    trace, found = sample.trace, sample.attribution
    rows = found.recompute & found.flops_known & (found.op >= 0)
    ops = np.unique(found.op[rows])
    return sum(trace.names[int(trace.host.name[op])].startswith((CONVOLUTION, "aten::miopen_conv")) for op in ops)


def verify_traces(
    data: Path, progress: Callable[[int, int, str], None] | None = None,
    claims: tuple[TraceClaim, ...] | None = None, known: Samples | None = None,
) -> Verification:  # fmt: skip
    """Every claim about the files of `data`, and every sample; `progress` is told of each file (done, of how many)."""
    claims, known = trace_claims() if claims is None else claims, samples() if known is None else known
    by_file: dict[str, list[TraceClaim]] = defaultdict(list)
    for claim in claims:
        by_file[claim.file].append(claim)
    rows: list[ClaimResult] = []
    names = (*known.read, *known.refused)
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names), name)
        rows += _file(data / FOLDER / name, by_file[name], known.refused.get(name))
    order = {_id(claim): place for place, claim in enumerate(claims, 1)}
    rows.sort(key=lambda row: order.get(row.id, 0))  # files by file, then figures in the order of the table
    rows.sort(key=lambda row: row.source == CLOSE)
    rows.sort(key=lambda row: order.get(row.id, 0) > 0)
    return Verification(tuple(rows), tuple(_summaries(rows)))


def _file(path: Path, claims: list[TraceClaim], refused: str | None) -> list[ClaimResult]:
    """The rows of one file: whether it is read, whether it closes, its figures."""
    try:
        sample = explained(path)
    except InputError as problem:
        fault = problem.faults[0]
        said = fault.message if fault.got is None else f"{fault.message}, got {fault.got}"
        right = refused is not None and refused in said.lower()
        return [_read(path.name, 0, refused, right=right, why=said), *(_claim(each, None) for each in claims)]
    found = sample.found
    accounts = [each.account for each in found.devices] + [each.account for each in found.steps]
    off = max((_open(each) for each in accounts), default=0.0)
    closes = _row(
        path.name, CLOSE, f"{len(accounts)} accounts of {path.name} close", 0.0, off, "fraction",
        CLOSES_WITHIN, HOLDS if off <= CLOSES_WITHIN else FAILS,
    )  # fmt: skip
    why = f"{found.format}, {sample.trace.events:,} events, {len(sample.trace.work):,} pieces of device work"
    read = _read(path.name, 1, refused, right=refused is None, why=why)
    return [read, closes, *(_claim(each, figure_of(sample, each.figure)) for each in claims)]


def _open(account: Account) -> float:
    """How far the entries are from the whole, as a part of it."""
    whole = account.peak_s
    return abs(sum(each.seconds for each in account.entries) - whole) / whole if whole else 0.0


def _read(name: str, got: float, refused: str | None, *, right: bool, why: str) -> ClaimResult:
    statement = f"{name} is refused, with the reason" if refused is not None else f"{name} is read"
    expected = 0.0 if refused is not None else 1.0
    return _row(name, READ, statement, expected, got, "files", 0, HOLDS if right else FAILS, why)


def _row(
    file: str, source: str, statement: str, expected: float, got: float | None, unit: str, tolerance: float,
    status: str, why: str = "",
) -> ClaimResult:  # fmt: skip
    return ClaimResult(
        id=f"trace-{file}-{source}".replace(" ", "-"), source=source, section=SECTION, statement=statement,
        expected=expected, got=got, error=None if got is None else got - expected, status=status, unit=unit,
        tolerance=tolerance, why=why,
    )  # fmt: skip


def _id(claim: TraceClaim) -> str:
    return f"trace-{claim.file}-{claim.figure}".replace(" ", "-")


def _claim(claim: TraceClaim, got: float | None) -> ClaimResult:
    error = None if got is None else got - claim.expected
    agrees = error is not None and (abs(error) <= claim.within * (1 + CLOSES_WITHIN) or (claim.at_least and error >= 0))
    status = HOLDS if agrees else FAILS
    if claim.orientation:
        status = REPRODUCED if agrees else DIFFERS
    return ClaimResult(
        id=_id(claim), source=claim.source, section=SECTION,
        statement=f"{claim.file}: {claim.figure.replace('_s of ', ' of ').removesuffix('_s').replace('_', ' ')}"
        + (", at least" if claim.at_least else ""),
        expected=claim.expected, got=got, error=error, status=status, unit=claim.unit, tolerance=claim.within,
        quantity=claim.figure, why=claim.orientation if status == DIFFERS else claim.others,
    )  # fmt: skip


def _summaries(rows: list[ClaimResult]) -> list[SourceSummary]:
    made = []
    for source in dict.fromkeys(row.source for row in rows):
        own = [row for row in rows if row.source == source and row.error is not None]
        errors = [abs(row.error or 0.0) for row in own]
        relative = [abs(row.error or 0.0) / abs(row.expected) for row in own if row.expected]
        worst = max(own, key=lambda row: abs(row.error or 0.0), default=None)
        made.append(SourceSummary(
            source=source, section=SECTION, n=len(own),
            within=sum(row.status in (HOLDS, REPRODUCED) for row in own),
            failed=sum(row.failed for row in rows if row.source == source),
            median_error=median(errors) if errors else None, worst=worst.id if worst else None,
            worst_error=worst.error if worst else None, mape_fitted=None,
            mape_held_out=fmean(relative) if relative else None, why_not_fitted=_NOTHING_FITTED,
        ))  # fmt: skip
    return made
