"""The counting formulas: tables with the arithmetic beside the number, brute force, exact ints, float arrays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import all_formulas, counting

TABLE: list[tuple[Callable[..., int], tuple[Any, ...], int]] = [
    (counting.linear_flops, (10, 64, 128), 2 * 10 * 64 * 128),
    (counting.linear_flops, (22_528, 64, 256), 738_197_504),  # pytorch issue 126268
    (counting.linear_flops, (0, 64, 128), 0),
    (counting.full_pairs, (3, 7), 21),
    (counting.causal_pairs, (4, 4, 4), 1 + 2 + 3 + 4),
    (counting.causal_pairs, (4, 4, 99), 1 + 2 + 3 + 4),
    (counting.causal_pairs, (5, 5, 2), 1 + 2 + 2 + 2 + 2),
    (counting.causal_pairs, (2, 5, 99), 4 + 5),  # two new positions on three in the cache
    (counting.causal_pairs, (1, 2048, 2048), 2048),
    (counting.causal_pairs, (1, 2048, 128), 128),
    (counting.causal_pairs, (2048, 2048, 2048), 2048 * 2049 // 2),
    (counting.first_aligned_pairs, (4, 4), 1 + 2 + 3 + 4),
    (counting.first_aligned_pairs, (2, 5), 1 + 2),
    (counting.first_aligned_pairs, (5, 2), 1 + 2 + 2 + 2 + 2),  # later queries see all keys there are
    (counting.last_aligned_pairs, (4, 4), 1 + 2 + 3 + 4),
    (counting.last_aligned_pairs, (2, 5), 4 + 5),
    (counting.last_aligned_pairs, (5, 2), 0 + 0 + 0 + 1 + 2),  # the first three stand before every key
    (counting.band_pairs, (5, 1), 2 + 3 + 3 + 3 + 2),
    (counting.band_pairs, (5, 99), 5 * 5),
    (counting.chunked_pairs, (5, 5, 2), 1 + 2 + 1 + 2 + 1),
    (counting.chunked_pairs, (2, 5, 2), 2 + 1),
    (counting.chunked_pairs, (4, 4, 99), 1 + 2 + 3 + 4),
    (counting.attention_flops, (64 * 64, 12, 64, 64), 12_582_912),  # pytorch issue 195460: 2·2·64²·12·64
    (counting.attention_flops, (128 * 128, 32, 128, 128), 268_435_456),  # grouped queries: 32 heads, 8 of keys
    (counting.attention_flops, (10, 4, 24, 16), 2 * 10 * 4 * 24 + 2 * 10 * 4 * 16),
    (counting.experts_flops, (256, 1, 1, 512, 1024), 268_435_456),  # torch's grouped_mm, [256,512] × [8,512,1024]
    (counting.experts_flops, (10, 2, 3, 64, 32), 3 * 2 * (10 * 2) * 64 * 32),
    (counting.conv_flops, (1, 56 * 56, 64, 64, 64, 9), 2 * 56 * 56 * 64 * 9),  # depthwise
    (counting.conv_flops, (6, 30 * 96, 192, 384, 1, 4), 2 * 5_096_079_360),  # pytorch issue 119806, transposed
    (counting.recurrent_flops, (250, 1, [12], 4, 128, 128, 0), 35_840_000),  # 2·250·4·128·(12 + 128)
    (counting.recurrent_flops, (15, 1, [10], 4, 20, 20, 0), 72_000),  # fvcore issue 98: 2·15·4·20·(10 + 20)
    (counting.recurrent_flops, (9, 2, [40, 20], 4, 24, 10, 10),
     2 * (2 * 9 * 96 * (40 + 10) + 2 * 9 * 96 * (20 + 10) + 2 * (2 * 9 * 24 * 10))),
    (counting.linear_attention_flops, (10, 4, 8, 16), 2 * (2 * 10 * 4 * 8 * 16)),
    (counting.ideal_flops, (6, 8_030_261_248, 1), 48_181_567_488),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "value"), TABLE)
def test_values(function: Callable[..., int], arguments: tuple[Any, ...], value: int) -> None:
    found = function(*arguments)
    assert found == value
    assert type(found) is int


def test_half_pairs_are_a_fraction_where_the_length_is_odd() -> None:
    assert counting.half_pairs(4, 4) == 4 * 4 // 2
    assert counting.half_pairs(3, 3) == Fraction(9, 2)
    assert counting.half_pairs(2, 5) == 2 * (2 * 5 - 2) // 2  # the trapezium of two new positions on three
    assert counting.attention_flops(counting.half_pairs(3, 3), 2, 4, 4) == 2 * 2 * 9 // 2 * 2 * 4


LENGTHS = st.tuples(st.integers(1, 60), st.integers(0, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(LENGTHS, st.integers(1, 80))
def test_causal_pairs_are_those_of_the_mask(lengths: tuple[int, int], window: int) -> None:
    queries, keys = lengths
    mask = [1 for query in range(keys - queries, keys) for key in range(keys) if key <= query and query - key < window]
    assert counting.causal_pairs(queries, keys, window) == len(mask)


@given(LENGTHS, st.integers(1, 80))
def test_chunked_pairs_are_those_of_the_mask(lengths: tuple[int, int], chunk: int) -> None:
    queries, keys = lengths
    mask = [
        1
        for query in range(keys - queries, keys)
        for key in range(keys)
        if key <= query and query // chunk == key // chunk
    ]
    assert counting.chunked_pairs(queries, keys, chunk) == len(mask)


@given(LENGTHS, st.integers(1, 80))
def test_pairs_are_ordered(lengths: tuple[int, int], window: int) -> None:
    """A window or chunk never adds pairs, and no mask has more than all."""
    queries, keys = lengths
    causal = counting.causal_pairs(queries, keys, keys)
    assert counting.chunked_pairs(queries, keys, window) <= counting.causal_pairs(queries, keys, window) <= causal
    assert causal <= counting.full_pairs(queries, keys)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 60))
def test_a_prefix_and_its_rest_make_the_whole(first: int, second: int, window: int) -> None:
    """Prefill in pieces attends the same pairs as in one."""
    whole = counting.causal_pairs(first + second, first + second, window)
    pieces = counting.causal_pairs(first, first, window) + counting.causal_pairs(second, first + second, window)
    assert whole == pieces


def test_ints_stay_exact_far_beyond_64_bits() -> None:
    tokens = 15 * 10**12 + 1
    assert counting.linear_flops(tokens, 16_384, 53_248) == 2 * (15 * 10**12 + 1) * 16_384 * 53_248 > 2**63
    assert counting.causal_pairs(10**12 + 1, 10**12 + 1, 10**12 + 1) == (10**12 + 1) * (10**12 + 2) // 2


def test_what_chunks_do_to_length_128k() -> None:
    # 131,072 = 16 chunks of 8,192; each 8192·8193/2
    assert counting.chunked_pairs(131_072, 131_072, 8_192) == 16 * (8_192 * 8_193 // 2)


ARRAYS = [row for row in TABLE if row[0] is not counting.recurrent_flops]


@pytest.mark.parametrize(("function", "arguments", "value"), ARRAYS)
def test_float_arrays_give_the_same(function: Callable[..., Any], arguments: tuple[Any, ...], value: int) -> None:
    lifted = [np.array([argument, argument], dtype=np.float64) for argument in arguments]
    found = function(*lifted)
    assert found.dtype == np.float64
    assert found.tolist() == [value, value]


def test_sweeps_of_lengths_pass_through() -> None:
    seq = np.array([128.0, 2048.0, 8192.0])
    pairs = counting.causal_pairs(seq, seq, 128.0)
    assert pairs.tolist() == [counting.causal_pairs(int(s), int(s), 128) for s in seq]


def test_every_formula_of_the_module_has_a_row() -> None:
    """With its arithmetic beside the number; a half is no int, and has a test of its own."""
    named = {name for name, each in all_formulas().items() if each.function.__module__ == counting.__name__}
    assert named == {function.__name__ for function, _, _ in TABLE} | {"half_pairs"}


def test_every_formula_here_is_registered_with_legend_and_source() -> None:
    known = all_formulas()
    for name in {function.__name__ for function, _, _ in TABLE}:
        formula = known[name]
        assert formula.unit in ("FLOPs", "pairs")
        assert formula.expression and formula.source and formula.doc
        assert all(": " in text for text in formula.legend.values())
