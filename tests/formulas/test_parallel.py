"""Parts, padding, sharding and micro-batches in flight: by hand, and the same for arrays as for numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import parallel


@pytest.mark.parametrize(("total", "ranks", "part"), [(12, 4, 3), (13, 4, 4), (8, 16, 1), (5, 1, 5)])
def test_rank_part(total: int, ranks: int, part: int) -> None:
    assert parallel.rank_part(total, ranks) == part


# vocabulary, multiple, tp, rows: 50,257 is padded to 51,200 with tp 8 (50 · 1,024)
@pytest.mark.parametrize(("vocab", "multiple", "tp", "rows"), [
    (50257, 128, 8, 51200), (50257, 128, 1, 50304), (128256, 128, 8, 129024), (128256, 1, 8, 128256), (7, 1, 1, 7),
])  # fmt: skip
def test_padded_vocab(vocab: int, multiple: int, tp: int, rows: int) -> None:
    assert parallel.padded_vocab(vocab, multiple, tp) == rows


def test_sharded_bytes() -> None:
    assert parallel.sharded_bytes(1000, 12, 8) == 1500
    assert parallel.sharded_bytes(1001, 12, 8) == 1502  # 1,501.5


def test_expert_positions() -> None:
    assert parallel.expert_positions(4096, 1, 1, 1, 1) == 4096
    assert parallel.expert_positions(4096, 1, 1, 1, 8) == 512  # each tp rank sends its own eighth
    assert parallel.expert_positions(4096, 8, 1, 1, 8) == 4096  # and they meet again where experts are cut
    assert parallel.expert_positions(4096, 1, 1.5, 2, 1) == 3072


# m, p: in flight on each stage
IN_FLIGHT = [
    (8, 4, [4, 3, 2, 1]),
    (2, 4, [2, 2, 2, 1]),
    (1, 1, [1]),
]


@pytest.mark.parametrize(("batches", "pp", "held"), IN_FLIGHT)
def test_1f1b(batches: int, pp: int, held: list[int]) -> None:
    assert [parallel.in_flight_1f1b(batches, pp, stage) for stage in range(pp)] == held


def test_zero_bubble() -> None:
    assert parallel.in_flight_zero_bubble(8, 4) == 4
    assert parallel.in_flight_zero_bubble(3, 4) == 3


# p, v, stage: chunks in flight. Stage 0 of 4 with 2 chunks warms up with 2·3 + 4 = 10, and runs one more: 4 + 4 of
# the first round, 3 of the second; the last stage with 0 + 4, and one more
INTERLEAVED = [(4, 2, 0, [7, 4]), (4, 2, 3, [4, 1]), (2, 2, 0, [3, 2]), (2, 3, 1, [2, 2, 1])]


@pytest.mark.parametrize(("pp", "vpp", "stage", "held"), INTERLEAVED)
def test_interleaved(pp: int, vpp: int, stage: int, held: list[int]) -> None:
    assert [parallel.in_flight_interleaved(64, pp, stage, vpp, chunk) for chunk in range(vpp)] == held


def test_interleaved_holds_no_more_than_there_are() -> None:
    assert [parallel.in_flight_interleaved(4, 4, 0, 2, chunk) for chunk in range(2)] == [4, 4]


@given(batches=st.integers(1, 64), pp=st.integers(1, 16), vpp=st.integers(1, 4), data=st.data())
def test_interleaving_chunks_sum_to_the_warm_up_and_one(batches: int, pp: int, vpp: int, data: st.DataObject) -> None:
    stage = data.draw(st.integers(0, pp - 1))
    held = [parallel.in_flight_interleaved(batches, pp, stage, vpp, chunk) for chunk in range(vpp)]
    assert sum(held) == min(batches * vpp, 2 * (pp - stage - 1) + (vpp - 1) * pp + 1)
    assert all(first >= second for first, second in pairwise(held))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_larger_and_smaller(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    assert (parallel.larger(first, second) == np.maximum(first, second)).all()
    assert (parallel.smaller(first, second) == np.minimum(first, second)).all()
    assert [parallel.larger(a, b) for a, b in pairs] == [max(pair) for pair in pairs]
    assert [parallel.smaller(a, b) for a, b in pairs] == [min(pair) for pair in pairs]
