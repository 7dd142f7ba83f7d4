"""The closed form of the ELECTRA script for one step of pre-training: matrix products, and work by the element.

Read in google-research/electra at 62e478a (flops_computation.py), with the script's own constants: 4 FLOPs an element
for dropout, 5 for a layer norm, 8 for GELU, 5 for a softmax. Emulated as it is: the norm after attention is charged
once a position and not once an element, and the attention's output takes h² where it should be Hd·h.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from suanli.formulas.counting import linear_flops
from suanli.formulas.registry import formula

DROPOUT, LAYER_NORM, ACTIVATION, SOFTMAX = 4, 5, 8, 5
BACKWARD = 1  # the script: "Backward pass takes the same number of FLOPs as forward pass"
MASKED = Fraction(5, 32)  # of the positions, those that masked-language training predicts


def electra_terms(
    seq: int, num_layers: int, hidden: int, ffn: int, heads: int, head_dim: int, vocab: int, predicted: Fraction
) -> Mapping[str, int | Fraction]:
    """Forward FLOPs of one sequence by term; those that are matrix products of the layers are called `layers`."""
    inner, block = heads * head_dim, num_layers * seq
    scores = seq * heads
    products = linear_flops(1, hidden, 3 * inner + hidden) + 2 * linear_flops(1, hidden, ffn)
    attention = linear_flops(1, inner, seq) + linear_flops(1, hidden, seq)
    head = predicted * seq
    return {
        "layers": block * (products + attention),
        "biases": block * (3 * inner + 2 * hidden + ffn),
        "softmax": block * SOFTMAX * scores,
        "dropout": block * DROPOUT * (scores + 2 * hidden),
        "scaling of scores": block * scores,
        "residuals": block * 2 * hidden,
        "norms": block * (LAYER_NORM + LAYER_NORM * hidden),
        "activation": block * ACTIVATION * ffn,
        "one-hot lookup of tokens": seq * linear_flops(1, hidden, vocab),
        "one-hot lookup of positions and types": seq * (linear_flops(1, hidden, seq + 2) + 2 * hidden),
        "norm and dropout of the embedding": seq * (LAYER_NORM + DROPOUT) * hidden,
        "head": head * linear_flops(1, hidden, vocab + hidden),
        "elementwise work of the head": head * (hidden + (ACTIVATION + LAYER_NORM) * hidden + (SOFTMAX + 2) * vocab),
    }


@formula(
    unit="FLOPs",
    expression="2B·(L·block + embedding + p·head)",
    source="google-research/electra 62e478a, flops_computation.py: backward taken as once the forward",
    legend={"predicted": "p: part of the positions that a head predicts: 1 for a decoder, 5/32 for masked language"},
)
def electra_train_flops(
    batch: int, seq: int, num_layers: int, hidden: int, ffn: int, heads: int, head_dim: int, vocab: int,
    predicted: Fraction,
) -> Fraction:  # fmt: skip
    """One step of pre-training, as the ELECTRA script counts it."""
    terms = electra_terms(seq, num_layers, hidden, ffn, heads, head_dim, vocab, predicted)
    return Fraction((1 + BACKWARD) * batch * sum(terms.values()))
