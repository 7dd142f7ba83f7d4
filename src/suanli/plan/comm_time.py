"""Seconds of the exchanges of a layout, and where the ranks of each group stand: what crosses nodes follows.

Ranks are placed in the order tp, cp, dp, pp, nodes filled one after another; experts are spread over neighbours.
"""

from __future__ import annotations

from typing import Any

from suanli.nouns.grid import Grid
from suanli.plan.columns import ACROSS, CONTEXT, EXCHANGE, LAUNCHES, SPANS, TENSOR

Array = Any
_SOCKETS = 2  # of a host, each with its share of the node's GPUs


def inside_node(fabric: Any, ranks: Array, stride: Array) -> Array:
    """Ranks of a group, `stride` apart, that share a node."""
    import numpy as np  # noqa: PLC0415

    return np.clip(np.floor(fabric.gpus_per_node / stride), 1, ranks)


def reduce_tensor(tally: Any, at: Any, moved_bytes: Array, *, backward: bool) -> None:
    """Add one sum over tp of a tensor, or with sequence parallelism its scatter and gather, to one pass.

    A sum is a scatter and a gather (arXiv:2205.05198 §4.2.2), and is never priced below the two: what a switch that
    sums (NVLS) saves in a micro-benchmark, scripts of trainers turn off. Host times are fitted to runs that sum, an
    exchange as one call; no run tells that its halves take the host longer. So sequence parallelism adds no time to it.
    """
    import numpy as np  # noqa: PLC0415

    timed, fabric, ranks = at.curves.collective_s, at.fabric, at.tp
    near = inside_node(fabric, ranks, 1)
    whole, *parts = (
        timed(kind, moved_bytes, ranks, fabric, near) for kind in ("all_reduce", "reduce_scatter", "all_gather")
    )
    halves = parts[0] + parts[1]
    once = halves + (1 - at.sp) * np.maximum(whole - halves, 0.0)
    calls = (ranks > 1) * 1
    spans = calls * (near * _SOCKETS > fabric.gpus_per_node)
    values = {TENSOR: once * (ranks <= near), ACROSS: once * (ranks > near), LAUNCHES: calls, SPANS: spans}
    for column, value in values.items():
        tally.add(column, *((0.0, value) if backward else (value, 0.0)))


def ring_context(tally: Any, at: Any, moved_bytes: Array) -> None:
    """Add the keys and values of the other ranks over cp, and in backward their gradients too."""
    near = inside_node(at.fabric, at.cp, at.tp)
    once = at.curves.collective_s("all_gather", moved_bytes * at.cp, at.cp, at.fabric, near)
    tally.add(CONTEXT, once, 2 * once)
    tally.add(LAUNCHES, 2 * (at.cp - 1), 4 * (at.cp - 1))


def exchange_tokens(tally: Any, at: Any, moved_bytes: Array) -> None:
    """Add routed tokens sent to their experts and back over ep, in both passes."""
    near = inside_node(at.fabric, at.ep, at.etp)
    once = at.curves.collective_s("all_to_all", moved_bytes, at.ep, at.fabric, near)
    tally.add(EXCHANGE, 2 * once, 2 * once)
    tally.add(LAUNCHES, 2 * (at.ep > 1), 2 * (at.ep > 1))


def data_times(job: Any, grid: Grid, dense: Array, expert: Array) -> dict[str, Array]:
    """Seconds of exchanges over dp of what a stage holds: `whole` sums gradients over all replicas; `scatter` and
    `gather` are gradients and weights over the ranks that share states; `rest` sums the shards over the other replicas
    (HSDP). Experts have replicas of their own.
    """
    ranks = grid.dp * grid.cp
    total = dict.fromkeys(("whole", "scatter", "gather", "rest"), 0 * grid.tp)
    for held, replicas, shards, stride in (
        (dense, ranks, grid.state_ranks, grid.tp),
        (expert, grid.expert_dp, grid.expert_state_ranks, grid.ep * grid.etp),
    ):
        gradients, weights = held * job.traits.gradient_bytes, held * job.traits.weight_bytes
        total["whole"] = total["whole"] + _group(job, "all_reduce", gradients, replicas, stride)
        total["scatter"] = total["scatter"] + _group(job, "reduce_scatter", gradients, shards, stride)
        total["gather"] = total["gather"] + _group(job, "all_gather", weights, shards, stride)
        copies = replicas / shards
        total["rest"] = total["rest"] + _group(job, "all_reduce", gradients / shards, copies, stride * shards)
    return total


def _group(job: Any, kind: str, size: Array, ranks: Array, stride: Array) -> Array:
    """Seconds of a collective of ranks `stride` apart; 0 where nothing is held."""
    near = inside_node(job.fabric, ranks, stride)
    return job.curves.collective_s(kind, size, ranks, job.fabric, near) * (size > 0)


def send_time(job: Any, grid: Grid, width: int) -> Array:
    """Seconds of the activation of one micro-batch from a stage to the next; 0 without a pipeline."""
    cut = grid.tp if job.traits.scatter_sends else 1 + grid.sp * (grid.tp - 1)
    moved = grid.micro_batch * job.seq / grid.cp * width * job.traits.weight_bytes / cut
    # Without a pipeline nothing is sent, so nothing leaves its node: the adapters need not be known then.
    near = 1 + 1 * ((grid.pp <= 1) | (grid.tp * grid.cp * grid.dp < job.fabric.gpus_per_node))
    return job.curves.collective_s("p2p", moved, 2 + 0 * near, job.fabric, near) * (grid.pp > 1)
