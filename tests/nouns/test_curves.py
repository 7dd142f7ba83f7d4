"""The records of device curves explain themselves and cannot be changed."""

from __future__ import annotations

import dataclasses

import pytest

from suanli.nouns import curves

RECORDS = [
    curves.Fit,
    curves.MatmulCurve,
    curves.ExpertsCurve,
    curves.AttentionCurve,
    curves.MemoryCurve,
    curves.CollectiveCurve,
    curves.Fabric,
]


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_says_what_it_is(record: type) -> None:
    for part in dataclasses.fields(record):
        assert part.metadata["doc"], part.name
        if part.name.endswith("_s"):
            assert part.metadata["unit"] in ("s", "FLOP/s", "B/s"), part.name


def test_a_fabric_is_frozen_and_compares_by_value() -> None:
    def made() -> curves.Fabric:
        return curves.Fabric(
            name="f",
            gpus_per_node=8,
            link_bytes_per_s=1.0,
            nics_bytes_per_s=None,
            nic_efficiency=1.0,
            ring_step_s=0.0,
            tree_step_s=0.0,
        )

    assert made() == made()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made().name = "g"  # type: ignore[misc]
