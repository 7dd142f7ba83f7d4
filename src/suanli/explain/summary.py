"""One trace → its summary: the account of each device, and device work with class, FLOPs and collective as columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from suanli.explain.attribute import attribute
from suanli.explain.classify import containers
from suanli.explain.communication import collective_of, element_bytes, tensor_bytes
from suanli.explain.device import facts_of
from suanli.explain.intervals import Array
from suanli.explain.kernels import KINDS
from suanli.explain.steps import find_steps
from suanli.explain.whole import explain_trace
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import DeviceAccount, Explained, Step
from suanli.nouns.hardware import Device
from suanli.nouns.summary import COLUMNS, WORDS, RankAbout, RankSummary, StepTime
from suanli.nouns.trace import CollectiveCall, Trace, TraceDevice
from suanli.version import VERSION

# torch's tensorboard_trace_handler names files HOST_PID.TIME.pt.trace.json
_HANDLER = re.compile(r"^(?P<host>.+?)_\d+\.\d+\.pt\.trace\.json(\.gz)?$")


@dataclass(frozen=True, eq=False)
class _Seen:
    """A trace as its account saw it: impossible durations cut, classes found, FLOPs attributed."""

    trace: Trace
    attribution: Attribution


def summary_of(trace: Trace, gpu: Device | None = None, **source: Any) -> RankSummary:
    """The summary of a trace. `gpu` stands above the names in the file; `source` says digest, size and time of the file
    as `RankAbout` has them.
    """
    seen: list[_Seen] = []

    def keep(cut: Trace, work_class: Array) -> Attribution:
        found = attribute(cut, work_class)
        seen.append(_Seen(cut, found))
        return found

    explained = explain_trace(trace, keep, gpu)
    columns, words = _columns(seen[0])
    return RankSummary(about=_about(trace, explained, gpu, source), columns=columns, words=words)


def host_of(path: str) -> str | None:
    """The machine that a file name of torch's trace handler tells; None where the name is another."""
    found = _HANDLER.match(Path(path).name)
    return found["host"] if found else None


def _about(trace: Trace, explained: Explained, gpu: Device | None, source: dict[str, Any]) -> RankAbout:
    return RankAbout(
        version=VERSION,
        path=trace.path,
        format=trace.format,
        producer=trace.producer,
        rank=trace.rank,
        world_size=trace.world_size,
        host=host_of(trace.path),
        bytes_read=trace.bytes_read,
        gpu=gpu.short_id if gpu else None,
        devices=explained.devices,
        links={each.device: _link(trace, each, gpu) for each in explained.devices},
        steps=tuple(_step_time(each) for each in explained.steps),
        steps_found=explained.steps_found,
        warnings=explained.warnings,
        **source,
    )


def _link(trace: Trace, account: DeviceAccount, gpu: Device | None) -> float | None:
    memory = next((each.memory_bytes for each in trace.devices if each.id == account.device), None)
    return facts_of(TraceDevice(id=account.device, name=account.name, memory_bytes=memory), gpu).link_bytes_per_s


def _step_time(step: Step) -> StepTime:
    return StepTime(
        name=step.name,
        device=step.device,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        seconds=step.seconds,
        compute_s=step.usage.compute_s,
        communication_s=step.usage.communication_s,
        exposed_communication_s=step.usage.exposed_communication_s,
        idle_s=step.usage.idle_s,
    )


def _columns(seen: _Seen) -> tuple[dict[str, Array], dict[str, tuple[str, ...]]]:
    trace, found = seen.trace, seen.attribution
    rows = np.flatnonzero(~containers(trace))
    work, marks = trace.work, find_steps(trace, found.work_class)
    texts = {
        "name": (trace.names, work.name[rows]),
        "work_class": (tuple(KINDS[each] for each in WorkClass), found.work_class[rows]),
        "step": (marks.names, marks.of_work(trace, rows) if len(marks) else np.full(len(rows), -1)),
        "formula": (found.formulas, np.where(found.flops_known[rows], found.formula[rows], -1)),
    }
    columns: dict[str, Array] = {
        "device": work.device[rows],
        "stream": work.stream[rows],
        "start_ns": work.start_ns[rows],
        "duration_ns": work.end_ns[rows] - work.start_ns[rows],
        "flops": np.where(found.flops_known[rows], found.flops[rows], np.nan),
    }
    more, said = _calls(trace, rows, found.work_class)
    columns |= more
    words: dict[str, tuple[str, ...]] = {}
    for name, (known, places) in (texts | said).items():
        words[name], columns[name] = _used(known, places)
    columns["nth"] = _nth(columns)
    return {name: columns[name].astype(_kind(name)) for name in COLUMNS}, words


