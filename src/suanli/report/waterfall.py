"""A waterfall in characters: from the peak down to what was useful, each bar beginning where the one before ended."""

from __future__ import annotations

from collections.abc import Sequence

BAR = 28  # characters of the whole: the table then fits into 80


def bars(parts: Sequence[float], width: int = BAR) -> list[str]:
    """A bar for each part of a whole of 1, in order, from the right end to the left.

    The bars tile the width: each ends where the next begins, by rounding the running sums, so that none is drawn twice.
    A part too small for a character has a thin one at its place.
    """
    found, left = [], 1.0
    for part in parts:
        last, left = round(left * width), left - part
        first = max(round(left * width), 0)
        drawn = "█" * (last - first) or ("▏" if part > 0 else "")
        found.append(" " * min(first, width - 1) + drawn if drawn else "")
    return found
