"""The grid against the same rules written out one layout at a time, its counts, and what pins leave of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from suanli.errors import InputError
from suanli.nouns.layout import SCHEDULES, Layout
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.enumerate import FEWEST, enumerate_grid, policies
from suanli.plan.limits import AXES, Cuts, Space, cuts_of, divisors, node_shards, possible
from suanli.plan.pieces import parts_of
from suanli.readers.model import read_model

np = pytest.importorskip("numpy")

DENSE = Cuts(layers=6, heads=(("heads", 8), ("columns", 96)), groups=(2,))
MIXTURE = Cuts(layers=4, heads=(("heads", 4),), groups=(4,), experts=(8,), expert_widths=(6,))

SPACES = {
    "dense, 12 GPUs": Space(cuts=DENSE, gpus=(12,), global_batch=24, seq=48, per_node=4),
    "dense, two sizes": Space(cuts=DENSE, gpus=(4, 6), global_batch=6, seq=64, per_node=8),
    "mixture, 8 GPUs": Space(cuts=MIXTURE, gpus=(8,), global_batch=8, seq=64, per_node=8),
    "one GPU": Space(cuts=DENSE, gpus=(1,), global_batch=6, seq=7, per_node=8),
}


def allowed(space: Space, layout: Layout) -> bool:
    """The rules of a layout in plain words, without arrays."""
    cuts, count = space.cuts, space.global_batch // (layout.dp * layout.micro_batch)
    broken = (
        layout.gpus not in space.gpus,
        space.global_batch % (layout.dp * layout.micro_batch),
        any(number % layout.tp for _, number in cuts.heads),
        max(layout.tp, layout.etp) > space.per_node,
        any(each % layout.tp and layout.tp % each for each in cuts.groups),
        layout.cp > 1 and space.seq % (2 * layout.cp),
        layout.ep * layout.etp > 1 and not cuts.experts,
        any(number % layout.ep for number in cuts.experts),
        any(width % layout.etp for width in cuts.expert_widths),
        layout.pp * layout.vpp > cuts.layers and not (layout.vpp > 1 and layout.pp * layout.vpp == cuts.layers + 2),
        layout.zero and layout.dp * layout.cp == 1,
        layout.pp == 1 and layout.schedule != "1f1b",
    )
    if any(broken):
        return False
    return {
        "1f1b": True,
        "interleaved": count % layout.pp == 0,
        "zero-bubble": count >= layout.pp,
        "dualpipe": layout.pp % 2 == 0 and count % 2 == 0 and count >= 2 * layout.pp,
    }[layout.schedule]


def shares(space: Space, replicas: int, tp: int) -> tuple[int | None, ...]:
    """Ranks that may share states where the search chooses: all, or as many as fill a node beside tp."""
    node, rest = divmod(space.per_node, tp)
    return (None, node) if not rest and 1 < node < replicas and replicas % node == 0 else (None,)


def brute_force(space: Space, **pins) -> set[tuple[Layout, bool]]:
    """Every combination of divisors tried by itself; and with full recompute whether of some layers only, were there
    at least two in the largest chunk.
    """
    degrees = sorted({each for gpus in space.gpus for each in divisors(gpus)})
    experts = degrees if space.cuts.experts else [1]
    found = set()
    for gpus, tp, pp, cp in product(space.gpus, degrees, degrees, degrees):
        if gpus % (tp * pp * cp):
            continue
        axes = {
            "ep": experts, "etp": experts, "vpp": range(1, space.cuts.layers + 1),
            "micro_batch": divisors(space.global_batch), "zero": range(4), "recompute": RECOMPUTE, "sp": (False, True),
            "schedule": SCHEDULES,
        }  # fmt: skip
        axes["shards"] = shares(space, gpus // (tp * pp), tp)
        for ep, etp, vpp, micro_batch, zero, recompute, sp, schedule, shards in product(
            *(pins.get(name, values) for name, values in axes.items())
        ):
            try:
                layout = Layout(
                    tp=tp, pp=pp, dp=gpus // (tp * pp * cp), cp=cp, ep=ep, etp=etp, vpp=vpp, micro_batch=micro_batch,
                    zero=zero, recompute=recompute, sp=sp, schedule=schedule, shards=shards if zero else None,
                )  # fmt: skip
            except InputError:
                continue
            if allowed(space, layout) and all(getattr(layout, name) in values for name, values in pins.items()):
                found.add((layout, False))
                if recompute == "full" and "recompute" not in pins and pp * vpp < space.cuts.layers:
                    found.add((layout, True))
    return found


def everything(found) -> list[tuple[Layout, bool]]:
    """Layouts, and whether memory has yet to tell how few layers are recomputed."""
    grid, _ = found.expand(np.arange(len(found.rows)))
    some = grid.recompute_layers < 0
    grid = replace(grid, recompute_layers=np.where(some, 0, grid.recompute_layers))
    return [(grid.at(place), bool(some[place])) for place in range(len(grid))]


@pytest.mark.parametrize("name", ["dense, two sizes", "one GPU"])
def test_all_legal_layouts_and_no_others(name):
    layouts = everything(enumerate_grid(SPACES[name], {}))
    assert len(layouts) == len(set(layouts))
    assert set(layouts) == brute_force(SPACES[name])


PINS = [
    ("dense, 12 GPUs", {"tp": (1, 2), "zero": (0, 3), "recompute": ("none",), "pp": (1, 2, 3)}),
    ("dense, 12 GPUs", {"schedule": ("interleaved",), "vpp": (2, 3), "micro_batch": (1, 2), "zero": (1,)}),
    ("dense, 12 GPUs", {"dp": (2,), "sp": (True,), "recompute": ("full",), "schedule": ("dualpipe", "1f1b")}),
    ("mixture, 8 GPUs", {"zero": (1,), "recompute": ("none",), "sp": (False,), "micro_batch": (1,)}),
    ("mixture, 8 GPUs", {"ep": (2, 8), "etp": (1, 2), "zero": (0,), "recompute": ("full",), "vpp": (1,)}),
    ("mixture, 8 GPUs", {"vpp": (2,), "schedule": ("1f1b", "interleaved"), "zero": (2,), "ep": (4,), "cp": (1,)}),
]


@pytest.mark.parametrize(("name", "pins"), PINS, ids=range(len(PINS)))
def test_pins_leave_what_agrees_with_them(name, pins):
    layouts = everything(enumerate_grid(SPACES[name], pins))
    expected = brute_force(SPACES[name], **pins)
    assert expected
    assert set(layouts) == expected
    assert len(layouts) == len(expected)


@pytest.mark.parametrize("name", SPACES)
def test_every_combination_is_counted_once(name):
    space = SPACES[name]
    found = enumerate_grid(space, {})
    grid, place = found.expand(np.arange(len(found.rows)))
    whole = len(space.gpus)
    for axis in AXES:
        searched = {"dp": 1, "offload": 1, "shards": len(node_shards(space))}
        whole *= searched.get(axis) or len(possible(space, axis))
    assert found.enumerated == whole == found.legal + sum(found.by_rule.values())
    assert found.legal == len(grid)
    assert np.bincount(place, minlength=len(found.rows)).tolist() == found.tails.tolist()


def test_states_that_do_not_fit_are_counted_as_such():
    space = SPACES["dense, 12 GPUs"]
    every = enumerate_grid(space, {})
    found = enumerate_grid(space, {}, lambda rows: rows.pp * rows.tp >= 4)
    assert found.by_rule["states alone do not fit"] > 0
    assert found.enumerated == every.enumerated == found.legal + sum(found.by_rule.values())
    assert set(everything(found)) == {each for each in everything(every) if each[0].pp * each[0].tp >= 4}


# --- what a stack can run -----------------------------------------------------------------------------------------


def of(space: Space, **pins) -> set[Layout]:
    return {layout for layout, _ in everything(enumerate_grid(space, pins))}


def test_zero_beside_a_pipeline_is_what_the_stack_runs():
    space = replace(SPACES["dense, 12 GPUs"], pipeline_zero=(0, 1))
    found = of(space)
    assert {layout.zero for layout in found if layout.pp > 1} == {0, 1}
    assert {layout.zero for layout in found if layout.pp == 1} == {0, 1, 2, 3}
    assert of(replace(space, pipeline_zero=())) == {layout for layout in found if layout.pp == 1}


def test_states_are_shared_in_a_node_by_stages_that_can():
    space = Space(cuts=DENSE, gpus=(16,), global_batch=16, seq=48, per_node=4, hybrid=(3,))
    groups = {(layout.tp, layout.zero, layout.shards) for layout in of(space, pp=(1,), cp=(1,)) if layout.shards}
    assert groups == {(1, 3, 4), (2, 3, 2)}  # tp 4 fills the node by itself


def test_pinned_groups_may_be_of_any_size_and_of_several_nodes():
    space = Space(cuts=DENSE, gpus=(16,), global_batch=16, seq=48, per_node=4)
    found = of(space, pp=(1,), cp=(1,), tp=(1,), zero=(1, 3), shards=(0, 2, 8, 16))
    assert {layout.shards for layout in found} == {None, 2, 8}  # 16 are all replicas


def test_nothing_is_offloaded_unless_pinned():
    assert not any(layout.offload for layout in of(SPACES["one GPU"]))
    assert all(layout.offload for layout in of(SPACES["one GPU"], offload=(True,)))


def test_pinned_layers_are_fewer_than_the_largest_chunk_has():
    """6 layers: two of them on up to 2 stages of 3, none where a chunk has 2 or 1."""
    found = of(SPACES["dense, 12 GPUs"], recompute_layers=(2,), cp=(1,), zero=(0,))
    assert {(layout.recompute, layout.recompute_layers) for layout in found} == {("full", 2)}
    assert {layout.pp * layout.vpp for layout in found} == {1, 2}


POLICIES = [
    (("none", "full"), (), ((0, 0), (2, 0))),
    (("block",), (), ((0, 0), (2, FEWEST), (2, 0))),  # nothing may have to be made again, or everything
    (("none", "selective", "block", "full"), (), ((0, 0), (1, 0), (2, FEWEST), (2, 0))),
    (("full",), (1, 3), ((2, 1), (2, 3))),
    (("none", "block"), (2,), ((0, 0), (2, 2))),
]


@pytest.mark.parametrize(("names", "layers", "expected"), POLICIES)
def test_recompute_policies_as_pairs(names, layers, expected):
    assert set(policies(names, layers)) == set(expected)


def test_uneven_stages_and_large_mixtures_are_in_the_grid():
    """126 layers on 16 stages, 61 on 16, 64 expert ranks: ordinary layouts that other tools cannot express."""
    llama = Space(cuts=cuts_of(parts_of(read_model("llama-3.1-405b"))), gpus=(16384,), global_batch=2048, seq=8192,
                  per_node=8)  # fmt: skip
    deepseek = Space(cuts=cuts_of(parts_of(read_model("deepseek-v3"))), gpus=(2048,), global_batch=15360, seq=4096,
                     per_node=8)  # fmt: skip
    for space, pins in (
        (llama, {"tp": (8,), "pp": (16,), "cp": (1,), "zero": (2,), "micro_batch": (1,)}),
        (deepseek, {"tp": (1,), "pp": (16,), "ep": (64,), "zero": (1,), "schedule": ("dualpipe",), "cp": (1,)}),
    ):
        assert enumerate_grid(space, pins).legal > 0


def test_cuts_are_those_of_the_published_shapes():
    llama = cuts_of(parts_of(read_model("llama-3.1-405b")))
    assert (llama.layers, llama.groups, llama.experts) == (126, (8,), ())
    assert ("heads", 128) in llama.heads
    assert ("columns", 53248) in llama.heads
    deepseek = cuts_of(parts_of(read_model("deepseek-v3")))
    assert (deepseek.layers, deepseek.experts, deepseek.expert_widths) == (61, (256,), (2048,))


def test_key_value_heads_are_cut_or_copied():
    """8 key/value heads: tp 4 cuts them, tp 16 copies them twice; tp 3 could do neither, nor cut 128 heads."""
    cuts = Cuts(layers=2, heads=(("heads", 48),), groups=(8,))
    space = Space(cuts=cuts, gpus=(48,), global_batch=1, seq=8, per_node=48)
    assert possible(space, "tp") == (1, 2, 4, 8, 16, 24, 48)
