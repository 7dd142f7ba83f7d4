"""What a trace lacks or has wrong, as warnings: of the file itself, and of what the account met."""

from __future__ import annotations

from suanli.explain.durations import LONGEST_OVERLAP_US, Clipped
from suanli.explain.graphs import incomplete
from suanli.explain.usage import seconds
from suanli.nouns.trace import Trace, TraceFault
from suanli.units import MILLI, counted

_TOO_LONG = (
    f"{{count}} {{pieces|piece}} of work {{run|runs}} more than {LONGEST_OVERLAP_US} µs into the next on "
    "{their|its} stream, which cannot be"
)
_UNLINKED = (
    " of device work {have|has} no launch in the file (launched before it begins, or not "
    "recorded): {their|its} time counts, what launched {them|it} is unknown"
)
_FASTER = (
    "{count} {products|product} would be faster than the peak of {their|its} dtype: {their|its} FLOPs, {their|its} "
    "dtype or the device is not what it seems; {they are|it is} shown as not attributed"
)


def warnings_of(trace: Trace, clipped: Clipped, faster: int) -> tuple[TraceFault, ...]:
    """The file's own faults first, then what the account found."""
    ways = (_nothing(trace), _clipped(clipped), _unlinked(trace), incomplete(trace), _faster(faster))
    return (*trace.faults, *(fault for fault in ways if fault is not None))


def _nothing(trace: Trace) -> TraceFault | None:
    if len(trace.work):
        return None
    return TraceFault(
        code="no-device-work",
        count=0,
        message="the file has no kernels, copies or sets of a device: there is no time to account for",
    )


def _clipped(clipped: Clipped) -> TraceFault | None:
    if not clipped.rows:
        return None
    return TraceFault(
        code="impossible-duration",
        count=clipped.rows,
        message=counted(clipped.rows, f"{_TOO_LONG}: {seconds(clipped.cut_ns) / MILLI:.3f} ms were cut off")
        + ", up to the next start",
    )


def _unlinked(trace: Trace) -> TraceFault | None:
    count, total = int((trace.work.launch < 0).sum()), len(trace.work)
    if not count:
        return None
    return TraceFault(
        code="unlinked-work",
        count=count,
        message=counted(count, "{count} of " + counted(total, "{count} {pieces|piece}") + _UNLINKED),
    )


def _faster(count: int) -> TraceFault | None:
    if not count:
        return None
    return TraceFault(
        code="faster-than-peak",
        count=count,
        message=counted(count, _FASTER),
    )
