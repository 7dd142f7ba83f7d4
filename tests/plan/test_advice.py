"""Levers: each is one change, legal by the grid's rules, priced, and listed best first."""

from __future__ import annotations

import pytest

from suanli.nouns.layout import Layout
from suanli.plan.advice import advise, changes, is_legal
from suanli.plan.limits import Cuts, Space

pytest.importorskip("numpy")

SPACE = Space(
    cuts=Cuts(layers=16, heads=(("heads", 16),), groups=(16,)), gpus=(16,), global_batch=32, seq=64, per_node=8
)
MIXTURE = Space(cuts=Cuts(layers=16, heads=(("heads", 16),), groups=(16,), experts=(8,), expert_widths=(64,)),
                gpus=(16,), global_batch=32, seq=64, per_node=8)  # fmt: skip
NOW = Layout(tp=4, pp=2, dp=2, micro_batch=2, zero=1, recompute="full", sp=True)


def proposed(space: Space, layout: Layout) -> dict[tuple[str, str], Layout]:
    return {(lever, change): found for lever, change, found in changes(space, layout)}


def test_levers_of_a_layout():
    found = proposed(SPACE, NOW)
    assert found["less recompute", "recompute full → none"].recompute == "none"
    assert found["less recompute", "recompute full → selective"].recompute == "selective"
    assert found["interleave", "vpp 1 → 8, schedule 1f1b → interleaved"].vpp == 8
    assert found["schedule", "schedule 1f1b → zero-bubble"].schedule == "zero-bubble"
    assert found["sequence parallelism", "sp yes → no"].sp is False
    assert found["larger micro-batch", "micro_batch 2 → 4"].micro_batch == 4
    assert found["smaller micro-batch", "micro_batch 2 → 1"].micro_batch == 1
    assert found["ZeRO stage", "zero 1 → 3"].zero == 3
    assert found["context for tensor parallelism", "tp 4 → 2, cp 1 → 2"].cp == 2
    assert found["data for pipeline parallelism", "pp 2 → 1, dp 2 → 4"].pp == 1
    assert found["tensor for pipeline parallelism", "pp 2 → 1, tp 4 → 8"].tp == 8


def test_every_lever_is_legal_and_another_layout():
    for layout in proposed(SPACE, NOW).values():
        assert layout != NOW
        assert layout.gpus == NOW.gpus
        assert is_legal(SPACE, layout)


def test_sharding_needs_replicas_so_the_last_one_is_no_lever():
    """dp 2 → 1 leaves nothing to shard over: ZeRO 1 forbids it, ZeRO 0 does not."""
    assert ("pipeline for data parallelism", "pp 2 → 4, dp 2 → 1") not in proposed(SPACE, NOW)
    plain = Layout(tp=4, pp=2, dp=2, micro_batch=2, sp=True)
    assert ("pipeline for data parallelism", "pp 2 → 4, dp 2 → 1") in proposed(SPACE, plain)


def test_experts_are_a_lever_of_mixtures_only():
    layout = Layout(tp=2, pp=2, dp=4, ep=2)
    assert {lever for lever, _ in proposed(MIXTURE, layout)} >= {"expert parallelism"}
    assert "expert parallelism" not in {lever for lever, _ in proposed(SPACE, Layout(tp=2, pp=2, dp=4))}


def test_sequence_parallelism_goes_with_the_last_tensor_rank():
    layout = Layout(tp=2, dp=8, sp=True)
    assert not proposed(SPACE, layout)["data for tensor parallelism", "tp 2 → 1, dp 8 → 16, sp yes → no"].sp


def test_a_pipeline_of_one_has_no_schedule():
    layout = Layout(tp=8, pp=2, vpp=2, schedule="interleaved")
    found = proposed(SPACE, layout)["data for pipeline parallelism",
                                    "pp 2 → 1, dp 1 → 2, vpp 2 → 1, schedule interleaved → 1f1b"]  # fmt: skip
    assert (found.pp, found.vpp, found.schedule) == (1, 1, "1f1b")


def test_best_first_and_what_does_not_fit_last():
    def prices(layouts):
        seconds = {"none": 7.0, "selective": 8.0, "full": 10.0}
        sizes = {"none": 90.0, "selective": 50.0, "full": 20.0}
        return [(seconds[each.recompute] + 0.1 * each.zero, sizes[each.recompute]) for each in layouts]

    levers = advise(NOW, list(changes(SPACE, NOW)), prices, 60.0)
    assert (levers[0].lever, levers[0].change) == ("less recompute", "recompute full → selective")
    assert levers[0].gain_fraction == pytest.approx(2 / 10.1)
    assert levers[0].memory_bytes == 50
    assert (levers[-1].change, levers[-1].fits) == ("recompute full → none", False)
    assert levers[-1].gain_fraction == pytest.approx(3 / 10.1)
    fitting = [each.gain_fraction for each in levers if each.fits]
    assert fitting == sorted(fitting, reverse=True)
    slower = next(each for each in levers if each.change == "zero 1 → 3")
    assert slower.gain_fraction == pytest.approx(-0.2 / 10.1)


def test_what_is_not_in_the_grid_is_not_legal():
    assert is_legal(SPACE, NOW)
    assert not is_legal(SPACE, Layout(tp=4, pp=2, dp=4))  # 32 GPUs
    assert not is_legal(SPACE, Layout(tp=4, pp=2, dp=2, micro_batch=32))  # more than a replica's share
