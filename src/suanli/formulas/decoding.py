"""Seconds of the operators of inference: products of few rows, caches read, experts met, prefill between decodes.

Every function takes numbers or float64 arrays, which broadcast.
"""

from __future__ import annotations

from typing import Any

from suanli.formulas.kernels import joined_s
from suanli.formulas.registry import formula
from suanli.units import FLOPS_PER_MAC

Numbers = Any
_SHARPNESS = 3.0  # a product of few rows overlaps its reads and its arithmetic well, not perfectly
_STREAM = {
    "rows": "m: rows, one a token or a sequence",
    "n": "n: outputs of the matrix",
    "k": "k: inputs of the matrix",
    "count": "c: matrices",
    "weight_bytes": "b_w: bytes of one weight, scales included",
    "activation_bytes": "b_a: bytes of one activation",
    "bytes_per_s": "W: memory rate of the device [B/s]",
    "flop_per_s": "X: attainable rate of the product [FLOP/s]",
}


@formula(
    unit="bytes",
    expression="c·(b_w·n·k + b_a·m·(n + k))",
    source="every weight read once, rows read and written once",
    legend=_STREAM,
)
def streamed_bytes(
    rows: Numbers, n: Numbers, k: Numbers, count: Numbers, weight_bytes: float, activation_bytes: float
) -> Numbers:
    """Least traffic of `count` products of `rows` rows each."""
    return count * (weight_bytes * n * k + activation_bytes * rows * (n + k))


@formula(
    unit="s",
    expression="((bytes/W)³ + (2·c·m·n·k/X)³)^(1/3)",
    source="the slower of reading the weights and of multiplying, rounded where they meet",
    legend=_STREAM,
)
def streamed_product_s(
    rows: Numbers,
    n: Numbers,
    k: Numbers,
    count: Numbers,
    weight_bytes: float,
    activation_bytes: float,
    bytes_per_s: float,
    flop_per_s: float,
) -> Numbers:
    """Time of `count` products [rows, k] × [k, n] as a roofline: 0 where there are no rows."""
    moved_s = streamed_bytes(rows, n, k, count, weight_bytes, activation_bytes) / bytes_per_s
    worked_s = FLOPS_PER_MAC * count * rows * n * k / flop_per_s
    return joined_s(moved_s, worked_s, _SHARPNESS) * (rows * count > 0)


@formula(
    unit="experts",
    expression="E·(1 − (1 − k/E)^T)",
    source="mean of E draws without favour, each token choosing k of E",
    legend={"experts": "E: experts of a layer", "chosen": "k: experts a token passes through", "tokens": "T: tokens"},
)
def distinct_experts(experts: Numbers, chosen: Numbers, tokens: Numbers) -> Numbers:
    """Experts of one layer that at least one of the tokens meets: whose weights a step has to read."""
    return experts * (1 - (1 - chosen / experts) ** tokens)


@formula(
    unit="bytes",
    expression="b·B·S·K·(d_qk + d_v)",
    source="one token of each sequence reads its keys and values once",
    legend={
        "sequences": "B: sequences decoded together",
        "width": "K·(d_qk + d_v), or the width of the latent: numbers kept of a position",
        "number_bytes": "b: bytes of one number",
    },
)
def cache_read_bytes(sequences: Numbers, keys: Numbers, width: Numbers, number_bytes: float) -> Numbers:
    """Bytes of the KV cache that one layer reads in one decode step."""
    return number_bytes * sequences * keys * width


@formula(
    unit="s",
    expression="t_decode + C/O·t_prefill",
    source="continuous batching: while one sequence decodes its O tokens, the C − 1 others and its successor are "
    "prefilled once each, between its steps",
    legend={
        "decode_s": "t_decode: time of one decode step [s]",
        "prefill_s": "t_prefill: time of one prompt's prefill [s]",
        "concurrency": "C: sequences served at once",
        "out_tokens": "O: tokens a sequence generates",
    },
)
def time_per_output_token_s(
    decode_s: Numbers, prefill_s: Numbers, concurrency: Numbers, out_tokens: Numbers
) -> Numbers:
    """Mean time between two tokens of one user under a constant concurrency."""
    return decode_s + concurrency / out_tokens * prefill_s


@formula(
    unit="tokens/s",
    expression="C·O/(t_first + (O − 1)·t_token)",
    source="C users, each with its next request the moment the last one ends",
    legend={
        "concurrency": "C: sequences served at once",
        "out_tokens": "O: tokens a sequence generates",
        "first_s": "t_first: time to the first token [s]",
        "token_s": "t_token: time of each further token [s]",
    },
)
def closed_loop_tokens_per_s(concurrency: Numbers, out_tokens: Numbers, first_s: Numbers, token_s: Numbers) -> Numbers:
    """Output tokens of all users in a second."""
    return concurrency * out_tokens / (first_s + (out_tokens - 1) * token_s)


@formula(
    unit="tokens",
    expression="(1 − a^(k+1))/(1 − a)",
    source="arXiv:2211.17192 equation 1: drafts are taken up to the first that is not, and one token comes in any case",
    legend={
        "draft_tokens": "k: tokens drafted before a step",
        "acceptance": "a: chance that a drafted token is taken where those before it were, 0..1",
    },
)
def speculative_tokens(draft_tokens: int, acceptance: float) -> float:
    """Mean tokens of a sequence from one step of the model over its drafts."""
    return sum(acceptance**place for place in range(draft_tokens + 1))
