"""Stages of a pipeline: who holds what, which is the slowest, and how long the others make it wait."""

from __future__ import annotations

import numpy as np
import pytest

from suanli.errors import InputError
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.plan.columns import COLUMNS, MATMUL, PASSES
from suanli.plan.pieces import parts_of
from suanli.plan.stage_time import bubble_share, rank_counts, stages
from suanli.readers.paper import read_paper_decoder

SMALL = {"hidden": 256, "heads": 4, "ffn": 1024, "vocab": 1000}


def parts(layers: int) -> object:
    return parts_of(read_paper_decoder(SMALL | {"num_layers": layers}, "small"))


def ranks(layers: int, pp: int, vpp: int, again: int = 0, place: int = 0) -> dict[tuple[int, ...], int]:
    """What ranks hold (place 0) or make again (place 1), and how many ranks do."""
    found = rank_counts(parts(layers), pp, vpp, again)  # type: ignore[arg-type]
    total: dict[tuple[int, ...], int] = {}
    for kind, copies in zip(found[place].astype(int).tolist(), found[2].astype(int).tolist(), strict=True):
        total[tuple(kind)] = total.get(tuple(kind), 0) + copies
    return total


# layers, pp, vpp: (blocks, first, last) of a rank and how many ranks hold that
HELD = [
    (126, 16, 1, {(7, 1, 0): 1, (8, 0, 0): 14, (7, 0, 1): 1}),  # Llama-3.1-405B on 16: 7, 8 × 14, 7
    (8, 4, 2, {(2, 1, 0): 1, (2, 0, 0): 2, (2, 0, 1): 1}),
    (61, 16, 1, {(3, 1, 0): 1, (4, 0, 0): 13, (3, 0, 0): 1, (3, 0, 1): 1}),  # 13 · 4 + 3 · 3 = 61
    (4, 1, 1, {(4, 1, 1): 1}),
]


@pytest.mark.parametrize(("layers", "pp", "vpp", "expected"), HELD)
def test_what_ranks_hold(layers: int, pp: int, vpp: int, expected: dict[tuple[int, ...], int]) -> None:
    assert ranks(layers, pp, vpp) == expected


def test_embedding_and_head_may_be_chunks_of_their_own() -> None:
    # 126 layers on 16 · 8 = 128 chunks: the first and the last hold none, so that every rank has 8 but these two
    assert ranks(126, 16, 8) == {(7, 1, 0): 1, (8, 0, 0): 14, (7, 0, 1): 1}
    for layers, degrees in ((125, (16, 8)), (3, (4, 1))):
        with pytest.raises(InputError, match="a pipeline stage would be empty in --pp; got "):
            rank_counts(parts(layers), *degrees)  # type: ignore[arg-type]


# layers, pp, vpp, of every chunk made again: blocks of a rank made again and how many ranks do that
AGAIN = [
    (126, 16, 1, 0, {(7, 0, 0): 2, (8, 0, 0): 14}),  # 0: all
    (126, 16, 1, 3, {(3, 0, 0): 16}),
    (126, 16, 1, 8, {(7, 0, 0): 2, (8, 0, 0): 14}),  # the ends have 7
    (8, 4, 2, 1, {(2, 0, 0): 4}),  # two chunks of one layer
    (61, 16, 1, 4, {(3, 0, 0): 3, (4, 0, 0): 13}),
]


@pytest.mark.parametrize(("layers", "pp", "vpp", "again", "expected"), AGAIN)
def test_what_ranks_make_again(
    layers: int, pp: int, vpp: int, again: int, expected: dict[tuple[int, ...], int]
) -> None:
    assert ranks(layers, pp, vpp, again, place=1) == expected


def seconds(value: float, length: int) -> np.ndarray:
    found = np.zeros((len(PASSES), len(COLUMNS), length))
    found[:2, MATMUL] = value  # forward and backward
    return found


def test_the_slowest_and_the_others() -> None:
    # 5 layers on 2 stages: 3 with the embedding, 2 with the head; a layer takes 1 s a pass, a head 4 s
    grid = Grid.of([Layout(pp=2)])
    dense = [
        (np.array([10.0]), np.array([0.0])),
        (np.array([7.0]), np.array([0.0])),
        (np.array([50.0]), np.array([3.0])),
    ]
    found = stages(parts(5), grid, [seconds(1, 1), seconds(0, 1), seconds(4, 1)], dense)  # type: ignore[arg-type]
    assert found.slowest[0, MATMUL, 0] == 6  # 2 · 1 + 4: the last
    assert found.others[0, MATMUL, 0] == 3
    assert (found.dense[0], found.expert[0]) == (70, 3)  # 2 · 10 + 50 on the last


def test_bubbles_by_schedule() -> None:
    layouts = [
        Layout(pp=4), Layout(pp=4, vpp=2, schedule="interleaved"), Layout(pp=4, schedule="zero-bubble"),
        Layout(pp=4, schedule="dualpipe"),
    ]  # fmt: skip
    assert list(bubble_share(Grid.of(layouts))) == pytest.approx([1, 1, 1 / 3, 2 / 9])  # chunks are divided by later


def test_what_ranks_hold_is_worked_out_once_and_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(read_paper_decoder(SMALL | {"num_layers": 8}, "kept"))
    first = rank_counts(parts, 4, 1)
    assert rank_counts(parts, 4, 1) is first
    assert rank_counts(parts, 4, 1, 1) is not first
    monkeypatch.setattr("suanli.plan.stage_time._MOST", 2)
    assert rank_counts(parts, 2, 1)[2].tolist() == [1, 1]
    assert list(parts.ranks) == [(2, 1, 0)]
