"""Seconds of kernels: values by hand, laws, arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import kernels

SIZE = st.integers(1, 40_000)
# (m, n, count, units, tile): output the waves could hold over output asked for
LOSSES = [
    ((128, 128, 1, 1, 128, 128), 1.0),  # one tile, one unit
    ((129, 128, 1, 1, 128, 128), 2 * 128 / 129),  # a second tile for one row
    ((256, 256, 1, 3, 128, 128), 6 / 4),  # 4 tiles on 3 units: 2 waves of 3
    ((128, 128, 5, 4, 128, 128), 8 / 5),  # 5 products, a tile each, on 4 units
    ((64, 128, 1, 2, 128, 128), 2 * 2),  # half a tile on one of two units
]


@pytest.mark.parametrize(("arguments", "expected"), LOSSES)
def test_wave_loss_by_hand(arguments: tuple[int, ...], expected: float) -> None:
    assert kernels.wave_loss(*arguments) == pytest.approx(expected, rel=1e-12)


JOINED = [(3.0, 4.0, 2.0, 5.0), (3.0, 4.0, 1.0, 7.0), (3.0, 0.0, 2.0, 3.0), (0.0, 0.0, 2.0, 0.0)]


@pytest.mark.parametrize(("a", "b", "p", "expected"), JOINED)
def test_joined_by_hand(a: float, b: float, p: float, expected: float) -> None:
    assert kernels.joined_s(a, b, p) == pytest.approx(expected, abs=1e-15)


def test_a_product_by_hand() -> None:
    """256 × 256 × 1,000 on one unit at 2 FLOP/s, memory out of the way, no edges: 2·256·256·1000/2 + 1."""
    free = (1, 2.0, 1.0, 0.0, 0.0, 1.0, 1e30, 1.0, 2, 2, 0)
    assert kernels.matmul_s(256, 256, 1000, 1, *free) == pytest.approx(256 * 256 * 1000 + 1, rel=1e-12)


def test_a_short_inner_dimension_costs_as_if_longer() -> None:
    shape = (256, 256)
    assert kernels.tiled_product_s(*shape, 100, 1, 1, 1.0, 1.0, 100.0, 0.0) == pytest.approx(
        kernels.tiled_product_s(*shape, 200, 1, 1, 1.0, 1.0, 0.0, 0.0)
    )


def test_quantising_reads_the_activations_once_more() -> None:
    base = (1, 1e30, 1.0, 0.0, 0.0, 1.0, 4.0, 0.0, 1, 2)
    with_it, without = (kernels.matmul_s(8, 4, 2, 1, *base, extra) for extra in (3, 0))
    assert with_it - without == pytest.approx(8 * 2 * 3 / 4)


def test_the_best_tile_is_taken() -> None:
    """With edges for nothing, 64 rows fill a tile of 64 rows and half of one of 128."""
    seconds = kernels.tiled_product_s(64, 128, 10, 1, 1, 1.0, 1.0, 0.0, 0.0)
    assert seconds == pytest.approx(2 * 64 * 128 * 10)


def test_attention_by_hand() -> None:
    """One head of 128 queries and keys, width 64, all pairs: 2 products of 2·128·128·64, at 1 FLOP/s on one unit."""
    free = (1, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1e30, 0.0, 2)
    seconds = kernels.attention_s(1, 1, 1, 128, 128, 128 * 128, 128, 64, 64, *free)
    assert seconds == pytest.approx(2 * 2 * 128 * 128 * 64)


def test_attention_is_no_faster_than_its_longest_block() -> None:
    """8 blocks on 8 units: the last one sees all 1,024 keys, while they see half of them on average."""
    free = (8, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1e30, 0.0, 2)
    causal = kernels.attention_s(1, 1, 1, 1024, 1024, 1024 * 1025 / 2, 1024, 64, 64, *free)
    assert causal == pytest.approx(4 * 128 * 1024 * 64 * 8)


def test_backward_of_attention_is_five_products_for_two() -> None:
    assert kernels.attention_backward_s(2.0, 1.0) == 5.0
    assert kernels.attention_backward_s(2.0, 0.5) == 10.0


def test_memory_pass() -> None:
    assert kernels.memory_pass_s(100, 50.0, 1.0) == 3.0
    assert kernels.memory_pass_s(0, 50.0, 1.0) == 0


@pytest.mark.parametrize("shape", [(0, 4, 4, 1), (4, 0, 4, 1), (4, 4, 0, 1), (4, 4, 4, 0)])
def test_nothing_takes_no_time(shape: tuple[int, ...]) -> None:
    assert kernels.matmul_s(*shape, 108, 3e14, 0.5, 100, 0.1, 3, 1e12, 5e-6, 2, 2, 0) == 0


CURVE = (108, 2.8e14, 0.4, 150.0, 0.1, 3.0, 1.5e12, 4e-6, 2.0, 2.0, 0.0)


@given(SIZE, SIZE, SIZE, st.integers(0, 2), st.integers(1, 5000))
def test_a_larger_product_is_never_faster(m: int, n: int, k: int, which: int, more: int) -> None:
    shape = [m, n, k]
    shape[which] += more
    assert kernels.matmul_s(*shape, 1, *CURVE) >= kernels.matmul_s(m, n, k, 1, *CURVE) * (1 - 1e-12)


@given(SIZE, SIZE)
def test_smaller_and_larger_are_min_and_max(a: int, b: int) -> None:
    assert (kernels.smaller(a, b), kernels.larger(a, b)) == (min(a, b), max(a, b))
    pair = np.array([a, b], float), np.array([b, a], float)
    assert (kernels.smaller(*pair) == np.minimum(*pair)).all()
    assert (kernels.larger(*pair) == np.maximum(*pair)).all()


@given(st.lists(st.tuples(SIZE, SIZE, SIZE, SIZE), min_size=1, max_size=5))
def test_arrays_give_what_scalars_give(shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.array(column, float) for column in zip(*shapes, strict=True)]
    one_by_one = [kernels.matmul_s(*shape, *CURVE) for shape in shapes]
    assert np.allclose(kernels.matmul_s(*arrays, *CURVE), one_by_one, rtol=1e-12)
