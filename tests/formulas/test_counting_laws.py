"""Laws of the counting formulas: masks that complete each other, limits, proportions, equal forms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import articles, counting, gpt, trainers

LENGTHS = st.tuples(st.integers(1, 200), st.integers(0, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))
SIZE = st.integers(1, 10**6)


def strictly_future(queries: int, keys: int) -> int:
    """Keys after each of the last T of S positions."""
    return sum(keys - 1 - position for position in range(keys - queries, keys))


@given(LENGTHS)
def test_past_present_and_future_are_all_pairs(lengths: tuple[int, int]) -> None:
    queries, keys = lengths
    past = counting.causal_pairs(queries, keys, keys)
    assert past + strictly_future(queries, keys) == counting.full_pairs(queries, keys)


@given(LENGTHS)
def test_half_lies_half_a_diagonal_below_causal(lengths: tuple[int, int]) -> None:
    """The trapezium cuts each query's own pair in two."""
    queries, keys = lengths
    assert counting.causal_pairs(queries, keys, keys) - counting.half_pairs(queries, keys) == Fraction(queries, 2)


@given(LENGTHS)
def test_half_of_a_square_is_half_of_all(lengths: tuple[int, int]) -> None:
    queries, _ = lengths
    assert 2 * counting.half_pairs(queries, queries) == counting.full_pairs(queries, queries)


def test_half_pairs_of_arrays() -> None:
    found = counting.half_pairs(np.array([3.0, 2.0]), np.array([3.0, 5.0]))  # type: ignore[arg-type]
    assert found.tolist() == [4.5, 8.0]  # type: ignore[union-attr]
    assert counting.half_pairs(3.0, 3.0) == 4.5  # type: ignore[arg-type]


@given(LENGTHS, st.integers(0, 1000))
def test_limits_past_every_position_limit_nothing(lengths: tuple[int, int], more: int) -> None:
    queries, keys = lengths
    causal = counting.causal_pairs(queries, keys, keys)
    assert counting.causal_pairs(queries, keys, keys + more) == causal
    assert counting.chunked_pairs(queries, keys, keys + more) == causal


@given(LENGTHS)
def test_a_window_or_chunk_of_one_sees_itself(lengths: tuple[int, int]) -> None:
    queries, keys = lengths
    assert counting.causal_pairs(queries, keys, 1) == queries == counting.chunked_pairs(queries, keys, 1)


@given(LENGTHS, st.integers(1, 250))
def test_a_wider_window_adds_a_pair_for_each_query_that_reaches_so_far(lengths: tuple[int, int], window: int) -> None:
    queries, keys = lengths
    more = counting.causal_pairs(queries, keys, window + 1) - counting.causal_pairs(queries, keys, window)
    assert more == sum(1 for position in range(keys - queries, keys) if position >= window)


@given(st.integers(1, 30), st.integers(1, 30))
def test_whole_chunks_are_that_many_triangles(chunk: int, number: int) -> None:
    length = chunk * number
    assert counting.chunked_pairs(length, length, chunk) == number * counting.causal_pairs(chunk, chunk, chunk)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 80))
def test_chunks_in_pieces(first: int, second: int, chunk: int) -> None:
    whole = counting.chunked_pairs(first + second, first + second, chunk)
    rest = counting.chunked_pairs(second, first + second, chunk)
    assert counting.chunked_pairs(first, first, chunk) + rest == whole


@given(SIZE, SIZE, SIZE, SIZE)
def test_attention_is_two_products(pairs: int, heads: int, qk: int, v: int) -> None:
    assert counting.attention_flops(pairs, heads, qk, v) == 2 * pairs * heads * (qk + v)
    assert counting.attention_flops(pairs, heads, qk, v) == counting.attention_flops(pairs, heads, v, qk)


@given(SIZE, SIZE, st.integers(1, 64), st.integers(1, 49))
def test_a_convolution_group_by_group(batch: int, positions: int, channels: int, kernel: int) -> None:
    """As many groups as channels: each output channel sees one input channel."""
    depthwise = counting.conv_flops(batch, positions, channels, channels, channels, kernel)
    assert depthwise == 2 * batch * positions * channels * kernel
    whole = counting.conv_flops(batch, positions, channels, channels, 1, kernel)
    assert whole == channels * depthwise
    apart = channels * counting.conv_flops(batch, positions, 1, 1, 1, kernel)
    assert depthwise == apart


