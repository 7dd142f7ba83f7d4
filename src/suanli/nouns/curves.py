"""How fast a device computes and communicates: fitted numbers, and the network it stands in. Data only.

The seconds come from `formulas/kernels.py` and `formulas/collectives.py`; `catalog/curves.py` reads the numbers from
the files that `scripts/fit_curves.py` writes and joins the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MATMUL_DTYPES = ("bf16", "fp8", "fp8_block", "nvfp4")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")


def _field(unit: str, doc: str, **options: Any) -> Any:
    """A dataclass field that carries its own help."""
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a curve was fitted to and how well it holds; errors are means of |predicted/measured − 1|."""

    engine: str = _field("", "library whose kernels were timed, with its version")
    n: int = _field("", "measurements on which the errors are taken")
    on: str = _field("", "which measurements those are")
    mape_fitted: float = _field("fraction", "mean error of the curve as shipped")
    mape_held_out: float = _field("fraction", "mean error on shapes left out of the fit, five folds")
    median_held_out: float = _field("fraction", "median of those")
    p90_held_out: float = _field("fraction", "ninth decile of those")
    aside: str = _field("", "what else is known of its error", default="")


@dataclass(frozen=True, kw_only=True)
class MatmulCurve:
    """Matrix products of one dtype; see `formulas.kernels.matmul_s`."""

    dtype: str = _field("", "dtype of the operands, by the name of its curve")
    peak_flop_per_s: float = _field("FLOP/s", "dense peak the efficiency refers to")
    efficiency: float = _field("fraction", "rate of a product without edges over the peak")
    wave_exponent: float = _field("", "part of the time lost in part-filled waves")
    short_k: float = _field("", "inner dimension that only fills the pipeline")
    small_tile: float = _field("", "cost of a tile's edges against its area")
    sharpness: float = _field("", "how sharply the slower of arithmetic and memory wins")
    memory_fraction: float = _field("fraction", "attained over peak memory rate")
    floor_s: float = _field("s", "time of an empty kernel")
    operand_bytes: float = _field("B", "bytes of one number of the operands, scales included")
    output_bytes: float = _field("B", "bytes of one number of the output")
    quantise_bytes: float = _field("B", "memory traffic of quantising one number of the activations")
    fit: Fit = _field("", "data and error")


@dataclass(frozen=True, kw_only=True)
class ExpertsCurve(MatmulCurve):
    """Grouped products of a mixture's experts, and the moving of tokens around them."""

    routed_bytes: float = _field("B", "traffic of a number a routed token has (width and inner width)")
    token_bytes: float = _field("B", "traffic of a number a token of the whole group has (width)")
    choice_s: float = _field("s", "sorting of one token's choice of one expert")


@dataclass(frozen=True, kw_only=True)
class AttentionCurve:
    """Fused attention of one dtype; see `formulas.kernels.attention_s`."""

    dtype: str = _field("", "dtype of the operands, by the name of its curve")
    peak_flop_per_s: float = _field("FLOP/s", "dense peak the efficiency refers to")
    efficiency: float = _field("fraction", "rate of the inner loop over the peak, before the softmax's cost")
    wave_exponent: float = _field("", "part of the time lost in part-filled waves")
    edge_pairs: float = _field("pairs", "pairs computed and masked away, for each query")
    narrow_head: float = _field("", "width of a head that the softmax costs as much as")
    wide_head: float = _field("", "slowing of heads wider than 128")
    sharpness: float = _field("", "how sharply the slower of arithmetic and memory wins")
    memory_fraction: float = _field("fraction", "attained over peak memory rate")
    floor_s: float = _field("s", "time of an empty kernel")
    operand_bytes: float = _field("B", "bytes of one number")
    backward_rate: float = _field("", "rate of the backward kernel over that of the forward one; not measured here")
    backward_source: str = _field("", "where that ratio comes from")
    fit: Fit = _field("", "data and error")


@dataclass(frozen=True, kw_only=True)
class MemoryCurve:
    """Kernels that only move memory."""

    fraction: float = _field("fraction", "attained over peak memory rate")
    floor_s: float = _field("s", "time of an empty kernel replayed from a graph, no launch from Python")
    fit: Fit = _field("", "data and error")


@dataclass(frozen=True, kw_only=True)
class CollectiveCurve:
    """One kind of collective inside a node; see `formulas.collectives`."""

    base_s: float = _field("s", "time of an empty collective of two ranks, less a step")
    step_s: float = _field("s", "time each further rank adds")
    large_step_s: float = _field("s", "time each further rank adds in the protocol for large messages")
    rate_fraction: float = _field("fraction", "part of the link a large message reaches; above 1 where switches reduce")
    few_ranks: float = _field("", "slowing of small groups")
    ramp_bytes: float = _field("B", "bytes at which a message reaches half its rate")
    ramp_exponent: float = _field("", "how fast the rate grows with size")
    least_ranks: int = _field("", "smallest group this way is taken for", default=2)
    fit: Fit = _field("", "data and error")


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """The links of a node and the network between nodes, one direction each.

    A group that has r of a node's g GPUs gets r/g of its adapters: the other groups work at the same time.
    """

    name: str = _field("", "node and network")
    gpus_per_node: int = _field("", "GPUs in one scale-up domain")
    link_bytes_per_s: float = _field("B/s", "link of one GPU to the others of its node, one direction")
    nics_bytes_per_s: float | None = _field("B/s", "all adapters of a node, one direction; None: not known")
    nic_efficiency: float = _field("fraction", "part of the adapters' rate that a large ring reaches")
    ring_step_s: float = _field("s", "one step of a ring between nodes")
    tree_step_s: float = _field("s", "one level of a tree between nodes")
    sources: tuple[str, ...] = _field("", "where the numbers come from", default=())
