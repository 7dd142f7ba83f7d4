"""Where the ranks of a group stand, and what each exchange of a layout costs, by hand on links of round numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Traits
from suanli.plan.columns import ACROSS, LAUNCHES, SPANS, TENSOR
from suanli.plan.comm_time import data_times, inside_node, reduce_tensor, send_time

NODE = SimpleNamespace(gpus_per_node=8)

# ranks, stride → of them in one node of 8
INSIDE = [
    (8, 1, 8), (16, 1, 8), (4, 1, 4),  # tp first
    (32, 8, 1), (32, 4, 2), (2, 4, 2),  # replicas 8 or 4 apart
    (16, 16, 1), (64, 3, 2), (1, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("ranks", "stride", "expected"), INSIDE)
def test_neighbours(ranks: int, stride: int, expected: int) -> None:
    assert inside_node(NODE, np.array([float(ranks)]), stride) == expected


class Told:
    """Links that take a second a byte and remember what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def collective_s(self, kind: str, size: Any, ranks: Any, fabric: Any, near: Any) -> Any:
        self.asked.append((kind, *(float(np.ravel(each)[0]) for each in (size, ranks, near))))
        return size * (ranks > 1)


def job(**more: Any) -> Any:
    return SimpleNamespace(curves=Told(), fabric=NODE, traits=Traits(**more), seq=100)


def times(layout: Layout, dense: float, expert: float = 0.0) -> tuple[dict[str, float], list[tuple[Any, ...]]]:
    at = job(gradient_bytes=4, weight_bytes=2)
    found = data_times(at, Grid.of([layout]), np.array([dense]), np.array([expert]))
    return {name: float(value[0]) for name, value in found.items()}, at.curves.asked


def test_dense_states_over_all_replicas() -> None:
    found, asked = times(Layout(tp=4, dp=16, cp=2), 10)
    assert found == {"whole": 40, "scatter": 40, "gather": 20, "rest": 0}
    assert asked[0] == ("all_reduce", 40, 32, 2)  # 32 replicas, 4 apart: two in a node


def test_shards_within_a_node_and_sums_of_shards_between() -> None:
    found, asked = times(Layout(dp=32, zero=3, shards=8), 16)
    assert found["scatter"] == 64 and found["gather"] == 32
    assert found["rest"] == 8  # 64 bytes in 8 shards over 4 replicas of them
    assert asked[1] == ("reduce_scatter", 64, 8, 8)
    assert asked[3] == ("all_reduce", 8, 4, 1)  # a replica of a shard is 8 ranks on: another node


def test_experts_have_replicas_of_their_own() -> None:
    found, asked = times(Layout(tp=2, dp=16, ep=8), 10, 7)
    assert found["whole"] == 40 + 28
    assert asked[4] == ("all_reduce", 28, 4, 1)  # 2 · 16 / 8 replicas, 8 apart
    one, _ = times(Layout(dp=8, ep=8), 0, 7)
    assert one["whole"] == 0  # spread over all ranks there is nothing to sum


# layout → bytes sent, both ends in one node: 1 · 100 · 64 · 2 = 12,800
SENDS = [
    (Layout(pp=2), True, 12800, 2), (Layout(pp=2, dp=4), True, 12800, 2), (Layout(pp=2, dp=8), True, 12800, 1),
    (Layout(pp=2, tp=4), True, 3200, 2), (Layout(pp=2, tp=4), False, 12800, 2),
    (Layout(pp=2, tp=4, sp=True), False, 3200, 2), (Layout(pp=2, cp=2), True, 6400, 2),
    (Layout(pp=2, micro_batch=3), True, 38400, 2),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "scatters", "size", "near"), SENDS)
def test_sends_between_stages(layout: Layout, scatters: bool, size: int, near: int) -> None:
    at = job(scatter_sends=scatters)
    assert send_time(at, Grid.of([layout]), 64) == size
    assert at.curves.asked == [("p2p", size, 2, near)]


def test_without_a_pipeline_nothing_is_sent() -> None:
    assert send_time(job(), Grid.of([Layout(dp=4)]), 64) == 0


@pytest.mark.parametrize("layout", [Layout(dp=8), Layout(tp=8), Layout(tp=2, dp=4), Layout(tp=2, pp=2, dp=2)])
def test_a_full_node_asks_for_no_adapters(layout: Layout) -> None:
    at = job()
    send_time(at, Grid.of([layout]), 64)
    ((_, _, ranks, near),) = at.curves.asked
    assert ranks == near == 2


# --- a sum over tp ------------------------------------------------------------------------------------------------


class Priced:
    """Links on which an all-reduce takes `whole` seconds, a scatter or a gather 1."""

    def __init__(self, whole: float) -> None:
        self.whole = whole

    def collective_s(self, kind: str, size: Any, ranks: Any, fabric: Any, near: Any) -> Any:
        return (ranks > 1) * {"all_reduce": self.whole}.get(kind, 1.0)


def summed(whole: float, tp: int, sp: bool) -> list[float]:
    """Seconds in a node and across, launches and waits for hosts, of one sum."""
    found = dict.fromkeys((TENSOR, ACROSS, LAUNCHES, SPANS), 0.0)
    tally = SimpleNamespace(
        add=lambda column, forward, backward: found.update({column: float(np.ravel(forward + backward)[0])})
    )
    at = SimpleNamespace(curves=Priced(whole), fabric=NODE, tp=np.array([float(tp)]), sp=np.array([float(sp)]))
    reduce_tensor(tally, at, np.array([64.0]), backward=False)
    return list(found.values())


# an all-reduce of so many seconds, tp, sp → seconds in the node, across nodes, launches, waits for hosts
SUMS = [
    (3.0, 8, False, [3, 0, 1, 1]),  # slower than its halves by themselves
    (3.0, 8, True, [2, 0, 1, 1]),
    (1.2, 8, False, [2, 0, 1, 1]),  # summed in the switch: priced as its halves all the same
    (1.2, 8, True, [2, 0, 1, 1]),
    (3.0, 4, False, [3, 0, 1, 0]),  # four ranks of eight stand under one socket
    (3.0, 16, True, [0, 2, 1, 1]),
    (3.0, 1, False, [0, 0, 0, 0]),
]


@pytest.mark.parametrize(("whole", "tp", "sp", "expected"), SUMS)
def test_sequence_parallelism_adds_no_time_to_a_sum(whole: float, tp: int, sp: bool, expected: list[float]) -> None:
    assert summed(whole, tp, sp) == expected
