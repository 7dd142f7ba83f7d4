"""What the last wave of blocks loses."""

from __future__ import annotations

import pytest

from suanli.explain.waves import blocks_of, lost_fraction
from suanli.nouns.trace import OpDetail


@pytest.mark.parametrize(
    ("blocks", "processors", "expected"),
    [
        (132, 132, 0.0),
        (133, 132, 1 - 133 / 264),  # two waves, the second with one block
        (66, 132, 0.5),
        (264, 132, 0.0),
        (1, 108, 1 - 1 / 108),
        (10**400, 10**400 - 1, 1 - 0.5),
    ],
)
def test_lost_fraction(blocks: int, processors: int, expected: float) -> None:
    assert lost_fraction(blocks, processors) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [({"grid": (8, 4, 2)}, 64), ({"grid": [3, 1, 1]}, 3), ({"grid": ()}, None), ({"grid": "8,4"}, None), (None, None),
     ({"grid": (0, 1, 1)}, None), ({"grid": (-1, 1, 1)}, None), ({"grid": (-4, -4, 1)}, None)],
)  # fmt: skip
def test_blocks(kernel: dict[str, object] | None, expected: int | None) -> None:
    assert blocks_of(OpDetail(kernel=kernel)) == expected
