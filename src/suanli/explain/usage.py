"""Unions of a device's work within windows: compute, communication, what of it is exposed, copies, idle."""

from __future__ import annotations

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.sweep import Pieces, new_ns
from suanli.nouns.attribution import WorkClass
from suanli.nouns.explained import Usage
from suanli.units import GIGA


def seconds(ns: float) -> float:
    """Seconds of nanoseconds."""
    return float(ns) / GIGA


def usages(pieces: Pieces, work_class: Array, kernel: Array, windows_ns: Array) -> list[Usage]:
    """One Usage a window. `work_class` and `kernel` (is it a kernel?) stand beside the pieces.

    A copy that the profiler labels a kernel counts as compute here, as it does in other tools.
    """
    communicates = work_class == WorkClass.COMMUNICATION
    computes = kernel & ~communicates
    chosen = {
        "busy": np.ones_like(computes),
        "compute": computes,
        "matmul": work_class == WorkClass.MATMUL,
        "communication": communicates,
        "copies": ~kernel & ~communicates,
        "not copies": computes | communicates,
    }
    covered = {name: _union(pieces, rows, len(windows_ns)) for name, rows in chosen.items()}
    covered["exposed"] = covered["not copies"] - covered["compute"]
    covered["exposed_copies"] = covered["busy"] - covered["not copies"]
    return [_usage(windows_ns[k], {name: ns[k] for name, ns in covered.items()}) for k in range(len(windows_ns))]


def _union(pieces: Pieces, chosen: Array, windows: int) -> Array:
    """Nanoseconds of each window that the chosen pieces cover."""
    own = pieces.only(chosen)
    return own.total(new_ns(own.start, own.end), windows)


def _usage(window_ns: int, ns: dict[str, int]) -> Usage:
    return Usage(
        window_s=seconds(window_ns),
        busy_s=seconds(ns["busy"]),
        idle_s=seconds(window_ns - ns["busy"]),
        idle_fraction=float((window_ns - ns["busy"]) / window_ns) if window_ns else None,
        compute_s=seconds(ns["compute"]),
        matmul_s=seconds(ns["matmul"]),
        communication_s=seconds(ns["communication"]),
        exposed_communication_s=seconds(ns["exposed"]),
        overlapped_fraction=float(1 - ns["exposed"] / ns["communication"]) if ns["communication"] else None,
        copies_s=seconds(ns["copies"]),
        exposed_copies_s=seconds(ns["exposed_copies"]),
    )
