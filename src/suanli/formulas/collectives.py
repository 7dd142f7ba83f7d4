"""Seconds of collectives: latency and bytes on the wire, inside a node and across nodes.

`tensor_bytes` is always the whole tensor: what each rank holds after an all-gather, before a reduce-scatter, before and
after an all-reduce; of an all-to-all, what each rank sends to all ranks, its own part included; of p2p, the message.
Every function takes numbers or float64 arrays, which broadcast.
"""

from __future__ import annotations

from suanli.formulas.kernels import Numbers, ceiling, larger, smaller
from suanli.formulas.registry import formula
from suanli.units import MEBI

_MOST_DOUBLINGS = 24  # nodes up to 2^24: the depth of a tree is counted, since log2 of arrays would need numpy
_LARGE_PART = 2 * MEBI  # bytes of a rank's part from which NCCL takes its protocol for large messages
_MOST_MEASURED = 8  # ranks; in larger nodes the change of protocol costs what it costs there
_TREE_RATE = 0.9  # NCCL src/graph/tuning.cc: a tree reaches 0.9 of the ring's rate
_WORDS = {
    "tensor_bytes": "S: bytes of the whole tensor",
    "ranks": "n: ranks of the group",
    "ranks_per_node": "r: ranks of the group in one node",
    "nodes": "N: nodes of the group",
    "passes": "c: 2 for all-reduce, else 1",
    "wire_bytes": "w: bytes each rank sends over its link",
    "link_bytes_per_s": "B: peak of the link of one GPU, one direction [B/s]",
    "rate_fraction": "f: part of the link a large message reaches in a large group",
    "few_ranks": "h: slowing of small groups, 1 + h/(n−1)",
    "ramp_bytes": "w₀: bytes at which a message reaches half its rate",
    "ramp_exponent": "g: how fast the rate grows with size, 0..1",
    "base_s": "α₀: time of an empty collective of two ranks, less a step [s]",
    "step_s": "α₁: time each further rank adds [s]",
    "large_step_s": "α₂: time each further rank adds in the protocol for large messages [s]",
    "inside_s": "time the bytes take on the links of a node [s]",
    "across_s": "time the bytes take on the adapters [s]",
    "ring_step_s": "α_net: time of one step of a ring between nodes [s]",
    "tree_step_s": "α_tree: time of one level of a tree between nodes [s]",
    "group_bytes_per_s": "B_net: adapters' rate a node gives to the group, one direction [B/s]",
}
_FITTED = "fitted by scripts/fit_curves.py to nccl-tests of one node; the form is this project's own"
_NCCL = "NCCL src/graph/tuning.cc @01afd20: latency = inner steps + steps between nodes; ring and tree, the faster wins"


@formula(unit="levels", expression="⌈log₂ N⌉", source="definition", legend=_WORDS)
def tree_depth(nodes: Numbers) -> Numbers:
    """Levels of a binary tree over the nodes."""
    return sum((nodes > 2**level) * 1 for level in range(_MOST_DOUBLINGS))


@formula(unit="bytes", expression="c·S·(n − 1)/n", source="ring: each rank passes on all parts but one", legend=_WORDS)
def wire_bytes(tensor_bytes: Numbers, ranks: Numbers, passes: Numbers) -> Numbers:
    """Bytes each rank sends: S(n−1)/n for all-gather, reduce-scatter and all-to-all, twice that for all-reduce."""
    return passes * tensor_bytes * (ranks - 1) / ranks


@formula(
    unit="s",
    expression="w/(B·f)·(1 + h/(n−1) + (w₀/w)^g)",
    source=_FITTED,
    legend=_WORDS,
)
def link_transfer_s(
    wire_bytes: Numbers,
    ranks: Numbers,
    link_bytes_per_s: Numbers,
    rate_fraction: float,
    few_ranks: float,
    ramp_bytes: float,
    ramp_exponent: float,
) -> Numbers:
    """Time of the bytes of a collective on the links inside a node."""
    large = wire_bytes * (1 + few_ranks / larger(ranks - 1, 1))
    small = ramp_bytes**ramp_exponent * wire_bytes ** (1 - ramp_exponent)
    return (large + small) / (link_bytes_per_s * rate_fraction)


