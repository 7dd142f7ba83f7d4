"""The class of every piece of device work: from what the file says of a collective, then from its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from suanli.explain import kernel_names as names
from suanli.explain.intervals import Array
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import DeviceWork, OpDetail, Trace, WorkKind

_MANGLED = re.compile(r"^_Z")
_PEER = re.compile(r"(?i)^(p(to|2)p|peer)|peer *(->|to) *peer")
_NUMBERED = re.compile(r"[._]\d+$")


def classify(trace: Trace) -> Array:
    """uint8 [N]: the WorkClass of each row of `trace.work`. Every distinct name is looked at once."""
    work = trace.work
    found = _by_name(trace)
    copies = work.kind != WorkKind.KERNEL
    found[copies] = np.where(_peers(trace)[copies], WorkClass.PEER_COPY, WorkClass.COPY)
    # what the file says of a call stands above what its kernel is called, copies of a collective library too
    found[work.collective >= 0] = WorkClass.COMMUNICATION
    return found


def containers(trace: Trace) -> Array:
    """bool [N]: spans that only hold other spans of their device (a `while` of XLA): never work of their own."""
    numbers = np.array([d.hlo is not None and _holds(d) for d in trace.details] + [False], dtype=bool)
    return _look(numbers, trace.work.detail)


def _by_name(trace: Trace) -> Array:
    """The class by kernel name, or by category where XLA gives one."""
    work = trace.work
    table = np.full(len(trace.names), WorkClass.COMPUTE, dtype=np.uint8)
    for place in np.flatnonzero(np.bincount(work.name)):
        table[place] = class_of_name(trace.names[place])
    found = table[work.name] if len(work) else np.zeros(0, dtype=np.uint8)
    said = np.array([detail.hlo is not None for detail in trace.details] + [False], dtype=bool)
    rows = np.flatnonzero(_look(said, work.detail))
    # one look for each pair of a name and what is said of it
    pairs, where = np.unique(np.stack([work.name[rows], work.detail[rows]]), axis=1, return_inverse=True)
    classes = [class_of_instruction(trace.names[name], trace.details[detail]) for name, detail in pairs.T]
    found[rows] = np.array(classes, dtype=np.uint8)[where.reshape(-1)]
    return found


@lru_cache(maxsize=65536)
def class_of_name(name: str) -> WorkClass:
    """The class of a kernel, copy or set of that name, demangled or not."""
    return _first(names.KERNELS, spelled(name), WorkClass.COMPUTE)


def class_of_instruction(name: str, detail: OpDetail) -> WorkClass:
    """The class of an XLA instruction: its category, where said, before its name."""
    assert detail.hlo is not None
    category = str(detail.hlo.get("category") or "").lower()
    own = _first(names.HLO, _NUMBERED.sub("", name.lower()), WorkClass.COMPUTE)
    if category and "custom" not in category:
        return _first(names.HLO, category, WorkClass.COMPUTE)
    by_kernel = class_of_name(name)
    return own if by_kernel == WorkClass.COMPUTE else by_kernel


def _holds(detail: OpDetail) -> bool:
    category = str((detail.hlo or {}).get("category") or "")
    return re.match(names.CONTAINERS, category) is not None


def _peers(trace: Trace) -> Array:
    """bool [N]: copies from the memory of one device to that of another."""
    kinds = np.array([bool(_PEER.search(kind)) for kind in trace.copy_kinds] + [False], dtype=bool)
    by_name = np.zeros(len(trace.names), dtype=bool)
    for place in _copy_names(trace.work):
        by_name[place] = class_of_name(trace.names[place]) == WorkClass.PEER_COPY
    return _look(kinds, trace.work.copy) | (by_name[trace.work.name] if len(trace.work) else False)


def _copy_names(work: DeviceWork) -> Iterable[int]:
    return (int(place) for place in np.unique(work.name[work.kind == WorkKind.COPY]))


def _look(table: Array, places: Array) -> Array:
    """`table` at places; the last entry stands for -1."""
    found: Array = table[places]
    return found


def _first(rules: tuple[names.Rule, ...], text: str, otherwise: WorkClass) -> WorkClass:
    return next((meaning for pattern, meaning in _compiled(rules) if pattern.search(text)), otherwise)


@lru_cache(maxsize=8)
def _compiled(rules: tuple[names.Rule, ...]) -> tuple[tuple[re.Pattern[str], WorkClass], ...]:
    return tuple((re.compile(pattern), meaning) for pattern, meaning in rules)


def spelled(name: str) -> str:
    """A mangled name with its lengths out of the way: `_ZN2ck16tensor_operationE` reads ck::tensor_operation."""
    if not _MANGLED.match(name):
        return name
    parts, at = [], 0
    for match in re.finditer(r"\d+", name):
        begin = match.end()
        # a length may run together with the digit before it (template values): the longest suffix that fits is it
        size = next((int(match.group()[i:]) for i in range(len(match.group()))
                     if 0 < int(match.group()[i:]) <= len(name) - begin), 0)  # fmt: skip
        if match.start() >= at and size and re.fullmatch(r"[A-Za-z_]\w*", name[begin : begin + size]):
            parts.append(name[begin : begin + size])
            at = begin + size
    return "::".join(parts) or name
