"""What one rank holds of a model laid over many: parts, padded tables, sharded states, micro-batches in flight.

Every argument may be a whole number or an array of them: nothing here asks which.
"""

from __future__ import annotations

from typing import Any

from suanli.formulas.registry import formula

_MEGATRON = "arXiv:1909.08053 §3"
_ZERO = "arXiv:1910.02054 §5"
_PP = {"pp": "p: pipeline stages", "stage": "i: the stage, from 0", "micro_batches": "m: micro-batches of a step"}


def larger(first: Any, second: Any) -> Any:
    """The larger of two numbers, element by element where they are arrays."""
    return first + (second - first) * (second > first)


def smaller(first: Any, second: Any) -> Any:
    """The smaller of two numbers, element by element where they are arrays."""
    return first + (second - first) * (second < first)


@formula(unit="elements", expression="⌈n/t⌉", source=f"{_MEGATRON}: matrices, heads and vocabulary cut evenly",
         legend={"total": "n: what is cut", "ranks": "t: ranks it is cut over"})  # fmt: skip
def rank_part(total: Any, ranks: Any) -> Any:
    """The largest part that a rank holds of something cut over ranks."""
    return -(-total // ranks)


@formula(unit="rows", expression="⌈V/(m·t)⌉·m·t", source="Megatron-LM --make-vocab-size-divisible-by, times tp",
         legend={"multiple": "m: rows a rank are a multiple of this", "tp": "t: tensor-parallel ranks"})  # fmt: skip
def padded_vocab(vocab: Any, multiple: Any, tp: Any) -> Any:
    """Rows of an embedding table padded so that it can be cut."""
    return -(-vocab // (multiple * tp)) * multiple * tp


@formula(unit="positions", expression="T·t_e·f/(c·t)",
         source="balanced routing: what tp · cp cut apart meets again on t_e ranks; f is how far from balance",
         legend={"expert_tp": "t_e: ranks an expert is cut over", "imbalance": "f: busiest rank over the mean",
                 "cp": "c: context-parallel ranks", "tp": "t: tensor-parallel ranks"})  # fmt: skip
def expert_positions(tokens: Any, expert_tp: Any, imbalance: float, cp: Any, tp: Any) -> Any:
    """Positions, each routed to k experts, whose work a rank of the expert group does."""
    return -(-tokens * expert_tp * imbalance // (cp * tp))


@formula(unit="bytes", expression="⌈b·N/d⌉", source=f"{_ZERO}: states partitioned over d ranks",
         legend={"bytes_each": "b: bytes a parameter", "ranks": "d: ranks it is sharded over"})  # fmt: skip
def sharded_bytes(params: Any, bytes_each: Any, ranks: Any) -> Any:
    """Weights, gradients or optimizer states of one rank."""
    return -(-params * bytes_each // ranks)


@formula(unit="micro-batches", expression="min(m, p − i)", source="arXiv:2104.04473 §2.2.1: 1F1B", legend=_PP)
def in_flight_1f1b(micro_batches: Any, pp: Any, stage: Any) -> Any:
    """Micro-batches whose activations a stage of 1F1B holds at once."""
    return smaller(micro_batches, pp - stage)


@formula(unit="micro-batches", expression="min(m, p)",
         source="arXiv:2401.10241 table 2, ZB-H1: the memory of 1F1B's first stage, on every stage",
         legend={name: text for name, text in _PP.items() if name != "stage"})  # fmt: skip
def in_flight_zero_bubble(micro_batches: Any, pp: Any) -> Any:
    """Micro-batches whose activations a stage of ZB-H1 holds at once: weight gradients wait."""
    return smaller(micro_batches, pp)


@formula(unit="micro-batches", expression="k = min(m·v, 2(p − i − 1) + (v − 1)p + 1), of them in chunk j: "
         "⌊k/pv⌋·p + min(max(k mod pv − jp, 0), p)",
         source="arXiv:2104.04473 §2.2.2; Megatron-core schedules.py: micro-batches of the warm-up and one more",
         legend={**_PP, "vpp": "v: chunks a stage holds", "chunk": "j: the chunk, from 0"})  # fmt: skip
def in_flight_interleaved(micro_batches: Any, pp: Any, stage: Any, vpp: Any, chunk: Any) -> Any:
    """Micro-batches whose activations one chunk of an interleaved stage holds at once."""
    held = smaller(micro_batches * vpp, 2 * (pp - stage - 1) + (vpp - 1) * pp + 1)
    rest = held % (pp * vpp) - chunk * pp
    return held // (pp * vpp) * pp + smaller(larger(rest, 0), pp)