@given(SIZE, st.integers(1, 50), st.integers(1, 50))
def test_a_convolution_of_one_point_is_a_matrix(tokens: int, inputs: int, outputs: int) -> None:
    found = counting.conv_flops(1, tokens, inputs, outputs, 1, 1)
    assert found == counting.linear_flops(tokens, inputs, outputs)


@given(SIZE, st.integers(1, 50), st.integers(1, 50))
def test_one_expert_is_an_mlp(tokens: int, hidden: int, ffn: int) -> None:
    found = counting.experts_flops(tokens, 1, 3, hidden, ffn)
    up, down = counting.linear_flops(tokens, hidden, ffn), counting.linear_flops(tokens, ffn, hidden)
    assert found == 2 * up + down


@given(SIZE, st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3, 4]), st.integers(1, 4))
def test_a_recurrent_stack_is_its_layers(tokens: int, width: int, hidden: int, gates: int, depth: int) -> None:
    widths = [width] + [hidden] * (depth - 1)
    stack = counting.recurrent_flops(tokens, 1, widths, gates, hidden, hidden, 0)
    apart = sum(counting.recurrent_flops(tokens, 1, [each], gates, hidden, hidden, 0) for each in widths)
    assert stack == apart
    assert counting.recurrent_flops(tokens, 2, widths, gates, hidden, hidden, 0) == 2 * stack


@given(SIZE, SIZE, st.integers(1, 50), st.integers(1, 50))
def test_linear_attention_is_attention_to_as_many_keys_as_a_value_is_wide(
    tokens: int, heads: int, key: int, value: int
) -> None:
    """2·T·H·d_k·d_v twice: scores against d_v keys of d_k, and d_k of d_v."""
    assert counting.linear_attention_flops(tokens, heads, key, value) == 4 * tokens * heads * key * value


# function, arguments; which of them the value grows in proportion with
LINEAR: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = [
    (counting.linear_flops, (3, 5, 7), (0, 1, 2)),
    (counting.full_pairs, (3, 5), (0, 1)),
    (counting.attention_flops, (3, 5, 7, 11), (0, 1)),
    (counting.experts_flops, (3, 5, 2, 7, 11), (0, 1, 2, 3, 4)),
    (counting.conv_flops, (3, 5, 14, 11, 7, 13), (0, 1, 2, 3, 5)),
    (counting.linear_attention_flops, (3, 5, 7, 11), (0, 1, 2, 3)),
    (counting.ideal_flops, (6, 5, 7), (0, 1, 2)),
    (gpt.gpt_attention_layer_flops, (3, 5, 7), (0,)),
    (gpt.gpt_mlp_layer_flops, (3, 5, 7), (0, 1)),
    (gpt.gpt_logits_flops, (3, 5, 7, 11), (0, 1, 2, 3)),
    (gpt.gpt_forward_flops, (3, 5, 2, 7, 11), (0,)),
    (gpt.gpt_hardware_flops_full, (3, 5, 2, 7, 11), (0,)),
    (gpt.gpt_hardware_flops_selective, (3, 5, 2, 7, 11), (0,)),
]


@pytest.mark.parametrize(("function", "arguments", "proportional"), LINEAR, ids=[row[0].__name__ for row in LINEAR])
def test_proportions(function: Callable[..., Any], arguments: tuple[int, ...], proportional: tuple[int, ...]) -> None:
    for index in proportional:
        for multiple in (2, 3):
            grown = [multiple * value if i == index else value for i, value in enumerate(arguments)]
            assert function(*grown) == multiple * function(*arguments)


# --- closed forms of the papers at tiny sizes: B = 3, s = 5, L = 2, h = 7, V = 11, all different ----------------------

B, S, L, H, V = 3, 5, 2, 7, 11
LAYER = 24 * B * S * H**2 + 4 * B * S**2 * H
HEAD = 2 * B * S * H * V
GPT = [
    (gpt.gpt_params, (L, H, V, S), 12 * L * H**2 + 13 * L * H + (V + S) * H),
    (gpt.gpt_attention_layer_flops, (B, S, H), 8 * B * S * H**2 + 4 * B * S**2 * H),
    (gpt.gpt_mlp_layer_flops, (B, S, H), 16 * B * S * H**2),
    (gpt.gpt_logits_flops, (B, S, H, V), HEAD),
    (gpt.gpt_forward_flops, (B, S, L, H, V), L * LAYER + HEAD),
    (gpt.gpt_model_flops, (B, S, L, H, V), 3 * (L * LAYER + HEAD)),
    (gpt.gpt_hardware_flops_full, (B, S, L, H, V), 4 * L * LAYER + 3 * HEAD),
    (gpt.gpt_hardware_flops_selective, (B, S, L, H, V), 3 * (L * LAYER + HEAD) + L * 4 * B * S**2 * H),
    (gpt.gpt_hardware_flops_selective_published, (B, S, L, H, V), 3 * (L * LAYER + HEAD) + 3 * L * 4 * B * S**2 * H),
    (gpt.palm_flops_per_token, (1000, L, 4, 3, S), 6 * 1000 + 12 * L * 4 * 3 * S),
]


