"""Step times: small cases by hand on a device of round numbers, laws of the account, the direction of every lever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.curves import find_curves
from suanli.catalog.fabrics import fabric, node_fabric
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Profile, Traits
from suanli.plan.predict import step_times
from suanli.plan.step_time import Job, account, data_parallel, features, job_of
from suanli.readers.model import read_model
from suanli.readers.paper import read_paper_decoder

# --- by hand ------------------------------------------------------------------------------------------------------

ONE = 1e12  # FLOP/s and B/s of the device of round numbers


class Round:
    """A device that multiplies 1e12 FLOP/s, moves nothing in no time and sends 1e9 B/s."""

    def matmul_s(self, m: Any, n: Any, k: Any, count: Any = 1, dtype: str = "bf16") -> Any:
        return 2 * m * n * k * count / ONE

    def attention_s(self, batch: Any, heads: Any, *rest: Any) -> Any:
        backward = rest[6]
        return 0 * batch * heads + (2.0 if backward else 1.0)

    def memory_s(self, moved: Any) -> Any:
        return 0.0 * moved

    def collective_s(self, kind: str, size: Any, ranks: Any, fabric: Any, near: Any = None) -> Any:
        return size / 1e9 * (ranks > 1) * {"all_reduce": 2}.get(kind, 1)


PLAIN = Profile(
    matmul=1, attention=1, experts=1, memory=1, launch_s=1e-12, span_s=1e-12, tensor_exposed=1, context_exposed=1,
    expert_exposed=1, send_exposed=1, data_exposed=1, network=1, gather=1, optimizer=1, micro_s=1e-12, fixed_s=1e-12,
)  # fmt: skip
NODE = fabric(name="round", gpus_per_node=8, link_bytes_per_s=1e9, nics_bytes_per_s=1e9)
H, F, V, S, L = 64, 256, 512, 32, 4
SMALL = read_paper_decoder(
    {"num_layers": L, "hidden": H, "heads": 4, "ffn": F, "vocab": V, "gated": False, "tied": False}, "small"
)
BLOCK = S * (4 * H * H + 2 * H * F)  # multiply-adds of one sequence in one layer: q, k, v, o, up, down
HEAD = S * H * V


def by_hand(batch: int, **degrees: Any) -> dict[str, float]:
    traits = Traits(fused_loss=True, gradient_bytes=4)
    job = Job(arch=SMALL, seq=S, dtype="bf16", curves=Round(), fabric=NODE, traits=traits)
    found = account(features(job, Grid.of([Layout(**degrees)]), float(batch)), PLAIN)
    return {entry: float(value[0]) for entry, value in found.items()}


def test_one_gpu() -> None:
    found = by_hand(6, micro_batch=2)
    # three passes' worth of products (forward 1, backward 2), three micro-batches of two sequences
    assert found["matmul"] == pytest.approx(3 * 2 * (L * BLOCK + HEAD) * 6 / ONE)
    assert found["attention"] == pytest.approx(3 * L * (1 + 2))  # a kernel takes 1 s forward, 2 s backward
    assert [found[entry] for entry in ("bubble", "sends", "data parallel", "recompute")] == [0, 0, 0, 0]


def test_tensor_parallel_halves_products_and_adds_two_sums_a_pass() -> None:
    one, two = by_hand(2), by_hand(2, tp=2)
    assert two["matmul"] == pytest.approx(one["matmul"] / 2)
    # per layer and pass two sums of S · H elements of 2 bytes (times 2 for an all-reduce); embedding and head one each
    moved = 2 * 2 * S * H / 1e9
    assert two["tensor parallel"] == pytest.approx(2 * (2 * 2 * L + 2) * moved)


def test_full_recompute_adds_one_forward() -> None:
    found = by_hand(2, recompute="full")
    whole = 2 * (2 * L * BLOCK / ONE + L)  # products and attention of the layers for two sequences, no head
    assert found["recompute"] == pytest.approx(whole)
    half = by_hand(2, recompute="full", recompute_layers=2)
    assert half["recompute"] == pytest.approx(whole / 2)


def test_a_pipeline_waits_for_the_other_stages_once() -> None:
    found = by_hand(8, pp=4)
    layer = 3 * 2 * BLOCK / ONE + 3
    head = 3 * 2 * HEAD / ONE
    assert found["matmul"] + found["attention"] == pytest.approx(8 * (layer + head))  # the last stage is the slowest
    assert found["bubble"] == pytest.approx(3 * layer)
    # 2 bytes an element; 8 micro-batches there and back, and 3 hops of the first one there and of the last one back
    assert found["sends"] == pytest.approx(2 * (8 + 3) * S * H * 2 / 1e9)


def test_data_parallel_by_zero_stage() -> None:
    params = SMALL.params_total
    plain = by_hand(4, dp=2)["data parallel"]
    sharded = by_hand(4, dp=2, zero=1)["data parallel"]
    whole = by_hand(4, dp=2, zero=3)
    assert plain == pytest.approx(2 * 4 * params / 1e9)  # one all-reduce of 4-byte gradients
    assert sharded == pytest.approx((4 + 2) * params / 1e9)  # scatter of gradients, gather of 2-byte weights
    assert whole["data parallel"] == 0
    # two micro-batches: weights gathered twice in each and gradients scattered once, with nothing to hide behind
    assert whole["weight gathers"] == pytest.approx(2 * (2 + 2 + 4) * params / 1e9)


# seconds exchanged once a step and in every micro-batch, of a micro-batch, of its waits for what ZeRO 3 moves and for
# what ZeRO 2 would; micro-batches; the stack's overlap → what is waited for after them, half of it never being hidden
AFTER = [
    ((8.0, 0.0), 10.0, (0.0, 0.0), 2, 1, 4.0),  # ZeRO 1: half of 8
    ((8.0, 0.0), 1.0, (0.0, 0.0), 2, 1, 7.0),  # and of the other half what is longer than a micro-batch
    ((8.0, 0.0), 10.0, (0.0, 0.0), 2, 0, 8.0),
    ((0.0, 8.0), 10.0, (3.0, 0.0), 2, 1, 0.0),  # ZeRO 3 has waited 2 · 3 for what ZeRO 1 would wait 4
    ((0.0, 8.0), 10.0, (3.0, 0.0), 1, 1, 1.0),  # in one micro-batch it has waited 3 of the 4
    ((0.0, 8.0), 10.0, (3.0, 0.0), 1, 0, 5.0),  # and of all 8 where the stack hides nothing
    ((0.0, 8.0), 10.0, (3.0, 2.0), 2, 1, 2.0),  # ZeRO 2 would wait 2 · 2 beside the micro-batches and 4 after them
]


@pytest.mark.parametrize(("moved", "window", "waits", "times", "overlaps", "expected"), AFTER)
def test_zero_3_waits_at_least_as_long_as_zero_1_and_2(
    moved: tuple[float, float], window: float, waits: tuple[float, float], times: int, overlaps: int, expected: float
) -> None:
    half = replace(PLAIN, data_exposed=0.5)
    assert data_parallel(moved, window, waits, times, half, overlaps) == pytest.approx(expected)


def test_experts_are_spread() -> None:
    shape = {"num_layers": 1, "hidden": H, "heads": 4, "ffn": F, "vocab": V, "experts": 8, "experts_per_token": 2,
             "expert_ffn": F, "gated": True}  # fmt: skip
    arch = read_paper_decoder(shape, "mixture")
    job = Job(arch=arch, seq=S, dtype="bf16", curves=Round(), fabric=NODE, traits=Traits())
    grid = Grid.of([Layout(dp=4, ep=ep) for ep in (1, 4)])
    one, four = np.transpose(
        [account(features(job, grid, 4.0), PLAIN)[name] for name in ("experts", "expert parallel")]
    )
    # two experts of three matrices for every position, three passes' worth; the same wherever they stand
    assert one[0] == four[0] == pytest.approx(3 * 2 * S * 2 * 3 * H * F / ONE)
    # sent there and back, forward and backward: twice S positions of H elements of 2 bytes
    assert (one[1], four[1]) == (0, pytest.approx(4 * 2 * S * H * 2 / 1e9))
    skewed = account(features(job, grid, 4.0), replace(PLAIN, imbalance=1.5))
    assert skewed["experts"][1] == pytest.approx(1.5 * four[0])


# --- laws on a real device ----------------------------------------------------------------------------------------

LLAMA = read_model("llama-3.1-8b")
MIXTRAL = read_model("mixtral-8x7b")
H100 = find_curves("h100-sxm")
DGX = node_fabric("hgx-h100")


def job(arch: Any = LLAMA, **more: Any) -> Job:
    return Job(
        **{"arch": arch, "seq": 4096, "dtype": "bf16", "curves": H100, "fabric": DGX, "traits": Traits(), **more}
    )


def step(layout: Layout, batch: int = 256, profile: Profile | None = None, **more: Any) -> float:
    found = features(job(**more), Grid.of([layout]), float(batch))
    return float(step_times(found, profile or Profile())[0])


LAYOUTS = [
    Layout(dp=32), Layout(tp=8, dp=4, sp=True), Layout(tp=2, pp=4, dp=4, vpp=2, schedule="interleaved", zero=1),
    Layout(tp=4, pp=2, dp=4, recompute="full"), Layout(dp=16, cp=2, zero=3), Layout(pp=4, dp=8, schedule="zero-bubble"),
    Layout(tp=2, dp=16, ep=8, zero=1), Layout(pp=4, dp=8, ep=8, schedule="dualpipe", recompute="selective"),
    Layout(dp=32, zero=3, shards=8, micro_batch=2), Layout(dp=32, zero=1, offload=True),
]  # fmt: skip


@pytest.mark.parametrize("arch", [LLAMA, MIXTRAL], ids=["dense", "mixture"])
def test_a_grid_is_its_layouts_one_by_one(arch: Any) -> None:
    together = account(features(job(arch), Grid.of(LAYOUTS), 256.0), Profile())
    for place, layout in enumerate(LAYOUTS):
        alone = account(features(job(arch), Grid.of([layout]), 256.0), Profile())
        assert {name: float(value[place]) for name, value in together.items()} == pytest.approx(
            {name: float(value[0]) for name, value in alone.items()}
        )


@given(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=4), st.floats(0.5, 2), st.floats(0.1, 1.5))
def test_every_entry_is_a_time_and_they_add_up(chosen: list[Layout], factor: float, exposed: float) -> None:
    profile = replace(Profile(), matmul=factor, memory=factor, data_exposed=exposed, tensor_exposed=exposed)
    found = features(job(MIXTRAL), Grid.of(chosen), 256.0)
    entries = account(found, profile)
    assert all((value >= -1e-9).all() and np.isfinite(value).all() for value in entries.values())
    assert step_times(found, profile) == pytest.approx(sum(entries.values()))


BASE = Layout(tp=2, pp=4, dp=4, micro_batch=1, recompute="full")
ROUTED = Layout(dp=32, ep=16)
SLOW = replace(DGX, nics_bytes_per_s=DGX.nics_bytes_per_s / 8)
# a lever and the layout (or setting) it is pulled from; the step with it is shorter
FASTER: list[tuple[str, Layout, dict[str, Any], Layout, dict[str, Any]]] = [
    ("less recompute", BASE, {}, replace(BASE, recompute="none"), {}),
    ("selective for full", BASE, {}, replace(BASE, recompute="selective"), {}),
    ("fewer layers again", BASE, {}, replace(BASE, recompute_layers=2), {}),
    ("interleaving", BASE, {"batch": 32}, replace(BASE, vpp=4, schedule="interleaved"), {"batch": 32}),
    ("zero bubble", BASE, {"batch": 32}, replace(BASE, schedule="zero-bubble"), {"batch": 32}),
    ("sequence parallelism", replace(BASE, tp=8), {}, replace(BASE, tp=8, sp=True), {}),
    ("no gathers", Layout(dp=32, zero=3), {}, Layout(dp=32, zero=1), {}),
    ("sharding within nodes", Layout(dp=32, zero=3), {"fabric": SLOW}, Layout(dp=32, zero=3, shards=8),
     {"fabric": SLOW}),
    ("states on the device", Layout(dp=32, zero=1, offload=True), {}, Layout(dp=32, zero=1), {}),
    ("fp8", BASE, {}, BASE, {"dtype": "fp8"}),
    ("faster network", Layout(dp=32, zero=3), {"fabric": SLOW}, Layout(dp=32, zero=3), {}),
    ("paired exchange", replace(ROUTED, pp=2, dp=16), {"arch": MIXTRAL},
     replace(ROUTED, pp=2, dp=16, schedule="dualpipe"), {"arch": MIXTRAL}),
    ("experts in the node", ROUTED, {"arch": MIXTRAL}, replace(ROUTED, ep=8), {"arch": MIXTRAL}),
    ("more overlap of gradients", Layout(dp=32, zero=1), {"profile": replace(Profile(), data_exposed=0.9)},
     Layout(dp=32, zero=1), {"profile": replace(Profile(), data_exposed=0.1)}),
    ("more overlap of tensors", BASE, {"profile": replace(Profile(), tensor_exposed=0.9)}, BASE,
     {"profile": replace(Profile(), tensor_exposed=0.1)}),
    ("fused attention", BASE, {"traits": Traits(fused_attention=False)}, BASE, {}),
    ("fused loss", BASE, {"traits": Traits(fused_loss=False)}, BASE, {}),
    ("cheaper launches", Layout(tp=8, dp=4), {"profile": replace(Profile(), launch_s=5e-5)}, Layout(tp=8, dp=4), {}),
    ("balanced experts", ROUTED, {"arch": MIXTRAL, "profile": replace(Profile(), imbalance=1.5)}, ROUTED,
     {"arch": MIXTRAL}),
    ("16-bit gradients", Layout(dp=32), {}, Layout(dp=32), {"traits": Traits(gradient_bytes=2)}),
]  # fmt: skip


@pytest.mark.parametrize(("lever", "old", "before", "new", "after"), FASTER, ids=[row[0] for row in FASTER])
def test_levers_pull_the_right_way(
    lever: str, old: Layout, before: dict[str, Any], new: Layout, after: dict[str, Any]
) -> None:
    assert step(new, **after) < step(old, **before), lever


@given(st.sampled_from(LAYOUTS), st.floats(1.01, 10))
def test_faster_links_are_never_slower(layout: Layout, times: float) -> None:
    quick = replace(DGX, link_bytes_per_s=DGX.link_bytes_per_s * times, nics_bytes_per_s=DGX.nics_bytes_per_s * times)
    assert step(layout, arch=MIXTRAL, fabric=quick) <= step(layout, arch=MIXTRAL) * (1 + 1e-12)


@given(st.sampled_from(LAYOUTS[:8]), st.sampled_from([1, 2, 4]))
def test_more_sequences_take_longer_and_never_more_than_in_proportion(layout: Layout, times: int) -> None:
    one, more = step(layout, 64), step(layout, 64 * times)
    assert one <= more * (1 + 1e-12) <= one * times * (1 + 1e-9)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_more_stages_have_more_bubble(stages: int) -> None:
    def bubble(pp: int) -> float:
        found = features(job(), Grid.of([Layout(pp=pp)]), 64.0)
        entries = account(found, Profile())
        return float(entries["bubble"][0] / sum(entries.values())[0])

    assert bubble(stages) > bubble(stages // 2)


# models of every kind: mixtures, latent attention, scans, convolutions, encoders, recurrences, bare estimates
KINDS = [
    "deepseek-v3", "gpt-oss-120b", "mamba-2.8b", "bert-large", "t5-11b", "whisper-large-v3", "vit-l16", "resnet-50",
    "lstm-512", "alexnet", "gpt-4-estimate", "llama-3.2-11b-vision", "minimax-text-01",
]  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("traits", [Traits(), Traits(fused_attention=False, dropout=True)], ids=["flash", "unfused"])
def test_models_of_every_kind_have_a_step(name: str, traits: Traits) -> None:
    arch = read_model(name)
    at = job(arch, seq=min(2048, arch.max_positions or 2048), traits=traits)
    found = features(at, Grid.of([Layout(dp=8), Layout(dp=8, zero=3, recompute="full")]), 64.0)
    entries = account(found, Profile())
    seconds = step_times(found, Profile())
    assert (seconds > 0).all() and np.isfinite(seconds).all() and seconds[0] < seconds[1]
    assert all((value >= 0).all() for value in entries.values())


def test_shared_layouts_are_timed_once() -> None:
    timed: dict[str, set[int]] = {}

    class Counted:
        def __getattr__(self, name: str) -> Any:
            def call(*sizes: Any, **more: Any) -> Any:
                timed.setdefault(name, set()).add(max((np.size(each) for each in sizes), default=1))
                return getattr(H100, name)(*sizes, **more)

            return call

    many = [Layout(dp=dp, pp=pp, zero=zero) for dp in (1, 2, 4) for pp in (1, 2) for zero in (0, 1, 3)]
    features(job(curves=Counted()), Grid.of(many), 256.0)
    # 18 layouts, 6 shapes (dp, pp), one kind of block: tp, cp, ep and the micro-batch are the same everywhere
    assert timed["matmul_s"] == timed["attention_s"] == {1}
    assert timed["collective_s"] == {1, 6}


def test_layouts_of_one_shape_share_it_and_differ_in_the_rest() -> None:
    many = [
        Layout(tp=2, dp=16, zero=zero, recompute=again, offload=away)
        for zero in (0, 1, 3) for again in ("none", "selective", "full") for away in (False, True)
    ]  # fmt: skip
    found = features(job(), Grid.of(many), 256.0)
    assert (found.stages.slowest.shape[-1], len(found.place)) == (3, 18)  # one for each recompute
    together = step_times(found, Profile())
    assert together == pytest.approx([step(layout) for layout in many])
    assert together == pytest.approx(step_times(found.apart(), Profile()))
    assert len(set(together.round(9))) == 12  # with a fused attention nothing is left for selective recompute


# --- what is kept from one question to the next -------------------------------------------------------------------


def asked(arch: Any, **other: Any) -> Job:
    told = {"seq": 2048, "dtype": "bf16", "curves": find_curves("h100-sxm"), "fabric": node_fabric("hgx-h100")}
    return job_of(arch, **(told | {"traits": Traits()} | other))


def test_the_same_question_finds_the_same_job() -> None:
    arch = replace(read_model("gpt2"))
    first = asked(arch)
    assert asked(arch) is first
    others = [asked(arch, seq=1024), asked(arch, dtype="fp8"), asked(arch, traits=Traits(fused_loss=False)),
              asked(arch, fabric=replace(node_fabric("hgx-h100"), link_bytes_per_s=1e11))]  # fmt: skip
    assert len({id(each) for each in (first, *others)}) == 5
    assert asked(arch) is first
    assert asked(replace(arch)) is not first


def test_a_model_keeps_few_jobs() -> None:
    arch = replace(read_model("gpt2"))
    first = asked(arch, seq=1)
    for seq in range(2, 18):
        asked(arch, seq=seq)
    assert len(arch.__dict__["_jobs"]) == 16
    assert asked(arch, seq=1) is not first


def test_some_features_taken_are_those_of_the_layouts_alone() -> None:
    many = [Layout(tp=2, dp=16, zero=zero, offload=away) for zero in (0, 1, 3) for away in (False, True)]
    found = features(job(), Grid.of(many), 256.0).take(np.array([5, 0, 0]))
    assert len(found.place) == found.stages.slowest.shape[-1] == 3
    alone = step_times(features(job(), Grid.of([many[5], many[0], many[0]]), 256.0), Profile())
    assert step_times(found, Profile()).tolist() == alone.tolist()
