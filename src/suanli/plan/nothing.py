"""What to say where no layout is legal, or none fits: by how much, which term, and what would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suanli.errors import Fault, InputError
from suanli.nouns.layout import Layout
from suanli.plan.enumerate import Enumeration, enumerate_grid
from suanli.plan.limits import Space
from suanli.plan.pins import Pins
from suanli.plan.pricing import Books, Prices
from suanli.units import format_bytes

MOST_TIMES = 1024  # more GPUs are tried up to so many times as many


def nothing_legal(found: Enumeration, pins: Pins) -> InputError:
    """The error where every combination breaks a rule: which rules, how often, the most frequent first."""
    rules = sorted(((count, rule) for rule, count in found.by_rule.items() if count), reverse=True)
    broken = ", ".join(f"{rule} ({count:,})" for count, rule in rules)
    pinned = ", ".join(f"{name}={'/'.join(map(str, values))}" for name, values in pins.items())
    return InputError(
        Fault(
            code="no_layout",
            message="no layout is legal",
            where="--pin" if pins else "--gpus",
            got=f"{pinned or 'no pins'}; of {found.enumerated:,} combinations, ruled out by: {broken}",
            expected="fewer pins, or a number of GPUs and a batch that divide",
        )
    )


def nothing_fits(
    books: Books, space: Space, pins: Pins, axes: Pins, found: Enumeration, limit: int, offloads: bool,
    fullest: Callable[[Layout], Any],
) -> InputError:  # fmt: skip
    """The error where every legal layout needs more memory than there is: the smallest, its largest term, a way out.
    `axes` are the pins and what the stack can run; `offloads`, whether it can keep optimizer states on the host.
    """
    layout, least = smallest(books, found)
    rank = fullest(layout)
    ways = [f"--memory-limit {format_bytes(least)}"]
    enough = gpus_that_fit(books, space, axes, limit)
    if enough is not None:
        ways.append(f"--gpus {enough:,}")
    if offloads and "offload" not in pins and fits_offloaded(books, space, axes, limit):
        ways.append("--pin offload=yes, optimizer states on the host")
    if pins:
        ways.append("fewer pins")
    return InputError(
        Fault(
            code="nothing_fits",
            message="no layout fits the memory",
            where="--memory-limit",
            got=f"{format_bytes(limit)}; the smallest ({layout.short}) needs {format_bytes(least)}, "
            f"{format_bytes(least - limit)} more, of it {rank.largest} {format_bytes(getattr(rank, rank.largest))} "
            f"on stage {rank.stage}",
            expected="what would fit: " + ", or ".join(ways),
        )
    )


def fits_offloaded(books: Books, space: Space, axes: Pins, limit: int) -> bool:
    """Whether something fits with optimizer states in the host's memory."""
    found = enumerate_grid(space, axes | {"offload": (True,)}, books.keep(limit))
    return bool(found.legal) and smallest(books, found)[1] <= limit


def smallest(books: Books, found: Enumeration) -> tuple[Layout, float]:
    """The layout of least memory of a whole enumeration, and that memory."""
    import numpy as np  # noqa: PLC0415

    prices = Prices(books, found)
    order = np.argsort(prices.floor_bytes(), kind="stable")
    best: tuple[Layout, float] | None = None
    for rows in np.array_split(order, max(1, found.legal // (1 << 17))):
        if best is not None and prices.floor_bytes()[rows].min() >= best[1]:
            break
        grid, place = found.expand(rows)
        known = (grid.recompute_layers >= 0).nonzero()[0]  # the fewest layers of a policy are not its smallest
        grid, place = grid.take(known), place[known]
        if len(grid):
            sizes = prices.fullest_bytes(grid, rows[place])
            at = int(sizes.argmin())
            if best is None or sizes[at] < best[1]:
                best = grid.at(at), float(sizes[at])
    assert best is not None, "an enumeration with legal layouts"
    return best


def gpus_that_fit(books: Books, space: Space, pins: Pins, limit: int) -> int | None:
    """The smallest power-of-two multiple of the GPUs on which something fits, None where none up to MOST_TIMES does."""
    times = 2
    while times <= MOST_TIMES:
        wider = replace(space, gpus=tuple(times * each for each in space.gpus))
        found = enumerate_grid(
            wider, {name: values for name, values in pins.items() if name != "dp"}, books.keep(limit)
        )
        if found.legal and smallest(books, found)[1] <= limit:
            return wider.gpus[0]
        times *= 2
    return None
