"""The answer of a memory estimate: totals, the fullest stage, JSON."""

from __future__ import annotations

import json
from dataclasses import fields

from suanli.nouns.estimate import TERMS, MemoryEstimate, StageMemory


def stage(number: int, activations: int) -> StageMemory:
    return StageMemory(
        stage=number, layers=2, params=100, weights=10, gradients=20, optimizer=30, offloaded=5,
        activations=activations, logits=1, working=2, buffers=3, reserve=4, context=6, moment="loss",
    )  # fmt: skip


ESTIMATE = MemoryEstimate(layout="pp2", stack="nemo", stages=(stage(0, 25), stage(1, 40)), capacity=120)


def test_totals() -> None:
    first = ESTIMATE.stages[0]
    assert first.states == 10 + 20 + 30
    assert first.allocated == 60 + 25 + 1 + 2 + 3
    assert first.reserved == 91 + 4 and first.overhead == 4 + 6
    assert first.total == 101 and first.largest == "optimizer"


def test_the_fullest_stage_decides() -> None:
    assert ESTIMATE.fullest.stage == 1 and ESTIMATE.total == 116
    assert (ESTIMATE.margin, ESTIMATE.fits, ESTIMATE.largest) == (4, True, "activations")


def test_json() -> None:
    found = json.loads(json.dumps(ESTIMATE.to_dict()))
    assert (found["total"], found["fits"], found["margin"]) == (116, True, 4)
    for row in found["stages"]:
        assert row["total"] == sum(row[term] for term in TERMS)
        assert row["margin"] == 120 - row["total"]
    bare = MemoryEstimate(layout="", stack="", stages=(stage(0, 1),), reasons={"fits": "no device"}).to_dict()
    assert bare["fits"] is None and bare["reasons"] == {"fits": "no device"} and "margin" not in bare["stages"][0]


def test_every_field_is_explained() -> None:
    for noun in (StageMemory, MemoryEstimate):
        assert all(field.metadata["doc"] for field in fields(noun))
