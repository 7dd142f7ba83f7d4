"""Communication by collective and group: how long, how much of it exposed, how many bytes, at what rate.

Rates are as nccl-tests has them: algbw = bytes of the whole tensor over time, busbw = bytes each rank sends over time,
which is comparable with a link. The time of a kernel holds its waiting for other ranks, so both are lower bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.sweep import Pieces, owned_ns
from suanli.explain.usage import seconds
from suanli.formulas.collectives import wire_bytes
from suanli.nouns.attribution import WorkClass
from suanli.nouns.explained import CollectiveRow
from suanli.nouns.trace import CollectiveCall, Trace

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
ALL_TO_ALL, BROADCAST, REDUCE, P2P = "all-to-all", "broadcast", "reduce", "send and receive"
# Names of collectives and of their kernels; the first that fits decides.
_NAMES: tuple[tuple[str, str], ...] = (
    (r"reduce_?scatter", REDUCE_SCATTER),
    (r"all_?reduce|cross_device_reduce|multimem_one|(one|two)_?shot", ALL_REDUCE),
    (r"all_?gather", ALL_GATHER),
    (r"all_?to_?all|alltoallv?", ALL_TO_ALL),
    (r"send|recv|receive|p2p|collective_permute", P2P),
    (r"broadcast", BROADCAST),
    (r"dispatch|notify", "dispatch"),
    (r"combine", "combine"),
    (r"barrier", "barrier"),
    (r"scatter", "scatter"),
    (r"gather", "gather"),
    (r"reduce", REDUCE),
)
_PASSES = {ALL_REDUCE: 2, ALL_GATHER: 1, REDUCE_SCATTER: 1, ALL_TO_ALL: 1}
_FORMULAS = {
    ALL_REDUCE: "algbw = S/t, S in; busbw = algbw·2(n−1)/n",
    ALL_GATHER: "algbw = S/t, S out; busbw = algbw·(n−1)/n",
    REDUCE_SCATTER: "algbw = S/t, S in; busbw = algbw·(n−1)/n",
    ALL_TO_ALL: "algbw = S/t, S in; busbw = algbw·(n−1)/n",
}
_PLAIN = "algbw = S/t, S the message; busbw = algbw"
_ELEMENT_BYTES: Mapping[str, int] = {
    "double": 8, "float64": 8, "long": 8, "int64": 8, "complexfloat": 8, "uint64": 8,
    "float": 4, "float32": 4, "int": 4, "int32": 4, "uint32": 4,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2,
    "byte": 1, "char": 1, "bool": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip


@dataclass(frozen=True)
class KnownCall:
    """What a row of work says of its call, ready to be grouped."""

    collective: str
    group: str | None
    size: int | None
    bytes: int | None


@dataclass(frozen=True, eq=False)
class _Spans:
    """Of the calls of one row, ns each: duration, what no earlier communication has, what of it is exposed."""

    length: Array
    alone: Array
    exposed: Array


@lru_cache(maxsize=65536)
def collective_of(text: str) -> str:
    """The collective that a name of a call or kernel means, in one spelling; the name where none is known."""
    plain = text.lower().replace("-", "_")
    return next((meaning for pattern, meaning in _NAMES if re.search(pattern, plain)), text)


def element_bytes(dtype: str | None) -> int | None:
    """Bytes of one element of a dtype as profilers print it; None where it is not known."""
    return _ELEMENT_BYTES.get((dtype or "").lower().removeprefix("c10::"))


def tensor_bytes(call: CollectiveCall, collective: str) -> int | None:
    """Bytes of the whole tensor: what comes out of an all-gather, what goes in otherwise. None: not said."""
    if call.message_bytes is not None:
        return call.message_bytes
    size = element_bytes(call.dtype)
    gathers = collective in (ALL_GATHER, "gather")
    elements = call.out_elements if gathers else call.in_elements
    if elements is None or size is None:
        return None
    return elements * size


def collectives(
    trace: Trace, work_class: Array, pieces: Pieces, device: int, link_bytes_per_s: float | None = None
) -> tuple[CollectiveRow, ...]:
    """Rows of one device, the longest exposed first. `pieces` are its whole rows; the link is that of one device in
    its node, both directions together.
    """
    chosen = work_class[pieces.row] == WorkClass.COMMUNICATION
    if not chosen.any():
        return ()
    kernels = work_class[pieces.row] <= WorkClass.COMPUTE
    start, end = pieces.start, pieces.end
    alone = owned_ns(start, end, np.where(chosen, 0, -1))
    exposed = owned_ns(start, end, np.where(chosen, 1, np.where(kernels, 0, -1)))
    groups: dict[tuple[str, str | None, int | None], list[int]] = {}
    sizes: dict[int, int | None] = {}
    for place in np.flatnonzero(chosen):
        call = call_of(trace, int(pieces.row[place]))
        groups.setdefault((call.collective, call.group, call.size), []).append(int(place))
        sizes[int(place)] = call.bytes
    made = [
        _row(device, key, [sizes[place] for place in places],
             _Spans(end[places] - start[places], alone[places], exposed[places]), link_bytes_per_s)
        for key, places in groups.items()
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda row: (-row.exposed_s, -row.total_s, row.collective, row.group or "")))


def call_of(trace: Trace, row: int) -> KnownCall:
    """What the file says, else what the name of the kernel says."""
    work = trace.work
    name = trace.names[int(work.name[row])]
    place = int(work.collective[row])
    if place < 0:
        return KnownCall(collective_of(name), None, None, None)
    call = trace.collectives[place]
    collective = collective_of(call.name or name)
    members = call.ranks or trace.groups.get(call.group or "")
    size = call.group_size if call.group_size is not None else len(members) if members else None
    group = f"{call.group} ({call.group_label})" if call.group and call.group_label else call.group or call.group_label
    return KnownCall(collective, group, size, tensor_bytes(call, collective))


def _row(
    device: int, key: tuple[str, str | None, int | None], sizes: list[int | None], spans: _Spans,
    link_bytes_per_s: float | None,
) -> CollectiveRow:  # fmt: skip
    collective, group, ranks = key
    total = seconds(int(spans.length.sum()))
    said = [each for each in sizes if each is not None]
    size = sum(said) if len(said) == len(sizes) else None
    algbw, busbw, reasons = rates(collective, ranks, size, total)
    return CollectiveRow(
        device=device,
        collective=collective,
        group=group,
        group_size=ranks,
        count=len(sizes),
        total_s=total,
        union_s=seconds(int(spans.alone.sum())),
        overlapped_s=seconds(int(spans.alone.sum() - spans.exposed.sum())),
        exposed_s=seconds(int(spans.exposed.sum())),
        bytes=size,
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=busbw,
        above_link=busbw > link_bytes_per_s / 2 if busbw is not None and link_bytes_per_s else None,
        formula=formula_of(collective),
        reasons=reasons,
    )


def formula_of(collective: str) -> str:
    """How the two rates of a collective are reckoned."""
    return _FORMULAS.get(collective, _PLAIN)


def rates(
    collective: str, ranks: int | None, size: int | None, total_s: float
) -> tuple[float | None, float | None, dict[str, str]]:
    """algbw and busbw, and why they are None."""
    if size is None or not total_s:
        why = "the file does not say the size of every call" if size is None else "the kernels take no time"
        return None, None, {"algbw_bytes_per_s": why, "busbw_bytes_per_s": why}
    passes = _PASSES.get(collective)
    if passes is None:
        return size / total_s, size / total_s, {}
    if not ranks:
        return size / total_s, None, {"busbw_bytes_per_s": "the file does not say the size of the group"}
    return size / total_s, wire_bytes(size, ranks, passes) / total_s, {}