@formula(unit="s", expression="α₀ + α₁·(n − 1)", source=_FITTED, legend=_WORDS)
def inner_latency_s(ranks: Numbers, base_s: float, step_s: float) -> Numbers:
    """Time of a collective of no bytes inside a node."""
    return base_s + step_s * (ranks - 1)


@formula(
    unit="s",
    expression="α₂·(min(n, 8) − 1) where S/n ≥ 2 MiB, else 0",
    source=_FITTED,
    legend=_WORDS,
)
def large_message_s(tensor_bytes: Numbers, ranks: Numbers, large_step_s: float) -> Numbers:
    """What the protocol for large messages adds to the latency inside a node."""
    return large_step_s * (smaller(ranks, _MOST_MEASURED) - 1) * (tensor_bytes >= _LARGE_PART * ranks)


@formula(
    unit="s",
    expression="α₀ + α₁·(n − N) + c·α_net·(N − 1) + max(inside, across)",
    source=_NCCL,
    legend=_WORDS,
)
def ring_s(
    ranks: Numbers,
    nodes: Numbers,
    passes: Numbers,
    base_s: float,
    step_s: float,
    ring_step_s: float,
    inside_s: Numbers,
    across_s: Numbers,
) -> Numbers:
    """Time of a ring over several nodes: links inside and between them work at once, the slower sets the pace."""
    latency = base_s + step_s * (ranks - nodes) + passes * ring_step_s * (nodes - 1)
    return latency + larger(inside_s, across_s)


@formula(
    unit="s",
    expression="α₀ + α₁·(r − 1) + 2·α_tree·⌈log₂ N⌉ + max(inside, 2·S/(0.9·B_net))",
    source=_NCCL,
    legend=_WORDS,
)
def tree_all_reduce_s(
    tensor_bytes: Numbers,
    ranks_per_node: Numbers,
    nodes: Numbers,
    base_s: float,
    step_s: float,
    tree_step_s: float,
    inside_s: Numbers,
    group_bytes_per_s: Numbers,
) -> Numbers:
    """Time of an all-reduce by a chain in each node and a double binary tree between them."""
    latency = inner_latency_s(ranks_per_node, base_s, step_s) + 2 * tree_step_s * tree_depth(nodes)
    across_s = 2 * tensor_bytes / (group_bytes_per_s * _TREE_RATE)
    return latency + larger(inside_s, across_s)


@formula(
    unit="s",
    expression="α₀ + α₁·(n − 1) + α_net + max(inside, S·(n − r)/n/(B_net/r))",
    source="every rank sends S/n to each other rank; those of other nodes share the node's adapters",
    legend=_WORDS,
)
def all_to_all_across_s(
    tensor_bytes: Numbers,
    ranks: Numbers,
    ranks_per_node: Numbers,
    base_s: float,
    step_s: float,
    ring_step_s: float,
    inside_s: Numbers,
    group_bytes_per_s: Numbers,
) -> Numbers:
    """Time of an all-to-all over several nodes."""
    sent = tensor_bytes * (ranks - ranks_per_node) / ranks
    across_s = sent / (group_bytes_per_s / ranks_per_node)
    return inner_latency_s(ranks, base_s, step_s) + ring_step_s + larger(inside_s, across_s)


@formula(
    unit="nodes",
    expression="⌈n/r⌉",
    source="definition",
    legend=_WORDS,
)
def nodes_of_group(ranks: Numbers, ranks_per_node: Numbers) -> Numbers:
    """Nodes a group of ranks spreads over."""
    return ceiling(ranks, smaller(ranks, ranks_per_node))
