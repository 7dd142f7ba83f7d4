"""Every legal layout at once: a column of numbers for each axis, grown axis by axis, illegal rows dropped as it grows.

Rules (Megatron-core's, and DualPipe's of arXiv:2412.19437):

- degrees divide the GPUs, heads, columns, experts, positions and batch as `limits` has them; dp is what is left;
- ep · etp divides tp · cp · dp;
- interleaved: two chunks a rank or more, a layer each, where that comes out even the embedding and the head as chunks
  of their own; micro-batches a multiple of pp;
- zero-bubble: at least pp micro-batches; DualPipe: pp even, an even number of micro-batches, at least 2 · pp;
- states are sharded (ZeRO) over more than one replica; sequence parallelism is over tp above 1.

Rows and layouts come out as a `Grid` of float64; while it grows, columns are int64 and below 10^7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.limits import AXES, Space, possible
from suanli.plan.pins import Pins

Array = Any  # a numpy array
INTERLEAVED, ZERO_BUBBLE, DUALPIPE = (
    SCHEDULES.index(name) for name in ("interleaved", "zero-bubble", "dualpipe")
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Enumeration:
    """Legal rows of every axis but recompute, schedule and vpp, which `expand` joins; and how many were not legal.

    `enumerated` is every combination of the axes' values, each by itself possible; `by_rule` how many of them each
    rule took out, in the order in which rules are applied: enumerated = sum of by_rule + sum of `tails`.
    `tails` is how many legal layouts stand behind each row.
    """

    space: Space
    axes: Mapping[str, Array]
    rows: Grid
    tails: Array
    enumerated: int
    by_rule: Mapping[str, int]

    @property
    def legal(self) -> int:
        """Layouts that no rule forbids and the states alone do not rule out."""
        return int(self.tails.sum())

    def expand(self, where: Array) -> tuple[Grid, Array]:
        """The layouts behind the rows at these places, and for each the place among them of its row."""
        import numpy as np  # noqa: PLC0415

        rows = self.rows.take(where)
        counts = _micro_batches(self.space, rows)
        place, chunks, schedules = [], [], []
        for schedule in self.axes["schedule"].tolist():
            fed = np.flatnonzero(_feeds(schedule, rows.pp, counts))
            values = self.axes["vpp"]
            most = np.searchsorted(values, self.space.cuts.most_chunks(rows.pp[fed]), side="right")
            first = int(np.searchsorted(values, 2))
            found = (most - first).clip(0) if schedule == INTERLEAVED else np.repeat(int(1 in values), len(fed))
            starts = np.repeat(np.cumsum(found) - found, found)
            place.append(np.repeat(fed, found))
            chunks.append(values[np.arange(len(starts)) - starts + (first if schedule == INTERLEAVED else 0)])
            schedules.append(np.repeat(schedule, len(starts)))
        at, options = np.concatenate(place), self.axes["recompute"]
        at = np.repeat(at, len(options))
        joined = {
            "vpp": np.repeat(np.concatenate(chunks), len(options)),
            "schedule": np.repeat(np.concatenate(schedules), len(options)),
            "recompute": np.tile(options, len(at) // len(options)),
        }
        return _as_grid({name: joined[name] if name in joined else getattr(rows, name)[at] for name in AXES}), at


Bound = Callable[[Grid], Array]


def enumerate_grid(space: Space, pins: Pins, keep: Bound | None = None) -> Enumeration:
    """All legal rows of a space under pins. `keep` is shown rows of degrees and ZeRO stages (other axes at their
    first value) and says which may fit by the states alone.
    """
    import numpy as np  # noqa: PLC0415

    axes = {name: pins.get(name) or possible(space, name) for name in AXES}
    axes["schedule"] = tuple(SCHEDULES.index(str(each)) for each in axes["schedule"])
    axes["recompute"] = tuple(RECOMPUTE.index(str(each)) for each in axes["recompute"])
    return _Grower(space, {name: np.array(values) for name, values in axes.items()}).run("dp" in pins, keep)


class _Grower:
    """Grows the columns. `rest` is how many combinations of the axes not yet joined stand behind each row."""

    def __init__(self, space: Space, axes: dict[str, Array]) -> None:
        self.space, self.axes = space, axes
        self.columns: dict[str, Array] = {}
        self.by_rule: dict[str, int] = {}
        self.rest = len(space.gpus) * prod(len(axes[name]) for name in AXES if name != "dp")
        self.enumerated = self.rest

    def run(self, dp_pinned: bool, keep: Bound | None) -> Enumeration:
        import numpy as np  # noqa: PLC0415

        at = self.columns
        at["gpus"] = np.array(self.space.gpus)
        self.rest //= len(self.space.gpus)
        for name in ("pp", "tp", "cp"):
            self.join(name)
            self.drop("degrees divide the GPUs", at["gpus"] % self._product("tp", "pp", "cp") == 0)
        at["dp"] = at["gpus"] // self._product("tp", "pp", "cp")
        self.drop("replicas divide the batch", self.space.global_batch % at["dp"] == 0)
        if dp_pinned:
            self.drop("dp as pinned", np.isin(at["dp"], self.axes["dp"]))
        for name in ("ep", "etp"):
            self.join(name)
            self.drop("experts divide the ranks", at["tp"] * at["cp"] * at["dp"] % self._product("ep", "etp") == 0)
        self.join("zero")
        self.drop("ZeRO needs replicas", (at["zero"] == 0) | (at["dp"] * at["cp"] > 1))
        if keep is not None:
            self.drop("states alone do not fit", keep(self.rows()))
        self.join("micro_batch")
        self.drop("micro-batches divide the batch", self.space.global_batch % self._product("dp", "micro_batch") == 0)
        self.join("sp")
        self.drop("sequence parallelism needs tp", ~at["sp"] | (at["tp"] > 1))
        rows = self.rows()
        tails = self._tails(rows)
        self._count("schedule", len(rows) * self.rest - int(tails.sum()), 1)
        return Enumeration(
            space=self.space, axes=self.axes, rows=rows, tails=tails, enumerated=self.enumerated, by_rule=self.by_rule
        )

    def _tails(self, rows: Grid) -> Array:
        """Schedules, chunks and recompute policies that each row can have."""
        import numpy as np  # noqa: PLC0415

        counts, values = _micro_batches(self.space, rows), self.axes["vpp"]
        most = np.searchsorted(values, self.space.cuts.most_chunks(rows.pp), side="right")
        chunks = most - np.searchsorted(values, 2)
        found = np.zeros(len(rows), dtype=np.int64)
        for schedule in self.axes["schedule"].tolist():
            each = chunks.clip(0) if schedule == INTERLEAVED else int(1 in values)
            found += np.where(_feeds(schedule, rows.pp, counts), each, 0)
        return found * len(self.axes["recompute"])

    def _product(self, *names: str) -> Array:
        found = self.columns["gpus"] * 0 + 1
        for name in names:
            if name in self.columns:
                found = found * self.columns[name]
        return found

    def join(self, name: str) -> None:
        """Every row with every value of an axis."""
        import numpy as np  # noqa: PLC0415

        values, rows = self.axes[name], len(self.columns["gpus"])
        self.rest //= len(values)
        self.columns.update({key: np.repeat(column, len(values)) for key, column in self.columns.items()})
        self.columns[name] = np.tile(values, rows)

    def drop(self, rule: str, kept: Array) -> None:
        """Keep rows; the others count with all that would have been joined to them."""
        self._count(rule, len(kept) - int(kept.sum()), self.rest)
        self.columns.update({name: column[kept] for name, column in self.columns.items()})

    def _count(self, rule: str, rows: int, each: int) -> None:
        self.by_rule[rule] = self.by_rule.get(rule, 0) + rows * each

    def rows(self) -> Grid:
        """The rows so far, axes not yet joined at their first value."""
        import numpy as np  # noqa: PLC0415

        rows = len(self.columns["gpus"])
        return _as_grid({name: self.columns.get(name, np.repeat(self.axes[name][:1], rows)) for name in AXES})


def _as_grid(columns: Mapping[str, Array]) -> Grid:
    """Columns as a Grid; what the search does not vary (offload, HSDP, recompute of some layers) is off."""
    found = {name: columns[name].astype("float64") for name in AXES}
    return Grid(**found, **dict.fromkeys(("recompute_layers", "shards", "offload"), 0 * found["tp"]))


def _micro_batches(space: Space, rows: Grid) -> Array:
    found: Array = space.global_batch // (rows.dp * rows.micro_batch)
    return found


def _feeds(schedule: int, pp: Array, count: Array) -> Array:
    """Whether a schedule can be: a pipeline, and micro-batches of the number it needs."""
    if schedule == INTERLEAVED:
        return (pp > 1) & (count % pp == 0)
    if schedule == ZERO_BUBBLE:
        return (pp > 1) & (count >= pp)
    if schedule == DUALPIPE:
        return (pp > 1) & (pp % 2 == 0) & (count % 2 == 0) & (count >= 2 * pp)
    return pp > 0
