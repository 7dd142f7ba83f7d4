"""Work finds its launch and its op by number, also where numbers come twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.trace import HostKind
from suanli.readers.traces.kineto_links import linked

ROWS = st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 30)), min_size=0, max_size=12)


def tables(work: list[tuple[int, int]], host: list[tuple[int, int]], kind: HostKind, key: str) -> tuple[dict, dict]:  # type: ignore[type-arg]
    ours = {"start_ns": np.array([at for _, at in work], dtype=np.int64)}
    theirs = {"start_ns": np.array([at for _, at in host], dtype=np.int64), "kind": np.full(len(host), int(kind))}
    for column in ("correlation", "external"):
        ours[column] = np.array([number if column == key else -1 for number, _ in work], dtype=np.int64)
        theirs[column] = np.array([number if column == key else -1 for number, _ in host], dtype=np.int64)
    return ours, theirs


@given(ROWS, ROWS)
def test_the_last_launch_before_the_work_else_the_first(
    work: list[tuple[int, int]], host: list[tuple[int, int]]
) -> None:
    ours, theirs = tables(work, host, HostKind.RUNTIME, "correlation")
    linked(ours, theirs)
    for row, (number, start) in zip(ours["launch"].tolist(), work, strict=True):
        same = sorted(at for other, at in host if other == number and number >= 0)
        before = [at for at in same if at <= start]
        assert (row == -1) == (not same)
        if same:
            assert host[row] == (number, before[-1] if before else same[0])
    assert set(ours) == {"start_ns", "correlation", "launch", "op"}
    assert (ours["op"] == -1).all()


@given(ROWS, ROWS)
def test_ops_are_found_by_external_id_alone(work: list[tuple[int, int]], host: list[tuple[int, int]]) -> None:
    ours, theirs = tables(work, host, HostKind.OP, "external")
    linked(ours, theirs)
    ids = {number for number, _ in host if number >= 0}
    assert [row >= 0 for row in ours["op"].tolist()] == [number in ids for number, _ in work]
    assert (ours["launch"] == -1).all()


def test_kinds_are_not_mixed_up() -> None:
    """A correlation of an op is none of a launch."""
    ours, theirs = tables([(1, 5)], [(1, 1)], HostKind.OP, "correlation")
    linked(ours, theirs)
    assert ours["launch"].tolist() == [-1]
