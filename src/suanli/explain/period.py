"""The period of a sequence of kernel names, where nothing marks the steps."""

from __future__ import annotations

import numpy as np

from suanli.explain.intervals import Array

FEWEST = 3  # periods that a trace must hold
LEAST_MATCH = 0.97  # of the names at one period's distance that must be equal; layers of one step reach less
AS_GOOD = 0.995  # of the best match: the shortest such period is taken (layers repeat too, less exactly)
_CANDIDATES = 64
_PROJECTIONS = 4
_SEED = 20261130  # the codes are random, the same each time


def find_period(names: Array) -> int | None:
    """Rows after which the sequence comes again; None where it does not. O(n log n).

    Names become random signs, so that the autocorrelation counts equal names at every distance at once; the best
    distances are then counted exactly.
    """
    most = len(names) // FEWEST
    if most < 1:
        return None
    likely = np.argsort(-_autocorrelation(names)[1 : most + 1], kind="stable")[:_CANDIDATES] + 1
    # a multiple of a period is as good as the period: its divisors are tried as well
    distances = np.unique(np.concatenate([likely, *(likely // parts for parts in range(2, 5))]))
    distances = distances[distances >= 1]
    match = np.array([(names[:-d] == names[d:]).mean() for d in distances])
    if match.max(initial=0.0) < LEAST_MATCH:
        return None
    return int(distances[match >= AS_GOOD * match.max()][0])


def _autocorrelation(names: Array) -> Array:
    """About how many names are equal at each distance, per row that has one at that distance."""
    _, codes = np.unique(names, return_inverse=True)
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(_PROJECTIONS, int(codes.max()) + 1))
    size = 1 << int(2 * len(names) - 1).bit_length()
    total = np.zeros(len(names))
    for row in signs:
        spectrum = np.fft.rfft(row[codes], size)
        total += np.fft.irfft(spectrum * spectrum.conj(), size)[: len(names)]
    scaled: Array = total / np.arange(len(names), 0, -1)
    return scaled


def phase(start: Array, end: Array, period: int) -> int:
    """The row at which a period begins: where the device waits longest before it, over all periods."""
    idle = np.maximum(start[1:] - np.maximum.accumulate(end)[:-1], 0)
    before = np.concatenate(([0], idle))
    rows = len(before) - len(before) % period
    return int(before[:rows].reshape(-1, period).sum(axis=0).argmax())
