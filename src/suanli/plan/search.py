"""The best layouts of a grid: bounds throw out what can neither be among the best nor on the front; the rest is timed.

Exact: a layout is left out only where something already timed is better for certain. Four prunings, in order:
rules (`enumerate`), states alone, whole memory, and a floor on the time against the k-th best found and the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from suanli.nouns.grid import Grid
from suanli.plan.enumerate import Enumeration

Array = Any  # a numpy array
FIRST, BATCH = 1 << 12, 1 << 17  # layouts looked at together: few until there is something to beat, then many
SLOWEST = 2.0  # the front ends where layouts are this many times as slow as the fastest
ROUNDING = 1e-9  # a floor and the time it is a floor of are added up in another order


class Model(Protocol):
    """What a search asks of memory and time, arrays in and out: of all rows of an enumeration at once, and of layouts
    with the row that each stands behind. Floors are never above what they are floors of.
    """

    def floor_bytes(self) -> Array:
        """For each row, memory no layout behind it can do without, in bytes."""

    def floor_s(self) -> Array:
        """For each row, seconds no layout behind it can do without."""

    def fullest_bytes(self, grid: Grid, row: Array) -> Array:
        """Memory of the fullest rank, in bytes."""

    def fewest_layers(self, grid: Grid, row: Array, limit_bytes: float) -> Array:
        """Of layouts that do not fit as they are: how few of the first layers of every chunk full recompute has to make
        again for them to fit, 0 where it has to be all.
        """

    def layout_floor_s(self, grid: Grid, row: Array) -> Array:
        """Seconds a layout cannot do without, in less time than `step_s` takes."""

    def step_s(self, grid: Grid, row: Array) -> Array:
        """Seconds of a step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Timed:
    """Layouts with their memory and time, fastest first; equal times by memory."""

    grid: Grid
    step_s: Array
    fullest_bytes: Array

    def __len__(self) -> int:
        return len(self.step_s)

    def take(self, where: Array) -> Timed:
        """Some of them."""
        return Timed(grid=self.grid.take(where), step_s=self.step_s[where], fullest_bytes=self.fullest_bytes[where])


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found and how many layouts came how far.

    `best` are the fastest that fit, `front` those than which nothing is as fast, as small and on as few GPUs, up to
    SLOWEST times the fastest step.
    Both are None where nothing fits; `least` is then the layout of least memory among those looked at.
    """

    best: Timed | None
    front: Timed | None
    enumerated: int
    legal: int
    fit: int
    timed: int
    least: tuple[Grid, float] | None


def search(
    found: Enumeration, model: Model, limit_bytes: float, top: int, progress: Callable[[float], None] | None = None
) -> Found:
    """The `top` fastest layouts of an enumeration that fit `limit_bytes`, and the front."""
    import numpy as np  # noqa: PLC0415  loaded with the first search

    floor_bytes, floors = model.floor_bytes(), model.floor_s()
    at = np.flatnonzero(floor_bytes <= limit_bytes)
    floors = floors[at]
    order = np.argsort(floors, kind="stable")
    at, floors = at[order], floors[order]
    keeper = _Keeper(model, limit_bytes, top)
    for start, end in _batches(found.tails[at]):
        wanted = keeper.wanted(floors[start:end], floor_bytes[at[start:end]], found.rows.gpus[at[start:end]])
        if wanted.any():
            rows = at[start:end][wanted]
            grid, place = found.expand(rows)
            keeper.look(grid, rows[place])
        if progress is not None:
            progress(end / len(at))
    return Found(
        best=keeper.best, front=keeper.front, enumerated=found.enumerated, legal=found.legal, timed=keeper.timed,
        fit=keeper.fit, least=keeper.least,
    )  # fmt: skip


def _batches(tails: Array) -> Iterator[tuple[int, int]]:
    """Rows from and to, so that about FIRST layouts stand behind the first batch, and up to BATCH behind later ones."""
    import numpy as np  # noqa: PLC0415

    total, start, size = np.cumsum(tails), 0, FIRST
    while start < len(tails):
        before = total[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + size, side="right")))
        yield start, end
        start, size = end, min(8 * size, BATCH)


def _split(where: Array) -> tuple[Array, Array]:
    """Places where something holds, and where not."""
    return where.nonzero()[0], (~where).nonzero()[0]


def _plain_before(grid: Grid, row: Array) -> Array:
    """For each layout the place of the same one with nothing recomputed, which stands shortly before; else its own."""
    import numpy as np  # noqa: PLC0415

    own = np.arange(len(grid))
    plain = np.maximum.accumulate(np.where(grid.recompute == 0, own, 0))
    same = (row[plain] == row) & (grid.vpp[plain] == grid.vpp) & (grid.schedule[plain] == grid.schedule)
    return np.where(same & (grid.recompute[plain] == 0), plain, own)


class _Keeper:
    """The best and the front so far."""

    def __init__(self, model: Model, limit_bytes: float, top: int) -> None:
        self.model, self.limit, self.top = model, limit_bytes, top
        self.best: Timed | None = None
        self.front: Timed | None = None
        self.timed = self.fit = 0
        self.least: tuple[Grid, float] | None = None

    def wanted(self, floors: Array, sizes: Array, gpus: Array) -> Array:
        """Which may still be among the best or on the front."""
        import numpy as np  # noqa: PLC0415

        if self.best is None or self.front is None or len(self.best) < self.top:
            return np.ones(len(floors), dtype=bool)
        fast = floors <= self.best.step_s[-1] * (1 + ROUNDING)
        near = floors <= SLOWEST * self.best.step_s[0] * (1 + ROUNDING)
        return fast | (near & ~self._beaten(floors * (1 + ROUNDING), sizes, gpus))

    def _beaten(self, seconds: Array, sizes: Array, gpus: Array) -> Array:
        """Whether something on the front is as fast, as small, and on as few GPUs."""
        import numpy as np  # noqa: PLC0415

        assert self.front is not None
        found = np.zeros(len(seconds), dtype=bool)
        of_front = self.front.grid.gpus
        for count in np.unique(of_front):  # fastest first: the smallest of those as fast is the one to beat
            here = of_front == count
            smallest = np.minimum.accumulate(self.front.fullest_bytes[here])
            place = np.searchsorted(self.front.step_s[here], seconds, side="right") - 1
            found |= (place >= 0) & (smallest[place.clip(0)] <= sizes) & (count <= gpus)
        return found

    def look(self, grid: Grid, row: Array) -> None:
        """Take in layouts: memory of all, time of those that fit and may matter."""
        import numpy as np  # noqa: PLC0415

        if not len(grid):
            return
        floors = self.model.layout_floor_s(grid, row)
        possible = np.flatnonzero(self.wanted(floors, 0 * row, grid.gpus))
        plain = _plain_before(grid, row)
        known, open_ = (possible[each] for each in _split(grid.recompute_layers[possible] >= 0))
        sizes = np.full(len(grid), np.nan)
        if len(known):
            sizes[known] = self.model.fullest_bytes(grid.take(known), row[known])
        settled, rows = self._settled(grid.take(open_), row[open_], sizes[plain[open_]])
        self._take_in(grid.take(known), row[known], floors[known], sizes[known])
        self._take_in(settled, rows)

    def _settled(self, grid: Grid, row: Array, plain_bytes: Array) -> tuple[Grid, Array]:
        """Layouts with the fewest layers recomputed that let them fit, without those where that is none or all.
        `plain_bytes` is what they hold with none; nan where that is not known yet.
        """
        import numpy as np  # noqa: PLC0415

        unknown = np.flatnonzero(np.isnan(plain_bytes))
        if len(unknown):
            plain = replace(grid, recompute=0 * grid.recompute, recompute_layers=0 * grid.recompute).take(unknown)
            plain_bytes[unknown] = self.model.fullest_bytes(plain, row[unknown])
        needed = np.flatnonzero(plain_bytes > self.limit)
        grid, row = grid.take(needed), row[needed]
        if not len(grid):
            return grid, row
        layers = self.model.fewest_layers(grid, row, self.limit)
        kept = np.flatnonzero(layers > 0)
        return replace(grid, recompute_layers=layers).take(kept), row[kept]

    def _take_in(self, grid: Grid, row: Array, floors: Array = None, sizes: Array = None) -> None:
        """Remember those that fit and may matter, once timed."""
        import numpy as np  # noqa: PLC0415

        if not len(grid):
            return
        if sizes is None:
            floors = self.model.layout_floor_s(grid, row)
            possible = np.flatnonzero(self.wanted(floors, 0 * row, grid.gpus))
            grid, row, floors = grid.take(possible), row[possible], floors[possible]
            if not len(grid):
                return
            sizes = self.model.fullest_bytes(grid, row)
        self._remember_least(grid, sizes)
        fits = sizes <= self.limit
        self.fit += int(fits.sum())
        matters = np.flatnonzero(fits & self.wanted(floors, sizes, grid.gpus))
        self.timed += len(matters)
        if len(matters):
            grid, row, sizes = grid.take(matters), row[matters], sizes[matters]
            self._merge(Timed(grid=grid, step_s=self.model.step_s(grid, row), fullest_bytes=sizes))

    def _remember_least(self, grid: Grid, sizes: Array) -> None:
        import numpy as np  # noqa: PLC0415

        at = int(np.argmin(sizes))
        if self.least is None or sizes[at] < self.least[1]:
            self.least = (grid.take(np.array([at])), float(sizes[at]))

    def _merge(self, new: Timed) -> None:
        import numpy as np  # noqa: PLC0415

        order = np.lexsort((new.fullest_bytes, new.step_s))
        best = new.take(order[: self.top])
        self.best = fastest(best if self.best is None else joined(self.best, best), self.top)
        front = front_of(new.take(order))
        front = front if self.front is None else front_of(fastest(joined(self.front, front)))
        self.front = front.take(front.step_s <= SLOWEST * self.best.step_s[0])


def joined(one: Timed, other: Timed) -> Timed:
    """Both, one after the other."""
    import numpy as np  # noqa: PLC0415

    columns = {
        name: np.concatenate([getattr(one.grid, name), getattr(other.grid, name)]) for name in Grid.__dataclass_fields__
    }
    return Timed(
        grid=Grid(**columns),
        step_s=np.concatenate([one.step_s, other.step_s]),
        fullest_bytes=np.concatenate([one.fullest_bytes, other.fullest_bytes]),
    )


def fastest(timed: Timed, top: int | None = None) -> Timed:
    """The `top` fastest in order, equal times by memory, then in the order they came."""
    import numpy as np  # noqa: PLC0415

    return timed.take(np.lexsort((timed.fullest_bytes, timed.step_s))[:top])


def front_of(timed: Timed) -> Timed:
    """Of layouts in order, those that no other beats in time, memory and GPUs; of equals the first."""
    import numpy as np  # noqa: PLC0415

    gpus, sizes = timed.grid.gpus, timed.fullest_bytes
    kept = np.ones(len(timed), dtype=bool)
    for count in np.unique(gpus):  # an earlier one is as fast: it beats where it is as small on as few
        least = np.minimum.accumulate(np.where(gpus <= count, sizes, np.inf))
        before = np.concatenate([[np.inf], least[:-1]])
        here = gpus == count
        kept[here] = sizes[here] < before[here]
    return timed.take(np.flatnonzero(kept))
