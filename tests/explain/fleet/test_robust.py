"""Medians by group, and from where a figure stands out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.fleet.robust import lower_medians, spread


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1), st.integers(-(10**17), 10**17))
def test_medians_are_members_and_shift_exactly(rows: list[tuple[int, int]], by: int) -> None:
    keys = sorted({key for key, _ in rows})
    group = np.array([keys.index(key) for key, _ in rows])
    values = np.array([value for _, value in rows], dtype=np.int64)
    found = lower_medians(group, values, len(keys))
    for place, key in enumerate(keys):
        own = sorted(value for other, value in rows if other == key)
        assert found[place] == own[(len(own) - 1) // 2]
    assert (lower_medians(group, values + by, len(keys)) == found + by).all()


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        ([10.0, 10.0, 10.0], 10.5),  # no spread at all: 5 % above the median
        ([10.0, 10.1, 9.9, 10.0], 10.5),  # median 10, MAD 0.05: 5 × 1.4826 × 0.05 = 0.37, less than 5 %
        ([8.0, 10.0, 12.0], 10 + 5 * 1.4826 * 2),  # median 10, MAD 2
    ],
)
def test_thresholds(values: list[float], threshold: float) -> None:
    found = spread(np.array(values))
    assert found is not None and found.threshold == pytest.approx(threshold)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [0.0, 0.0, 0.0]])
def test_too_few_to_tell(values: list[float]) -> None:
    assert spread(np.array(values)) is None
