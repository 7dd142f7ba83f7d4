"""Many layouts as a structure of arrays, so that one formula serves one layout and a whole search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from suanli.nouns.layout import SCHEDULES, Layout
from suanli.nouns.workload import RECOMPUTE

Array = Any  # a float64 numpy array, or a number


def _field(doc: str) -> Any:
    return field(metadata={"unit": "", "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Layouts side by side: every field an array of one length, float64 (exact for whole numbers below 2^53).

    `recompute` and `schedule` are places in `RECOMPUTE` and `SCHEDULES`, `sp` is 0 or 1.
    """

    tp: Array = _field("tensor parallel ranks")
    pp: Array = _field("pipeline stages")
    dp: Array = _field("data parallel replicas")
    cp: Array = _field("context parallel ranks")
    ep: Array = _field("expert parallel ranks")
    etp: Array = _field("tensor parallel ranks of experts")
    vpp: Array = _field("virtual stages a rank holds")
    micro_batch: Array = _field("sequences of a micro-batch on one replica")
    zero: Array = _field("ZeRO stage")
    recompute: Array = _field("place in RECOMPUTE")
    sp: Array = _field("1 with sequence parallelism")
    schedule: Array = _field("place in SCHEDULES")
    recompute_layers: Array = _field("layers of a chunk that full recompute makes again; 0: all")
    shards: Array = _field("ranks the states are sharded over; 0: all of dp · cp")
    offload: Array = _field("1 where optimizer states live in the host's memory")

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> Grid:
        """The layouts as arrays, in their order."""
        import numpy as np  # noqa: PLC0415

        columns: dict[str, list[float]] = {each.name: [] for each in fields(cls)}
        for layout in layouts:
            for name, found in columns.items():
                found.append(_coded(name, getattr(layout, name)))
        return cls(**{name: np.array(found, dtype=np.float64) for name, found in columns.items()})

    def __len__(self) -> int:
        """Layouts in it."""
        return len(self.tp)

    def at(self, place: int) -> Layout:
        """One of them as a noun of its own."""
        return _layout({each.name: int(getattr(self, each.name)[place]) for each in fields(self)})

    def layouts(self) -> list[Layout]:
        """All of them as nouns of their own."""
        columns = [getattr(self, name).astype(int).tolist() for name in _NAMES]
        return [_layout(dict(zip(_NAMES, values, strict=True))) for values in zip(*columns, strict=True)]

    def take(self, places: Array) -> Grid:
        """Those at `places` (whole numbers or a mask)."""
        return Grid(**{name: getattr(self, name)[places] for name in _NAMES})

    @property
    def state_ranks(self) -> Array:
        """Ranks that a dense parameter's states are sharded over."""
        return self.shards + (self.shards == 0) * self.dp * self.cp

    @property
    def gpus(self) -> Array:
        """GPUs each takes."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_dp(self) -> Array:
        """Replicas of an expert's parameters."""
        return self.tp * self.cp * self.dp / (self.ep * self.etp)

    @property
    def expert_state_ranks(self) -> Array:
        """Ranks that an expert's states are sharded over: its replicas, or as many of them as `shards` allows."""
        replicas = self.expert_dp
        return replicas + (self.shards > 0) * (self.shards < replicas) * (self.shards - replicas)


_NAMES = tuple(each.name for each in fields(Grid))


def _layout(values: dict[str, int]) -> Layout:
    named: dict[str, Any] = values | {
        "recompute": RECOMPUTE[values["recompute"]],
        "schedule": SCHEDULES[values["schedule"]],
        "recompute_layers": values["recompute_layers"] or None,
        "shards": values["shards"] or None,
        "sp": bool(values["sp"]),
        "offload": bool(values["offload"]),
    }
    return Layout(**named)


def _coded(name: str, value: Any) -> float:
    if name == "recompute":
        return RECOMPUTE.index(value)
    return SCHEDULES.index(value) if name == "schedule" else float(value or 0)
