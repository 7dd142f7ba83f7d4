"""Memory and step time together: what the search asks of the models that explain one layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.profile import Profile
from suanli.plan.enumerate import Enumeration
from suanli.plan.memory_grid import GridMemory, states_floor
from suanli.plan.planned import Model
from suanli.plan.step_time import Job
from suanli.plan.time_grid import GridTimes

Array = Any


@dataclass(frozen=True, kw_only=True)
class Books:
    """What prices a layout: the model as memory sees it, the job as time does, the profile, the batch."""

    model: Model
    job: Job
    profile: Profile
    global_batch: int

    def keep(self, limit_bytes: float) -> Any:
        """Which rows of degrees and ZeRO stages may fit by their states alone."""
        return lambda rows: states_floor(self.model, rows, self.profile.imbalance) <= limit_bytes


class Prices:
    """Books opened on the rows of an enumeration: a `search.Model`."""

    def __init__(self, books: Books, found: Enumeration) -> None:
        self.times = GridTimes(books.job, books.profile, books.global_batch, found.rows)
        self.memory = GridMemory(books.model, books.global_batch, found.rows, books.profile.imbalance)

    def floor_bytes(self) -> Array:
        """For each row, memory no layout behind it can do without."""
        return self.memory.floor_bytes()

    def floor_s(self) -> Array:
        """For each row, seconds no layout behind it can do without."""
        return self.times.floor_s()

    def fullest_bytes(self, grid: Grid, row: Array) -> Array:
        """Memory of the fullest rank."""
        return self.memory.fullest_bytes(grid, row)

    def fewest_layers(self, grid: Grid, row: Array, limit_bytes: float) -> Array:
        """How few layers of every chunk have to be recomputed where something has to."""
        return self.memory.fewest_layers(grid, row, limit_bytes)

    def layout_floor_s(self, grid: Grid, row: Array) -> Array:
        """Work and bubble alone."""
        return self.times.layout_floor_s(grid, row)

    def step_s(self, grid: Grid, row: Array) -> Array:
        """Seconds of a step."""
        return self.times.step_s(grid, row)
