"""Seconds of collectives: values by hand and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import collectives

DEPTHS = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)]


@pytest.mark.parametrize(("nodes", "expected"), DEPTHS)
def test_depth_of_a_tree(nodes: int, expected: int) -> None:
    assert collectives.tree_depth(nodes) == expected
    assert collectives.tree_depth(np.array([nodes]))[0] == expected


# ranks, ranks in one node, nodes
NODES = [(8, 8, 1), (16, 8, 2), (17, 8, 3), (4, 1, 4), (2, 8, 1), (1, 1, 1)]


@pytest.mark.parametrize(("ranks", "local", "expected"), NODES)
def test_nodes_of_a_group(ranks: int, local: int, expected: int) -> None:
    assert collectives.nodes_of_group(ranks, local) == expected


def test_wire_bytes_by_hand() -> None:
    assert collectives.wire_bytes(800, 8, 1) == 700  # seven of eight parts
    assert collectives.wire_bytes(800, 8, 2) == 1400  # reduced, then gathered
    assert collectives.wire_bytes(800, 1, 2) == 0


def test_a_link_transfer_by_hand() -> None:
    """1,000 bytes at half of 100 B/s: 20 s; 1/(n−1) of 0.5 more for 2 ranks; ramp √(250·1000) = 500 bytes more."""
    assert collectives.link_transfer_s(1000, 9, 100, 0.5, 0.0, 0.0, 0.5) == 20
    assert collectives.link_transfer_s(1000, 2, 100, 0.5, 0.5, 0.0, 0.5) == 30
    assert collectives.link_transfer_s(1000, 9, 100, 0.5, 0.0, 250.0, 0.5) == 30
    assert collectives.link_transfer_s(0, 1, 100, 0.5, 0.5, 250.0, 0.5) == 0


# bytes, ranks, seconds at a step of 3: from 2 MiB a rank on, and no more than 7 steps
LARGE = [(2**24 - 1, 8, 0), (2**24, 8, 21), (2**22, 2, 3), (2**30, 72, 21), (2**30, 1, 0)]


@pytest.mark.parametrize(("size", "ranks", "expected"), LARGE)
def test_the_protocol_for_large_messages(size: int, ranks: int, expected: float) -> None:
    assert collectives.large_message_s(size, ranks, 3) == expected
    assert collectives.large_message_s(np.array([size]), np.array([ranks]), 3)[0] == expected


def test_a_ring_by_hand() -> None:
    """32 ranks on 4 nodes, twice around: 1 + 2·28 inside, 2·3 steps of 10 between; the slower of 5 and 7 s."""
    assert collectives.ring_s(32, 4, 2, 1, 2, 10, 5, 7) == 1 + 56 + 60 + 7


def test_a_tree_by_hand() -> None:
    """8 ranks a node on 4 nodes: 1 + 2·7, two levels up and down of 10; 2·900 bytes at 0.9·100 B/s."""
    assert collectives.tree_all_reduce_s(900, 8, 4, 1, 2, 10, 5, 100) == pytest.approx(1 + 14 + 40 + 20)


def test_all_to_all_by_hand() -> None:
    """16 ranks, 8 a node, 1,600 bytes each: 800 leave the node, at 400/8 B/s a rank; 1 + 15·2 + 10 of latency."""
    assert collectives.all_to_all_across_s(1600, 16, 8, 1, 2, 10, 5, 400) == 1 + 30 + 10 + 16


@given(st.floats(1, 1e12), st.floats(1, 1e12), st.integers(2, 64), st.floats(0.1, 0.98))
def test_more_bytes_are_never_faster(size: float, more: float, ranks: int, exponent: float) -> None:
    rest = (ranks, 3e11, 0.7, 0.3, 1e6, exponent)
    assert collectives.link_transfer_s(size + more, *rest) >= collectives.link_transfer_s(size, *rest)


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_a_tree_is_never_shallower_with_more_nodes(nodes: int, more: int) -> None:
    assert collectives.tree_depth(nodes + more) >= collectives.tree_depth(nodes)