def _kind(name: str) -> str:
    return "int32" if name in WORDS else COLUMNS[name][0]


def _used(known: tuple[str, ...], places: Array) -> tuple[tuple[str, ...], Array]:
    """Only the words that some row has, each once, in the order of first use; -1 stays."""
    order: dict[str, int] = {}
    distinct, back = np.unique(places, return_inverse=True)
    table = [order.setdefault(known[place], len(order)) if place >= 0 else -1 for place in distinct]
    return tuple(order), np.array(table, dtype=np.int32)[back.reshape(-1)] if len(places) else places.astype(np.int32)


Numbers = dict[str, Callable[[CollectiveCall, str], int | None]]

_NUMBERS: Numbers = {
    "sequence": lambda call, _: call.sequence,
    "bytes": tensor_bytes,
    "in_bytes": lambda call, _: _times(call.in_elements, call.dtype),
    "out_bytes": lambda call, _: _times(call.out_elements, call.dtype),
    "peer": lambda call, _: call.peer,
}


def _times(elements: int | None, dtype: str | None) -> int | None:
    size = element_bytes(dtype)
    return None if elements is None or size is None else elements * size


def _calls(
    trace: Trace, rows: Array, work_class: Array
) -> tuple[dict[str, Array], dict[str, tuple[tuple[str, ...], Array]]]:
    """Columns of calls: numbers, and texts with their places. Everything is looked up once a distinct call."""
    communicates = work_class[rows] == WorkClass.COMMUNICATION
    call, name = trace.work.collective[rows], trace.work.name[rows]
    pair = np.where(communicates, (call.astype(np.int64) + 1) * len(trace.names) + name, -1)
    distinct, back = np.unique(pair, return_inverse=True)
    said = [_said(trace, int(each)) if each >= 0 else {} for each in distinct]
    back = back.reshape(-1)
    numbers = {
        key: np.array([_number(each.get(key)) for each in said], dtype=np.int64)[back]
        for key in (*_NUMBERS, "group_size")
    }
    texts = {}
    for key in ("collective", "call", "group", "group_label", "members"):
        known = [each.get(key) for each in said]
        words = tuple(dict.fromkeys(each for each in known if each is not None))
        places = {word: place for place, word in enumerate(words)}
        texts[key] = words, np.array([places.get(each, -1) for each in known], dtype=np.int64)[back]
    return numbers, texts


def _number(value: int | None) -> int:
    return -1 if value is None else int(value)


def _said(trace: Trace, pair: int) -> dict[str, Any]:
    """What is known of a call: of the file where it says it, else of the name of the kernel."""
    place, name = pair // len(trace.names) - 1, trace.names[pair % len(trace.names)]
    if place < 0:
        return {"collective": collective_of(name)}
    call = trace.collectives[place]
    collective = collective_of(call.name or name)
    members = call.ranks or trace.groups.get(call.group or "")
    size = call.group_size if call.group_size is not None else len(members) if members else None
    found: dict[str, Any] = {key: of(call, collective) for key, of in _NUMBERS.items()}
    return found | {
        "collective": collective,
        "call": call.name,
        "group": call.group,
        "group_label": call.group_label,
        "members": ",".join(map(str, members)) if members else None,
        "group_size": size,
    }


def _nth(columns: dict[str, Array]) -> Array:
    """int32: how many calls of the same name, group and sequence (or step) came before on the device; -1: no call."""
    nth = np.full(len(columns["start_ns"]), -1, dtype=np.int32)
    rows = np.flatnonzero(columns["collective"] >= 0)
    if not len(rows):
        return nth
    # a send or receive is told from others by its peer: each pair of ranks has an order of its own, and the numbers
    # that the library gives them differ between the two
    numbered = (columns["sequence"][rows] >= 0) & (columns["peer"][rows] < 0)
    keys = [columns[key][rows] for key in ("device", "collective", "call", "group", "members", "peer")]
    keys.append(np.where(numbered, columns["sequence"][rows], -1))
    keys.append(np.where(numbered, -1, columns["step"][rows]))
    order = np.lexsort((columns["start_ns"][rows], *keys))
    changed = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    first = np.concatenate(([True], changed))
    begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    nth[rows[order]] = np.arange(len(order)) - begin
    return nth
