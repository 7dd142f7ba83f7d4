"""What other trainers' own formulas give for one token, so that their printed figures can be matched.

Each returns (forward, backward) FLOPs of one token at sequence length s. They are emulations: where one forgets
grouped queries, gating or the last factor of the head, so does the function. Read in the sources named.
"""

from __future__ import annotations

from suanli.formulas.counting import attention_flops, ideal_flops, linear_flops
from suanli.formulas.registry import formula

_UNIT = "FLOPs (forward, backward) per token"


def _thrice(forward: int) -> tuple[int, int]:
    return forward, 2 * forward


@formula(unit=_UNIT, expression="k·24Lh²·(1 + s/6h + V/16Lh), k = 3", source="GPT-NeoX ea7aefd8, megatron/logging")
def neox_flops_per_token(num_layers: int, hidden: int, vocab: int, seq: int) -> tuple[int, int]:
    """GPT-NeoX and ColossalAI's `megatron` form: head with 1.5hV instead of 2hV, no grouped queries, no gating."""
    layers = num_layers * (linear_flops(1, hidden, 12 * hidden) + attention_flops(seq, 1, hidden, hidden))
    return _thrice(layers + 3 * hidden * vocab // 2)


@formula(
    unit=_UNIT,
    expression="60Lh²·(1 + K/5H + s/5h + V/10Lh)",
    source="Megatron-LM 2748e7c7 (2023-11-28, core 0.5): any MLP taken for 4h",
)
def megatron_2023_flops_per_token(
    num_layers: int, hidden: int, heads: int, kv_heads: int, vocab: int, seq: int
) -> tuple[int, int]:
    """Megatron-LM's first throughput log."""
    width = 10 * hidden + 2 * hidden * kv_heads // heads
    layers = num_layers * (linear_flops(1, hidden, width) + attention_flops(seq, 1, hidden, hidden))
    return _thrice(layers + linear_flops(1, hidden, vocab))


@formula(
    unit=_UNIT,
    expression="3·L·(4hf + 2h(2h + 2hK/H) + 4sh) + 6hV",
    source="Megatron-LM 9677b3bb (2024-02-28) until e116d81e (2024-03-25): gated MLPs taken for two matrices",
)
def megatron_2024_02_flops_per_token(
    num_layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, seq: int
) -> tuple[int, int]:
    """Megatron-LM of March 2024."""
    projections = linear_flops(1, hidden, 2 * hidden + 2 * hidden * kv_heads // heads)
    layer = projections + 2 * linear_flops(1, hidden, ffn) + attention_flops(seq, 1, hidden, hidden)
    return _thrice(num_layers * layer + linear_flops(1, hidden, vocab))


@formula(
    unit=_UNIT,
    expression="3·(L·(6hf + 2h(H+2K)d + 2h² + 4sHd + 3sH) + 2hV)",
    source="Levanter 9263f81e, flop_utils",
)
def levanter_flops_per_token(
    num_layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, ffn: int, vocab: int, seq: int
) -> tuple[int, int]:
    """Levanter: counts the softmax too."""
    projections = linear_flops(1, hidden, (heads + 2 * kv_heads) * head_dim) + linear_flops(1, hidden, hidden)
    scores = attention_flops(seq, heads, head_dim, head_dim) + 3 * seq * heads
    layer = 3 * linear_flops(1, hidden, ffn) + projections + scores
    return _thrice(num_layers * layer + linear_flops(1, hidden, vocab))


@formula(
    unit=_UNIT,
    expression="3·L·((8 + 6f/h)h² + 4sh) + 6hV",
    source="InternEvo c628a8c, get_tflops_func: grouped queries ignored",
)
def internevo_flops_per_token(num_layers: int, hidden: int, ffn: int, vocab: int, seq: int) -> tuple[int, int]:
    """InternEvo."""
    layer = linear_flops(1, hidden, 4 * hidden) + 3 * linear_flops(1, hidden, ffn)
    return _thrice(num_layers * (layer + attention_flops(seq, 1, hidden, hidden)) + linear_flops(1, hidden, vocab))


@formula(
    unit=_UNIT,
    expression="3·(2N + 4Lhs) + 2·4Lhs",
    source="LitGPT 0.5.13, estimate_flops: attention charged five times, not three",
)
def litgpt_flops_per_token(params: int, num_layers: int, hidden: int, seq: int) -> tuple[int, int]:
    """LitGPT's estimate."""
    attention = num_layers * attention_flops(seq, 1, hidden, hidden)
    forward = ideal_flops(2, params, 1) + attention
    return forward, 2 * forward + 2 * attention
