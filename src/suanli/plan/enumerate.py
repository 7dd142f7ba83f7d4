"""Every legal layout at once: a column of numbers for each axis, grown axis by axis, illegal rows dropped as it grows.

Rules (Megatron-core's, and DualPipe's of arXiv:2412.19437):

- degrees divide the GPUs, heads, columns, experts, positions and batch as `limits` has them; dp is what is left;
- ep · etp divides tp · cp · dp;
- interleaved: two chunks a rank or more, a layer each, where that comes out even the embedding and the head as chunks
  of their own; micro-batches a multiple of pp;
- zero-bubble: at least pp micro-batches; DualPipe: pp even, an even number of micro-batches, at least 2 · pp;
- states are sharded (ZeRO) over more than one replica, or over fewer than all of them (HSDP), a divisor of dp · cp; of
  stages that the stack can run beside a pipeline, and over fewer; sequence parallelism is over tp above 1;
- recompute of some layers is of fewer than a chunk has.

Rows and layouts come out as a `Grid` of float64; while it grows, columns are int64 and below 10^7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.limits import AXES, BLOCK, Space, node_shards, possible
from suanli.plan.pins import Pins

Array = Any  # a numpy array
FULL = RECOMPUTE.index("full")
FEWEST = -1  # layers to recompute that memory has yet to tell
INTERLEAVED, ZERO_BUBBLE, DUALPIPE = (
    SCHEDULES.index(name) for name in ("interleaved", "zero-bubble", "dualpipe")
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Enumeration:
    """Legal rows of every axis but recompute, schedule and vpp, which `expand` joins; and how many were not legal.
    `axes["recompute"]` are pairs: place in RECOMPUTE, and layers (0: all, FEWEST: to be found).

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
        vpp = np.concatenate(chunks)
        fits = [np.flatnonzero(vpp <= _most_recomputed(self.space, rows.pp[at], layers)) for _, layers in options]
        kept = np.concatenate(fits)
        order = np.argsort(kept, kind="stable")  # policies of a layout side by side
        kept, option = kept[order], np.repeat(np.arange(len(options)), [len(each) for each in fits])[order]
        at = at[kept]
        joined = {
            "vpp": vpp[kept], "schedule": np.concatenate(schedules)[kept],
            "recompute": options[option, 0], "recompute_layers": options[option, 1],
        }  # fmt: skip
        names = (*AXES, "recompute_layers")
        return _as_grid({name: joined[name] if name in joined else getattr(rows, name)[at] for name in names}), at


Bound = Callable[[Grid], Array]


def enumerate_grid(space: Space, pins: Pins, keep: Bound | None = None) -> Enumeration:
    """All legal rows of a space under pins. `keep` is shown rows of degrees and ZeRO stages (other axes at their
    first value) and says which may fit by the states alone.
    """
    import numpy as np  # noqa: PLC0415

    axes = {name: pins.get(name) or _searched(space, name) for name in AXES}
    axes["schedule"] = tuple(SCHEDULES.index(str(each)) for each in axes["schedule"])
    names = ("full",) if "recompute_layers" in pins and "recompute" not in pins else axes["recompute"]
    axes["recompute"] = policies(names, pins.get("recompute_layers", ()))
    arrays = {name: np.array(values) for name, values in axes.items()}
    return _Grower(space, arrays, "shards" in pins).run("dp" in pins, keep)


def _searched(space: Space, name: str) -> tuple[Any, ...]:
    """What the search tries of an axis that is not pinned: nothing offloaded, states over all replicas or a node's."""
    return {"offload": (False,), "shards": node_shards(space)}.get(name) or possible(space, name)


def policies(names: Sequence[Any], layers: Sequence[int] = ()) -> tuple[tuple[int, int], ...]:
    """Recompute policies as pairs: place in RECOMPUTE, and layers (0: all, FEWEST: to be found). Under `block` nothing
    may have to be made again, or everything; layers that are asked for stand in the place of both.
    """
    found: dict[tuple[int, int], None] = {}
    for name in names:
        some = str(name) in (BLOCK, RECOMPUTE[FULL])
        if layers and some:
            found |= dict.fromkeys((FULL, each) for each in layers)
        elif name == BLOCK:
            found |= dict.fromkeys(((0, 0), (FULL, FEWEST), (FULL, 0)))
        else:
            found[RECOMPUTE.index(str(name)), 0] = None
    return tuple(sorted(found))


class _Grower:
    """Grows the columns. `rest` is how many combinations of the axes not yet joined stand behind each row."""

    def __init__(self, space: Space, axes: dict[str, Array], shards_pinned: bool = False) -> None:
        self.space, self.axes, self.shards_pinned = space, axes, shards_pinned
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
        self.drop("the stack's ZeRO beside a pipeline", (at["pp"] == 1) | np.isin(at["zero"], self.space.pipeline_zero))
        self.join("shards")
        self.drop("states shared by fewer than all replicas", (at["shards"] == 0) | self._shared_by_fewer())
        self.join("offload")
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

    def _shared_by_fewer(self) -> Array:
        """Where a group of ranks divides the replicas, and the stack can shard so; a group that the search itself
        chooses fills a node.
        """
        import numpy as np  # noqa: PLC0415

        at = self.columns
        replicas, shards = at["dp"] * at["cp"], np.maximum(at["shards"], 1)
        filled = self.shards_pinned | (shards * at["tp"] == self.space.per_node)
        return filled & (shards < replicas) & (replicas % shards == 0) & np.isin(at["zero"], self.space.hybrid)

    def _tails(self, rows: Grid) -> Array:
        """Schedules, chunks and recompute policies that each row can have."""
        import numpy as np  # noqa: PLC0415

        counts, values = _micro_batches(self.space, rows), self.axes["vpp"]
        found = np.zeros(len(rows), dtype=np.int64)
        for schedule in self.axes["schedule"].tolist():
            fed = _feeds(schedule, rows.pp, counts)
            for _, layers in self.axes["recompute"].tolist():
                large = _most_recomputed(self.space, rows.pp, layers)
                if schedule == INTERLEAVED:
                    most = np.searchsorted(
                        values, np.minimum(large, self.space.cuts.most_chunks(rows.pp)), side="right"
                    )
                    each = (most - np.searchsorted(values, 2)).clip(0)
                else:
                    each = (1 in values) * (large >= 1)
                found += np.where(fed, each, 0)
        return found

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
        found = {name: self.columns.get(name, np.repeat(self.axes[name][:1], rows, axis=0)) for name in AXES}
        return _as_grid(found | {"recompute": np.zeros(rows), "recompute_layers": np.zeros(rows)})


def _as_grid(columns: Mapping[str, Array]) -> Grid:
    return Grid(**{name: column.astype("float64") for name, column in columns.items()})


def _most_recomputed(space: Space, pp: Array, layers: int) -> Array:
    """Chunks a rank may hold, so that `layers` of them (FEWEST: one, 0: all) are fewer than the largest has."""
    import numpy as np  # noqa: PLC0415

    if layers == 0:
        return 0 * pp + space.cuts.layers + 1
    return np.floor((space.cuts.layers - 1) / (pp * max(layers, 1)))


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
