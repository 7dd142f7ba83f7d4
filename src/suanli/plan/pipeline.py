"""A pipeline's stages: the chunks of blocks each holds, and how many micro-batches of each are in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suanli.errors import FaultList, InputError
from suanli.formulas.parallel import in_flight_1f1b, in_flight_interleaved, in_flight_zero_bubble, smaller
from suanli.nouns.layout import Layout, chunk_sizes
from suanli.plan.pieces import Parts


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A run of blocks on one stage: how many of each kind, how many of them full recompute makes again, how many are
    of the tail that stays in 16 bits, how many micro-batches' activations it holds at once, and whether it has what
    comes before or after all blocks."""

    blocks: tuple[int, ...]
    recomputed: tuple[int, ...]
    tail: tuple[int, ...]
    in_flight: Any
    first: bool
    last: bool


def stages_of(parts: Parts, layout: Layout, micro_batches: Any, tail: int = 0) -> tuple[tuple[Chunk, ...], ...]:
    """The chunks of every stage; the last `tail` blocks stay in 16 bits. Raises InputError where a stage would be
    empty, or a schedule cannot be."""
    _check(layout, micro_batches)
    total = layout.pp * layout.vpp
    sizes = chunk_sizes(parts.num_layers, layout.pp, layout.vpp)
    blocks, recomputed = parts.counts(sizes), parts.counts(sizes, layout.recompute_layers)
    wide = parts.counts(sizes, since=parts.num_layers - tail)

    def chunk(at: int, in_flight: Any) -> Chunk:
        return Chunk(blocks=blocks[at], recomputed=recomputed[at], tail=wide[at], in_flight=in_flight,
                     first=at == 0, last=at == total - 1)  # fmt: skip

    return tuple(
        tuple(chunk(at, in_flight) for at, in_flight in chunks_of(layout, stage, micro_batches))
        for stage in range(layout.pp)
    )


def own_chunks(layout: Layout, stage: int) -> list[int]:
    """Chunks of a stage by number: interleaved in turns; in DualPipe from both ends."""
    if layout.schedule == "dualpipe":
        return [stage, layout.pp - 1 - stage]
    return [stage + chunk * layout.pp for chunk in range(layout.vpp)]


def chunks_of(layout: Layout, stage: int, micro_batches: Any) -> list[tuple[int, Any]]:
    """Chunks of a stage by number, with their micro-batches in flight."""
    pp, vpp, own = layout.pp, layout.vpp, own_chunks(layout, stage)
    if layout.schedule == "interleaved":
        return [(at, in_flight_interleaved(micro_batches, pp, stage, vpp, chunk)) for chunk, at in enumerate(own)]
    if layout.schedule == "zero-bubble":
        return [(at, in_flight_zero_bubble(micro_batches, pp)) for at in own]
    if layout.schedule == "dualpipe":  # two pipelines from both ends, half of the micro-batches each: pp + 1 together
        half = -(-micro_batches // 2)
        return [(at, smaller(half, in_flight_1f1b(micro_batches, pp, at))) for at in own]
    return [(at, in_flight_1f1b(micro_batches, pp, stage)) for at in own]


def _check(layout: Layout, micro_batches: Any) -> None:
    """Interleaving needs whole groups of micro-batches (Megatron-core: a multiple of pp)."""
    if layout.schedule == "interleaved" and isinstance(micro_batches, int) and micro_batches % layout.pp:
        faults = FaultList(InputError)
        faults.add(code="not_divisible", message="micro-batches do not interleave evenly", where="--vpp",
                   got=f"{micro_batches:,} over {layout.pp} stages", expected=f"a multiple of {layout.pp}")  # fmt: skip
        faults.raise_if_any()
