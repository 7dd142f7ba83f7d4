"""Selective scans and linear attention: the recurrence, what kernels in chunks multiply, what plain torch multiplies.

There is no agreed count. The recurrence is the least work, and what stands in totals; a kernel trades more products
for bigger ones; transformers' fallback without kernels is what a trace sees. Elementwise work (decays, gates, sums)
is in none of them.
"""

from __future__ import annotations

from suanli.formulas.counting import linear_attention_flops, linear_flops
from suanli.formulas.registry import formula

_SSD = "arXiv:2405.21060 §6"
_DELTA = "arXiv:2412.06464 §3.3"
_LEGEND = {
    "batch": "B: sequences",
    "seq": "S: positions of each",
    "heads": "H: heads (Mamba 1: channels)",
    "groups": "G: sets of keys and queries (B and C) that heads share",
    "key_dim": "d_k: width of a key (the state size N of a state space)",
    "value_dim": "d_v: width of a value (the head's P of a state space; 1 for Mamba 1)",
    "chunk": "c: positions a kernel takes at once",
}


def _chunks(seq: int, chunk: int) -> int:
    """Chunks that cover a sequence, the last one padded."""
    return -(-seq // chunk)


@formula(
    unit="FLOPs",
    expression="2·T·H·d_k·d_v + 2·T·H·d_k·d_v",
    source="arXiv:2405.21060 eq. 1: the state gains B⊗x, the output is C times the state; decay is elementwise",
    legend=_LEGEND,
)
def state_space_flops(tokens: int, heads: int, key_dim: int, value_dim: int) -> int:
    """A selective state space as its recurrence."""
    return linear_attention_flops(tokens, heads, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="3·2·T·H·d_k·d_v",
    source="arXiv:2412.06464 eq. 10: the state is read at the key, changed by k⊗(v − what was read), read at the query",
    legend=_LEGEND,
)
def delta_rule_flops(tokens: int, heads: int, key_dim: int, value_dim: int) -> int:
    """The (gated) delta rule as its recurrence."""
    return 3 * linear_flops(tokens * heads, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="B·⌈S/c⌉·(G·2c²·d_k + H·2c²·d_v + H·4c·d_k·d_v)",
    source=f"{_SSD}, kernels of mamba_ssm: CBᵀ once a group, its product with x, states of chunks, their reading",
    legend=_LEGEND,
)
def ssd_kernel_flops(batch: int, seq: int, heads: int, groups: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """Mamba 2 by the chunked kernel."""
    pairs, states = chunk * chunk, 2 * linear_flops(chunk * heads, key_dim, value_dim)
    each = linear_flops(pairs, groups, key_dim) + linear_flops(pairs, heads, value_dim) + states
    return batch * _chunks(seq, chunk) * each


@formula(
    unit="FLOPs",
    expression="B·H·(n·(2c²·d_k + 2c²·d_v + 4c·d_k·d_v) + 2·(n+1)²·d_k·d_v), n = ⌈S/c⌉",
    source="transformers 5.24 without kernels: CBᵀ for every head, every chunk's state times every other's",
    legend=_LEGEND,
)
def ssd_fallback_flops(batch: int, seq: int, heads: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """Mamba 2 in plain torch, as a trace sees it."""
    chunks = _chunks(seq, chunk)
    inside = ssd_kernel_flops(batch, seq, heads, heads, key_dim, value_dim, chunk)
    return inside + linear_flops(batch * heads * (chunks + 1) ** 2, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="2·T·H·d_k·d_v",
    source="transformers 5.24 without kernels: only the reading of the state is a product, its change is elementwise",
    legend=_LEGEND,
)
def selective_fallback_flops(tokens: int, heads: int, key_dim: int, value_dim: int) -> int:
    """Mamba 1 in plain torch, as a trace sees it."""
    return linear_flops(tokens * heads, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="B·⌈S/c⌉·H·(2c²·(3·d_k + 2·d_v) + 6c·d_k·d_v)",
    source=f"{_DELTA}: KKᵀ, the two products with its inverse (the inverse left out), QKᵀ and its product, three with"
    " states",
    legend=_LEGEND,
)
def delta_kernel_flops(batch: int, seq: int, heads: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """The (gated) delta rule by the chunked kernel."""
    solved = linear_flops(chunk * chunk, heads, key_dim + value_dim)
    return delta_fallback_flops(batch, seq, heads, key_dim, value_dim, chunk) + batch * _chunks(seq, chunk) * solved


@formula(
    unit="FLOPs",
    expression="B·⌈S/c⌉·H·(2c²·(2·d_k + d_v) + 6c·d_k·d_v)",
    source="transformers 5.24 without kernels: as the kernel, but solving its triangles is no product to torch",
    legend=_LEGEND,
)
def delta_fallback_flops(batch: int, seq: int, heads: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """The (gated) delta rule in plain torch, as a trace sees it."""
    inside = linear_flops(chunk * chunk, heads, 2 * key_dim + value_dim)
    return batch * _chunks(seq, chunk) * (inside + delta_rule_flops(chunk, heads, key_dim, value_dim))


@formula(
    unit="FLOPs",
    expression="4·B·S·H·d_k·d_v + B·H·Σ 2l²·(d_k + d_v) over chunks of l ≤ c positions",
    source="arXiv:2401.04658 §3.2: pairs inside a chunk beside the state's change and reading",
    legend=_LEGEND,
)
def linear_attention_kernel_flops(batch: int, seq: int, heads: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """Linear attention in chunks: by kernel, and in transformers' plain torch."""
    pairs = seq // chunk * chunk**2 + (seq % chunk) ** 2
    inside = linear_flops(batch * heads * pairs, 1, key_dim + value_dim)
    return inside + linear_attention_flops(batch * seq, heads, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="4·B·S·H·d_k·d_v + 2·B·S·H·d_k + B·H·⌊S/c⌋·2c²·(d_k + d_v)",
    source="transformers 5.24 without kernels: whole chunks in parallel, what is left step by step; q·n normalises",
    legend=_LEGEND,
)
def mlstm_fallback_flops(batch: int, seq: int, heads: int, key_dim: int, value_dim: int, chunk: int) -> int:
    """The mLSTM in plain torch, as a trace sees it."""
    whole = seq // chunk * chunk
    inside = linear_flops(batch * heads * whole * chunk, 1, key_dim + value_dim)
    normaliser = linear_flops(batch * seq, heads, key_dim)
    return inside + normaliser + linear_attention_flops(batch * seq, heads, key_dim, value_dim)
