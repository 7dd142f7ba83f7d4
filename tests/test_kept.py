"""What a leaf keeps, at any number of positions: the rule that whole models and ranks' parts share."""

from __future__ import annotations

import numpy as np
import pytest

from suanli.kept import kept_bytes, kept_elements, logits_bytes, scores_bytes, statistics_bytes
from suanli.nouns.layers import Attention, Elementwise, Embedding, Experts, Layer, Linear, Norm

ATTENTION = Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6)
HEAD = Linear(name="x", in_features=3, out_features=8, role="lm_head")

# layer, elements of a position, bytes of ten positions (of twenty keys) in 16 bits
KEPT: list[tuple[Layer, int, int]] = [
    (HEAD, 3, 60),
    (Linear(name="x", in_features=3, out_features=8, shares_input=True), 0, 0),
    (Norm(name="x", dim=3, per=2), 6, 120),
    (Elementwise(name="x", op="dropout", width=7, mask_bytes=7), 0, 70),
    (Elementwise(name="x", op="gated", width=7, saved=21), 21, 420),
    (Experts(name="x", num=8, top_k=2, hidden=3, ffn=4), 14, 280),
    (ATTENTION, 0, 2 * (10 * 12 + 20 * 18)),  # no elements of its own: q, and keys and values of other positions
    (Embedding(name="x", num=9, dim=3), 0, 0),
]


@pytest.mark.parametrize(("layer", "elements", "size"), KEPT, ids=[f"{n}-{row[0].kind}" for n, row in enumerate(KEPT)])
def test_kept(layer: Layer, elements: int, size: int) -> None:
    assert kept_elements(layer) == elements
    assert kept_bytes(layer, 10, 20, 2) == size
    assert (kept_bytes(layer, np.array([10, 20]), np.array([20, 40]), 2) == np.array([size, 2 * size])).all()


def test_logits_are_a_heads_alone() -> None:
    assert logits_bytes(HEAD, 10) == 10 * 8 * 4
    assert logits_bytes(Linear(name="x", in_features=3, out_features=8), 10) == 0


def test_scores_and_statistics_are_attentions_alone() -> None:
    assert scores_bytes(ATTENTION, 10, 5, 2) == 10 * 5 * 4 * 2
    assert scores_bytes(Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6, keys=3), 10, 5, 2) == 10 * 3 * 4 * 2
    assert statistics_bytes(ATTENTION, 10) == 10 * 4 * 4
    assert scores_bytes(HEAD, 10, 5, 2) == statistics_bytes(HEAD, 10) == 0
