"""What Kineto's file joins: device work to its launch by correlation, and to its op by External id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import HostKind

Array = npt.NDArray[Any]


def linked(work: dict[str, Array], host: dict[str, Array]) -> None:
    """Put the columns `launch` and `op` (rows of `host`; -1: none) into `work`; take `external` out of both.

    An External id that equals the correlation is none: old versions wrote the one for the other, and it meets ids of
    ops by chance.
    """
    ids, host_ids = work.pop("external"), host.pop("external")
    runtime = host["kind"] == HostKind.RUNTIME
    work["launch"] = _joined(work["correlation"], work["start_ns"], host["correlation"], host["start_ns"], runtime)
    ids = np.where(ids == work["correlation"], -1, ids)
    ops = _joined(ids, work["start_ns"], host_ids, host["start_ns"], host["kind"] == HostKind.OP)
    marks = _joined(ids, work["start_ns"], host_ids, host["start_ns"], host["kind"] == HostKind.MARK)
    work["op"] = np.where(ops >= 0, ops, marks)


def _joined(keys: Array, starts: Array, other: Array, other_starts: Array, among: Array) -> Array:
    """For each key the row of `other` that has it; of several the last to begin before `starts`, else the first.

    Several processes in one file count their launches alike, and launches come before what they launch.
    """
    rows = np.flatnonzero(among & (other >= 0))
    if not len(rows) or not len(keys):
        return np.full(len(keys), -1, dtype=np.int64)
    rows = rows[np.lexsort((other_starts[rows], other[rows]))]
    sorted_keys, sorted_starts = other[rows], other_starts[rows]
    first, after = np.searchsorted(sorted_keys, keys, "left"), np.searchsorted(sorted_keys, keys, "right")
    found = np.where((after > first) & (keys >= 0), rows[np.minimum(first, len(rows) - 1)], -1)
    for at in np.flatnonzero((after - first > 1) & (keys >= 0)):
        before = int(np.searchsorted(sorted_starts[first[at] : after[at]], starts[at], "right"))
        found[at] = rows[first[at] + max(before - 1, 0)]
    return found
