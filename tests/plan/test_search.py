"""The search against everything timed: the same best, the same front, whatever was pruned on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.nouns.grid import Grid
from suanli.plan.enumerate import Enumeration, enumerate_grid
from suanli.plan.limits import Cuts, Space
from suanli.plan.search import SLOWEST, Timed, front_of, search

np = pytest.importorskip("numpy")

CUTS = Cuts(layers=8, heads=(("heads", 8),), groups=(8,))
SPACE = Space(cuts=CUTS, gpus=(16,), global_batch=32, seq=64, per_node=8)
SIZES = Space(cuts=CUTS, gpus=(4, 8, 16), global_batch=32, seq=64, per_node=8)


class Toy:
    """Memory and time by short formulas whose floors are plain: enough terms that no axis is for nothing."""

    def __init__(self, found: Enumeration, loose: float = 1.0, ties: bool = False) -> None:
        self.rows, self.loose, self.ties, self.looked = found.rows, loose, ties, 0

    def floor_bytes(self):
        return self._states(self.rows)

    def _states(self, rows: Grid):
        return 100 / (rows.tp * rows.pp) * (0.2 + 0.8 / (1 + (rows.zero > 0) * rows.zero * (rows.dp - 1)))

    def fullest_bytes(self, grid: Grid, row=None):
        kept = np.array([30.0, 18.0, 3.0])[grid.recompute.astype(int)]
        kept = kept + 27 * self._spared(grid)
        flight = np.where(grid.schedule == 1, 1 + (grid.pp - 1) / (grid.pp * grid.vpp), 1)
        cut = np.where(grid.sp == 1, grid.tp, 1 + (grid.tp - 1) / 2)
        return self._states(grid) + grid.micro_batch * kept * flight / (cut * grid.cp)

    def _spared(self, grid: Grid):
        """The part of a chunk that is not made again where only some layers are."""
        most = np.ceil(CUTS.layers / (grid.pp * grid.vpp))
        return np.where(grid.recompute_layers > 0, 1 - grid.recompute_layers / most, 0)

    def fewest_layers(self, grid: Grid, row, limit: float):
        """Tried one after the other."""
        most, found = np.ceil(CUTS.layers / (grid.pp * grid.vpp)), np.zeros(len(grid))
        for layers in range(CUTS.layers - 1, 0, -1):
            fits = self.fullest_bytes(replace(grid, recompute_layers=layers + found * 0)) <= limit
            found = np.where(fits & (layers < most), layers, found)
        return found

    def _again(self, grid: Grid):
        again = np.array([1, 1.1, 1.3])[grid.recompute.astype(int)]
        return again - 0.3 * np.where(grid.recompute_layers < 0, 1, self._spared(grid))

    def _work(self, grid: Grid):
        return 32 / (grid.dp * grid.tp * grid.pp * grid.cp) * (1 + 1 / (1 + grid.micro_batch))

    def floor_s(self):
        return self.loose * self._work(self.rows)

    def layout_floor_s(self, grid: Grid, row):
        return self.loose * self._work(grid) * self._again(grid)

    def step_s(self, grid: Grid, row=None):
        self.looked += len(grid)
        micro_batches = 32 / (grid.dp * grid.micro_batch)
        again = self._again(grid)
        share = np.array([1, 1, 0.4, 0.3])[grid.schedule.astype(int)] / grid.vpp
        bubble = 1 + share * (grid.pp - 1) / micro_batches
        talk = 0.01 * (grid.tp - 1) * (2 - grid.sp) + 0.02 * (grid.vpp - 1) + 0.03 * grid.zero + 0.015 * (grid.cp - 1)
        found = self._work(grid) * again * bubble + talk
        return np.round(found, 1) if self.ties else found


def everything(found: Enumeration, model: Toy, limit: float) -> Timed:
    grid, row = found.expand(np.arange(len(found.rows)))
    plain = replace(grid, recompute=0 * grid.recompute, recompute_layers=0 * grid.recompute)
    needed = model.fullest_bytes(plain) > limit
    layers = np.where((grid.recompute_layers < 0) & needed, model.fewest_layers(grid, row, limit), 0)
    kept = (grid.recompute_layers >= 0) | (layers > 0)
    grid = replace(grid, recompute_layers=layers).take(kept)
    grid = grid.take(model.fullest_bytes(grid) <= limit)
    return Timed(grid=grid, step_s=model.step_s(grid), fullest_bytes=model.fullest_bytes(grid))


def points(timed: Timed | None) -> list[tuple[float, float, float]]:
    if timed is None:
        return []
    return list(zip(timed.step_s.tolist(), timed.fullest_bytes.tolist(), timed.grid.gpus.tolist(), strict=True))


def plain_front(found: list[tuple[float, float, float]]) -> set[tuple[float, float, float]]:
    """Points up to SLOWEST times the fastest that no other is at least as good as in all three, pair by pair."""
    near = {each for each in found if each[0] <= SLOWEST * min(found)[0]}
    return {a for a in near if not any(b != a and all(y <= x for x, y in zip(a, b, strict=True)) for b in near)}


CASES = [(limit, top, loose) for limit in (20.0, 60.0, 1e9) for top in (1, 7) for loose in (1.0, 0.3)]


@pytest.mark.parametrize(("limit", "top", "loose"), CASES)
def test_the_best_are_the_best_of_everything(limit, top, loose):
    every_row = enumerate_grid(SPACE, {})
    model = Toy(every_row, loose)
    found = search(every_row, model, limit, top)
    looked = model.looked
    every = everything(every_row, model, limit)
    expected = sorted(points(every))[:top]
    assert points(found.best) == expected
    assert found.timed == looked <= len(every)
    assert found.timed < len(every) or loose < 1
    for place in range(len(found.best)):
        layout = found.best.grid.at(place)
        assert layout.gpus == 16


@pytest.mark.parametrize("limit", [20.0, 60.0, 1e9])
def test_the_front_is_that_of_everything(limit):
    pins = {"recompute": ("none", "full"), "zero": (0, 1), "cp": (1, 2)}
    rows = enumerate_grid(SIZES, pins)
    model = Toy(rows)
    found = search(rows, model, limit, 3)
    assert set(points(found.front)) == plain_front(points(everything(rows, model, limit)))
    assert len(set(points(found.front))) == len(points(found.front))


@settings(max_examples=settings().max_examples // 6)  # 6 by default, 16 in full
@given(limit=st.floats(5, 200), top=st.integers(1, 40), ties=st.booleans(), loose=st.floats(0.1, 0.8))
def test_pruning_changes_nothing(limit, top, ties, loose):
    rows = enumerate_grid(SPACE, {})
    model = Toy(rows, loose, ties)
    found = search(rows, model, limit, top)
    every = points(everything(rows, model, limit))
    assert points(found.best) == sorted(every)[:top]
    assert found.timed <= len(every)
    assert {each[:2] for each in points(found.front)} == {each[:2] for each in _staircase(every)}


def _staircase(found: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    kept: list[tuple[float, float, float]] = []
    for each in sorted(each for each in found if each[0] <= SLOWEST * min(found)[0]):
        if not kept or each[1] < kept[-1][1]:
            kept.append(each)
    return kept


def test_as_few_layers_as_needed_are_among_the_best():
    """Of 8 layers on one stage some have to be made again, not all: the search finds how many."""
    rows = enumerate_grid(
        SPACE, {"tp": (1,), "pp": (1,), "zero": (0,), "cp": (1,), "micro_batch": (1,), "shards": (0,)}
    )
    model = Toy(rows)
    found = search(rows, model, 115.0, 3)  # states 100; all kept 30, all made again 3
    assert found.best.grid.recompute_layers.tolist() == [5, 0]  # 3 + 27 · 3/8 = 13.1 fits, 3 + 27 · 4/8 does not
    assert found.best.step_s[0] < found.best.step_s[1]


def test_nothing_fits():
    rows = enumerate_grid(SPACE, {})
    found = search(rows, Toy(rows), 1.0, 3)
    assert found.best is None
    assert found.front is None
    assert (found.fit, found.timed) == (0, 0)


def test_progress_rises_to_the_end():
    seen: list[float] = []
    rows = enumerate_grid(SPACE, {})
    search(rows, Toy(rows), 1e9, 3, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_fewer_than_asked_for():
    pins = {"tp": (8,), "pp": (1,), "cp": (2,), "zero": (0,), "sp": (True,), "micro_batch": (1, 2)}
    rows = enumerate_grid(SPACE, pins)
    found = search(rows, Toy(rows), 1e9, 50)
    assert len(found.best) == found.fit == 6  # of a layout that fits no layers have to be made again
    assert found.legal == 8


def test_of_equals_the_smallest_stands_on_the_front():
    grid = enumerate_grid(SPACE, {"zero": (0,), "recompute": ("none",)}).expand(np.arange(4))[0].take(np.arange(4))
    timed = Timed(grid=grid, step_s=np.array([1.0, 1.0, 2.0, 3.0]), fullest_bytes=np.array([5.0, 5.0, 7.0, 4.0]))
    assert points(front_of(timed)) == [(1.0, 5.0, 16.0), (3.0, 4.0, 16.0)]
