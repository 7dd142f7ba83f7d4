"""Closed forms of the papers for GPT-shaped models: 4h MLP, no grouped queries, no gating, full attention."""

from __future__ import annotations

from suanli.formulas.counting import attention_flops, full_pairs, ideal_flops, linear_flops
from suanli.formulas.registry import formula

MEGATRON_2021 = "arXiv:2104.04473"
MEGATRON_2022 = "arXiv:2205.05198"


@formula(
    unit="parameters",
    expression="12Lh²·(1 + 13/12h + (V+s)/12Lh)",
    source=f"{MEGATRON_2021} eq. 2; leaves out the last norm (2h)",
)
def gpt_params(num_layers: int, hidden: int, vocab: int, seq: int) -> int:
    """Parameters of a GPT model with learned positions, biases and tied head."""
    return 12 * num_layers * hidden**2 + 13 * num_layers * hidden + (vocab + seq) * hidden


@formula(unit="FLOPs", expression="8Bsh² + 4Bs²h", source=f"{MEGATRON_2021} appendix")
def gpt_attention_layer_flops(batch: int, seq: int, hidden: int) -> int:
    """One attention layer, forward: QKV, scores, context, projection."""
    products = linear_flops(batch * seq, hidden, 4 * hidden)
    return products + attention_flops(batch * full_pairs(seq, seq), 1, hidden, hidden)


@formula(unit="FLOPs", expression="16Bsh²", source=f"{MEGATRON_2021} appendix")
def gpt_mlp_layer_flops(batch: int, seq: int, hidden: int) -> int:
    """One MLP layer, forward: h → 4h → h."""
    return 2 * linear_flops(batch * seq, hidden, 4 * hidden)


@formula(unit="FLOPs", expression="2BshV", source=f"{MEGATRON_2021} appendix")
def gpt_logits_flops(batch: int, seq: int, hidden: int, vocab: int) -> int:
    """The head, forward."""
    return linear_flops(batch * seq, hidden, vocab)


@formula(unit="FLOPs", expression="24BLsh²·(1 + s/6h + V/12Lh)", source=f"{MEGATRON_2021} appendix")
def gpt_forward_flops(batch: int, seq: int, num_layers: int, hidden: int, vocab: int) -> int:
    """One forward pass."""
    layer = gpt_attention_layer_flops(batch, seq, hidden) + gpt_mlp_layer_flops(batch, seq, hidden)
    return num_layers * layer + gpt_logits_flops(batch, seq, hidden, vocab)


@formula(unit="FLOPs", expression="72BLsh²·(1 + s/6h + V/12Lh)", source=f"{MEGATRON_2022} eq. 7")
def gpt_model_flops(batch: int, seq: int, num_layers: int, hidden: int, vocab: int) -> int:
    """Model FLOPs of one iteration: forward once, backward twice."""
    return 3 * gpt_forward_flops(batch, seq, num_layers, hidden, vocab)


@formula(unit="FLOPs", expression="96BLsh²·(1 + s/6h + V/16Lh)", source=f"{MEGATRON_2021} eq. 3")
def gpt_hardware_flops_full(batch: int, seq: int, num_layers: int, hidden: int, vocab: int) -> int:
    """Hardware FLOPs with full recompute: every layer forward once more, the head not."""
    again = gpt_forward_flops(batch, seq, num_layers, hidden, vocab) - gpt_logits_flops(batch, seq, hidden, vocab)
    return gpt_model_flops(batch, seq, num_layers, hidden, vocab) + again


@formula(
    unit="FLOPs",
    expression="72BLsh²·(1 + s/3h + V/12Lh)",
    source=f"{MEGATRON_2022} eq. 8 as printed; counts three times the recompute it describes",
)
def gpt_hardware_flops_selective_published(batch: int, seq: int, num_layers: int, hidden: int, vocab: int) -> int:
    """Hardware FLOPs with selective recompute by the published equation."""
    scores = attention_flops(batch * full_pairs(seq, seq), 1, hidden, hidden)
    return gpt_model_flops(batch, seq, num_layers, hidden, vocab) + 3 * num_layers * scores


@formula(
    unit="FLOPs",
    expression="72BLsh²·(1 + 2s/9h + V/12Lh)",
    source=f"{MEGATRON_2022} §5 as described: QKᵀ and AV forward once more, 4BLs²h",
)
def gpt_hardware_flops_selective(batch: int, seq: int, num_layers: int, hidden: int, vocab: int) -> int:
    """Hardware FLOPs with selective recompute, counted."""
    scores = attention_flops(batch * full_pairs(seq, seq), 1, hidden, hidden)
    return gpt_model_flops(batch, seq, num_layers, hidden, vocab) + num_layers * scores


@formula(
    unit="FLOPs",
    expression="6N + 12·L·H·d·s",
    source="arXiv:2204.02311 appendix B (PaLM), per token; N with all embeddings",
)
def palm_flops_per_token(params: int, num_layers: int, heads: int, head_dim: int, seq: int) -> int:
    """Training FLOPs of one token as PaLM counts them."""
    attention = 3 * num_layers * attention_flops(seq, heads, head_dim, head_dim)
    return ideal_flops(6, params, 1) + attention