@pytest.mark.parametrize(("function", "arguments", "value"), GPT, ids=[row[0].__name__ for row in GPT])
def test_closed_forms_of_a_gpt(function: Callable[..., int], arguments: tuple[int, ...], value: int) -> None:
    assert function(*arguments) == value


@given(st.integers(1, 9), st.integers(1, 50), st.integers(1, 9), st.integers(1, 50), st.integers(1, 99))
def test_the_papers_factored_forms(batch: int, seq: int, layers: int, hidden: int, vocab: int) -> None:
    """72BLsh²(1 + s/6h + V/12Lh), 96BLsh²(1 + s/6h + V/16Lh), 72BLsh²(1 + s/3h + V/12Lh), as fractions."""
    unit, s_h, v_lh = batch * layers * seq * hidden**2, Fraction(seq, hidden), Fraction(vocab, layers * hidden)
    shape = (batch, seq, layers, hidden, vocab)
    assert gpt.gpt_forward_flops(*shape) == 24 * unit * (1 + s_h / 6 + v_lh / 12)
    assert gpt.gpt_model_flops(*shape) == 72 * unit * (1 + s_h / 6 + v_lh / 12)
    assert gpt.gpt_hardware_flops_full(*shape) == 96 * unit * (1 + s_h / 6 + v_lh / 16)
    assert gpt.gpt_hardware_flops_selective_published(*shape) == 72 * unit * (1 + s_h / 3 + v_lh / 12)
    assert gpt.gpt_hardware_flops_selective(*shape) == 72 * unit * (1 + s_h * 2 / 9 + v_lh / 12)


@given(st.integers(1, 9), st.integers(1, 8), st.integers(1, 9), st.integers(1, 99), st.integers(1, 50))
def test_trainers_agree_on_a_gpt_but_for_what_each_forgets(
    layers: int, heads: int, width: int, vocab: int, seq: int
) -> None:
    """Without groups, gates and odd widths all count a forward alike; NeoX takes 1.5hV for the head."""
    hidden = heads * width
    forward = gpt.gpt_forward_flops(1, seq, layers, hidden, vocab) // seq
    found = {
        "2023": trainers.megatron_2023_flops_per_token(layers, hidden, heads, heads, vocab, seq),
        "2024": trainers.megatron_2024_02_flops_per_token(layers, hidden, heads, heads, 4 * hidden, vocab, seq),
        "neox": trainers.neox_flops_per_token(layers, hidden, vocab, seq),
    }
    assert found["2023"] == found["2024"] == (forward, 2 * forward)
    neox = forward - 2 * hidden * vocab + 3 * hidden * vocab // 2
    assert found["neox"] == (neox, 2 * neox)


@given(st.integers(1, 9), st.integers(1, 8), st.integers(1, 9), st.integers(1, 99), st.integers(1, 50))
def test_trainers_of_gated_models(layers: int, heads: int, width: int, vocab: int, seq: int) -> None:
    """Levanter has 3sH of softmax a layer more than InternEvo, where no queries are grouped."""
    hidden, ffn = heads * width, 3 * heads
    levanter = trainers.levanter_flops_per_token(layers, hidden, heads, heads, width, ffn, vocab, seq)
    internevo = trainers.internevo_flops_per_token(layers, hidden, ffn, vocab, seq)
    assert levanter[0] - internevo[0] == layers * 3 * seq * heads
    assert levanter[1] == 2 * levanter[0]
    assert internevo[1] == 2 * internevo[0]


@pytest.mark.parametrize(("macs", "flops"), [(0, 0), (1, 2), (3, 6), (4.1e9, 8.2e9)])
def test_a_multiply_add_is_two(macs: float, flops: float) -> None:
    assert articles.mac_flops(macs) == flops


@pytest.mark.parametrize(("first", "last", "size"), [(0, 0, 1), (0x20, 0x7F, 96), (5, 9, 5)])
def test_both_ends_of_an_address_range_are_in_it(first: int, last: int, size: int) -> None:
    assert articles.address_range_bytes(first, last) == size
