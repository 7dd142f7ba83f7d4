"""The conventions: `causal` by default, the common ones, and emulations of trainers' own counts.

Read in the sources named; each row is data, and `count` knows none of them by name.
"""

from __future__ import annotations

from suanli.errors import unknown_name
from suanli.nouns.convention import Convention

DEFAULT = "causal"

_ROWS = (
    Convention(
        name="causal",
        doc="matmul weights with lm head and router; attention by the pairs the model's own mask allows",
        source="Suanli's default; exact count of the multiply-adds needed",
        exact_backward=True,
        common=True,
    ),
    Convention(
        name="full",
        doc="as causal, but every S×S pair of positions",
        source="what a dispatcher trace sees (torch.utils.flop_counter)",
        pairs="full",
        exact_backward=True,
        common=True,
    ),
    Convention(
        name="megatron",
        doc="as causal, S²/2 pairs, no router, windows ignored",
        source="Megatron-LM core 0.12 and later, num_floating_point_operations",
        pairs="half",
        router=False,
        common=True,
    ),
    Convention(
        name="megatron-full",
        doc="as full, no router, windows ignored",
        source="Megatron-LM core 0.6 to 0.11; for GPT shapes 72BLsh²(1 + s/6h + V/12Lh), arXiv:2205.05198 eq. 7",
        pairs="full",
        router=False,
        common=True,
    ),
    Convention(
        name="palm",
        doc="6·N + 12·L·H·Q·T with N the active parameters, all embeddings in",
        source="arXiv:2204.02311 appendix B",
        basis="params",
        pairs="full",
        common=True,
    ),
    Convention(
        name="palm-noemb",
        doc="as palm, N less the input embedding",
        source="torchtitan, get_dense_model_nparams_and_flops",
        basis="params",
        pairs="full",
        embedding_params="output",
        common=True,
    ),
    Convention(
        name="6n",
        doc="6 × parameters outside embedding modules, all experts, no attention",
        source="Hugging Face trainer, total_flos (floating_point_ops)",
        basis="params",
        pairs="none",
        embedding_params="none",
        experts="all",
        common=True,
    ),
    Convention(
        name="6n-all",
        doc="6 × all parameters, active ones for a mixture, no attention",
        source="arXiv:2001.08361 §2.1; the rule of thumb",
        basis="params",
        pairs="none",
        common=True,
    ),
    Convention(
        name="hardware",
        doc="causal plus one more forward of every layer (full recompute), the lm head not recomputed",
        source="arXiv:2104.04473 eq. 3, with causal attention",
        exact_backward=True,
        recompute_blocks=True,
        common=True,
    ),
    Convention(
        name="verl",
        doc="causal halved (S²/2), the token lookup charged as a matmul, no router",
        source="veRL since 2026-01 (PR 4959), flops_counter",
        pairs="half",
        router=False,
        embedding_as_matmul=True,
    ),
    Convention(
        name="neox",
        doc="24·3·Lh²(1 + s/6h + V/16Lh): grouped queries, gating and f ignored",
        source="GPT-NeoX ea7aefd8; ColossalAI `by Megatron`",
        basis="closed",
        closed_form="neox_flops_per_token",
    ),
    Convention(
        name="megatron-2023",
        doc="60Lh²(1 + K/5H + s/5h + V/10Lh): the MLP taken for 4h",
        source="Megatron-LM 2023-11-28 to 2024-02, core 0.5",
        basis="closed",
        closed_form="megatron_2023_flops_per_token",
    ),
    Convention(
        name="megatron-2024-02",
        doc="any f, gated MLPs taken for two matrices",
        source="Megatron-LM 2024-02-28 to 2024-03-25",
        basis="closed",
        closed_form="megatron_2024_02_flops_per_token",
    ),
    Convention(
        name="levanter",
        doc="full attention with the softmax",
        source="Levanter 9263f81e",
        basis="closed",
        closed_form="levanter_flops_per_token",
    ),
    Convention(
        name="internevo",
        doc="gated MLP, grouped queries ignored",
        source="InternEvo c628a8c",
        basis="closed",
        closed_form="internevo_flops_per_token",
    ),
    Convention(
        name="litgpt",
        doc="3·(2N + 4Lhs) + 2·4Lhs: attention five times",
        source="LitGPT 0.5.13, estimate_flops",
        basis="closed",
        closed_form="litgpt_flops_per_token",
    ),
)

CONVENTIONS = {row.name: row for row in _ROWS}


def find_convention(name: str | Convention, where: str = "--convention") -> Convention:
    """The convention called `name`. Raises UnknownNameError with the nearest names."""
    if isinstance(name, Convention):
        return name
    if name in CONVENTIONS:
        return CONVENTIONS[name]
    raise unknown_name("convention", name, CONVENTIONS, where=where, hint="Conventions: " + ", ".join(CONVENTIONS))


def common_conventions() -> tuple[Convention, ...]:
    """Those shown beside the chosen one."""
    return tuple(row for row in _ROWS if row.common)
