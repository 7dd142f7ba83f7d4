"""Units of axes: the largest that the values fill, and the division that the specification does."""

from __future__ import annotations

import pytest

from suanli.report.figures import scales
from suanli.units import GIBI, TERA, units_as


@pytest.mark.parametrize(("make", "values", "name", "factor"), [
    (scales.seconds, [0.5, 0.002], "ms", 1e-3),
    (scales.seconds, [90.0], "s", 1),
    (scales.seconds, [130.0], "min", 60),
    (scales.seconds, [3 * 86400.0], "days", 86400),
    (scales.seconds, [3e-7], "ns", 1e-9),
    (scales.seconds, [], "ns", 1e-9),
    (scales.sizes, [80e9], "GiB", 2**30),
    (scales.sizes, [None, 100], "B", 1),
    (scales.rates, [989e12], "TFLOP/s", 10**12),
    (scales.operations, [3.8e25], "YFLOPs", 10**24),
    (scales.counts, [405e9], "B", 10**9),
    (scales.counts, [12], "", 1),
])  # fmt: skip
def test_the_unit_that_fits(make, values, name: str, factor: float) -> None:
    assert make(values) == scales.Unit(name, factor)


def test_titles_and_transforms() -> None:
    assert scales.Unit("GiB", GIBI).of("memory") == "memory [GiB]"
    assert scales.Unit("", 1).of("GPUs") == "GPUs"
    assert scales.Unit("TFLOP/s", TERA).shown("rate", "y") == {"calculate": "datum.rate / 1000000000000", "as": "y"}
    assert scales.PERCENT.shown("mfu", "shown")["calculate"] == "datum.mfu / 0.01"


@pytest.mark.parametrize(("system", "name", "factor"), [("iec", "GiB", 2**30), ("si", "GB", 10**9)])
def test_sizes_follow_the_switch(system: str, name: str, factor: int) -> None:
    with units_as(system):
        assert scales.sizes([80e9]) == scales.Unit(name, factor)
