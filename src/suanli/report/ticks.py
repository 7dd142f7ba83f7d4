"""Where the labels of an axis stand: at powers of ten of a logarithmic one, at round steps of a linear one."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MOST = 6
_ROUND = (1, 2, 5, 10)


def log_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Powers of ten between the ends, every second or third where there are many; the ends where there is none."""
    low, high = min(values), max(values)
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return tuple(dict.fromkeys((low, high)))
    step = -(-(last - first + 1) // _MOST)
    return tuple(float(10**power) if power < 0 else 10**power for power in range(first, last + 1, step))


def linear_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Multiples of a round step that lie between the ends."""
    low, high = min(values), max(values)
    if high <= low:
        return (low,)
    size = 10 ** math.floor(math.log10((high - low) / (_MOST - 1)))
    step = next(size * each for each in _ROUND if size * each >= (high - low) / (_MOST - 1))
    return tuple(place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1))
