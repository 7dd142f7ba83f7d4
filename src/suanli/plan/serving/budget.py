"""What is left of a GPU for the cache, and how many sequences that holds at once."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.catalog.engines import find_engine
from suanli.errors import FaultList, InputError, shown
from suanli.formulas import serving
from suanli.nouns.arch import Arch
from suanli.nouns.engine import Engine
from suanli.nouns.layers import Elementwise, Linear
from suanli.nouns.serving import KvCache, MemoryBudget, ServingLayout, WeightBytes
from suanli.nouns.workload import DTYPE_BITS
from suanli.plan.serving.cache import ONE
from suanli.units import BITS_PER_BYTE, parse

BUDGET_RULES = {
    "of_total": serving.cache_of_total_bytes,
    "of_free": serving.cache_of_free_bytes,
    "static": serving.cache_static_bytes,
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a budget is made for: one GPU's memory, and the engine with its fraction where one is given."""

    memory_bytes: float
    engine: Engine
    fraction: float
    layout: ServingLayout = ONE


def asked(
    memory_bytes: float, engine: str | Engine = "vllm", *, fraction: float | None = None, layout: ServingLayout = ONE
) -> Asked:
    """Check the numbers of a budget. Raises InputError for memory or a fraction that cannot be."""
    rules, faults = find_engine(engine) if isinstance(engine, str) else engine, FaultList(InputError)
    if not isinstance(memory_bytes, int | float) or isinstance(memory_bytes, bool) or not 0 < memory_bytes < _most():
        faults.add(code="bad_memory", message="not a possible memory", where="memory_bytes", got=shown(memory_bytes),
                   expected="bytes of one GPU")  # fmt: skip
    if fraction is not None and not (isinstance(fraction, int | float) and 0 < fraction <= 1):
        faults.add(code="bad_fraction", message="not a possible part of memory", where="fraction", got=shown(fraction),
                   expected="above 0, at most 1")  # fmt: skip
    faults.raise_if_any()
    share = rules.memory_fraction if fraction is None else fraction
    return Asked(memory_bytes=memory_bytes, engine=rules, fraction=share, layout=layout)


def _most() -> float:
    return parse("1EB", "bytes")


def memory_budget(weights: WeightBytes, cache: KvCache, activations: float, at: Asked) -> MemoryBudget:
    """Memory of the fullest rank. `cache` is that of a sequence of the longest length served (isl + osl)."""
    left = BUDGET_RULES[at.engine.budget_rule](at.memory_bytes, weights.per_rank, activations, at.fraction)
    groups = at.layout.dp_attention
    pages = int(left // cache.page_bytes) if left > 0 and cache.page_bytes else 0
    return MemoryBudget(
        total=at.memory_bytes,
        usable=left + weights.per_rank + (0 if at.engine.budget_rule == "static" else activations),
        weights=weights.per_rank,
        activations=activations,
        cache=left,
        cache_tokens=groups * cache_tokens(cache, pages, at.layout.cp),
        max_concurrency=groups * max_concurrency(cache, pages),
        engine=at.engine.name,
        fraction=at.fraction,
    )


def cache_tokens(cache: KvCache, pages: int, cp: int = 1) -> int:
    """Positions the pages hold: exact where every layer grows, else as sequences of this one's length."""
    if not cache.blocks:
        return 0
    if cache.growing_only:
        return pages * cache.block_tokens * cp
    return int(serving.equivalent_tokens(concurrency(cache, pages), cache.tokens))


def concurrency(cache: KvCache, pages: int) -> float:
    """Sequences of this length that fit, as engines log it: with a fraction."""
    return pages / cache.blocks


def max_concurrency(cache: KvCache, pages: int) -> int:
    """Whole sequences that fit: those beyond wait, and nothing overflows."""
    return int(pages // cache.blocks) if cache.blocks else 0


def activation_bytes(
    arch: Arch, engine: str | Engine = "vllm", layout: ServingLayout = ONE, *, keys: int = 0, dtype: str = "bf16"
) -> float:
    """A named allowance for one step: the engine's reserve, its collectives' buffers, and the buffer of a chunk.
    `keys` counts where scores are stored.
    """
    rules = find_engine(engine) if isinstance(engine, str) else engine
    shape = _shape(arch)
    logits = 1 if rules.flash else rules.chunk_tokens
    buffer = serving.compute_buffer_bytes(
        tokens=rules.chunk_tokens, hidden=shape.hidden, ffn=-(-shape.widest // layout.tp),
        bytes_per_element=-(-DTYPE_BITS[dtype] // BITS_PER_BYTE), sequences=logits,
        vocab=shape.vocab, scores_heads=0 if rules.flash else -(-shape.heads // layout.tp), keys=keys,
    )  # fmt: skip
    return buffer + rules.reserve_bytes + (rules.comm_bytes if layout.gpus > 1 else 0)


@dataclass(frozen=True)
class _Shape:
    """What decides the buffer of a forward pass."""

    hidden: int
    widest: int
    vocab: int
    heads: int


def _shape(arch: Arch) -> _Shape:
    leaves = [placed.layer for placed in arch.leaves()]
    linear = [leaf for leaf in leaves if isinstance(leaf, Linear)]
    return _Shape(
        hidden=max((leaf.in_features for leaf in linear if leaf.role == "lm_head"), default=0),
        widest=max((leaf.width for leaf in leaves if isinstance(leaf, Elementwise)), default=0),
        vocab=max((leaf.out_features for leaf in linear if leaf.role == "lm_head"), default=0),
        heads=max((getattr(leaf, "heads", 0) for leaf in leaves), default=0),
    )
