"""`layout` whole: what is found, what is said where nothing is, levers' signs, and the figures it must show."""

from __future__ import annotations

from itertools import pairwise

import pytest

import suanli
from suanli.errors import InputError
from suanli.nouns.layout import Layout

np = pytest.importorskip("numpy")

SMALL = {"gpu": "h100-sxm", "gpus": 16, "global_batch": 64, "seq": 4096}


@pytest.fixture(scope="module")
def plan():
    return suanli.layout("llama-3.1-8b", **SMALL)


def test_the_account_of_every_layout_closes(plan):
    for row in plan.layouts:
        assert sum(each.seconds for each in row.account) == pytest.approx(row.step_time_s, rel=1e-9)
        terms = {name: size for name, size in row.memory_bytes.items() if name != "total"}
        assert sum(terms.values()) == row.memory_bytes["total"]
        assert row.margin_bytes == plan.memory_limit_bytes - row.memory_bytes["total"] >= 0
        low, high = row.step_time_interval_s
        assert low < row.step_time_s < high
        assert row.gpus == 16


def test_rates_agree(plan):
    best = plan.layouts[0]
    tokens = 64 * 4096
    assert best.tokens_per_second_per_gpu == pytest.approx(tokens / best.step_time_s / 16)
    flops = suanli.count("llama-3.1-8b", seq=4096, batch=64, phase="train").flops.model
    assert best.mfu == pytest.approx(flops / best.step_time_s / 16 / 989.4e12, rel=1e-3)
    assert best.usd_per_step == pytest.approx(16 * 2.99 * best.step_time_s / 3600)


def test_the_fastest_of_everything_is_found():
    """The whole grid priced one by one: nothing that fits is faster than the best found."""
    from suanli.plan.enumerate import enumerate_grid
    from suanli.plan.layout import _books
    from suanli.plan.pins import read_pins
    from suanli.plan.pricing import Prices

    result = suanli.layout("llama-3.1-8b", **SMALL, pin="cp=1,schedule=1f1b,interleaved,recompute=none,full", top=4)
    question = result.asked["question"]
    space = question.space
    pins = read_pins(question.pins, space) | {"recompute": ("none", "full"), "zero": (0, 1, 2, 3)}
    found = enumerate_grid(space, pins)
    grid, row = found.expand(np.arange(len(found.rows)))
    prices = Prices(_books(question), found)
    fits = prices.fullest_bytes(grid, row) <= question.limit_bytes
    seconds = np.sort(prices.step_s(grid, row)[fits])
    shown = sorted(each.closed_form_step_time_s for each in result.layouts)
    assert shown[0] >= seconds[0] * (1 - 1e-9)
    assert all(each <= seconds[4 * 4 - 1] * (1 + 1e-9) for each in shown)
    assert min(point.step_time_s for point in result.front) == pytest.approx(result.layouts[0].step_time_s)


def test_one_number_is_shown_ranked_and_accounted_for(plan):
    """Step, account, MFU, rate and order are of the played pipeline; the closed form stands beside it."""
    steps = [row.step_time_s for row in plan.layouts]
    assert steps == sorted(steps)
    assert all(row.played for row in plan.layouts)
    found = suanli.layout("llama-3.1-70b", gpu="h100-sxm", gpus=64, global_batch=64, seq=4096, pin="pp=8")
    assert any(row.step_time_s != row.closed_form_step_time_s for row in found.layouts)
    for row in found.layouts:
        assert sum(each.seconds for each in row.account) == pytest.approx(row.step_time_s, rel=1e-9)
        assert row.tokens_per_second_per_gpu == pytest.approx(64 * 4096 / row.step_time_s / 64)
        assert row.closed_form_step_time_s == pytest.approx(row.step_time_s, rel=0.1)


def test_counts_add_up(plan):
    counts = plan.counts
    assert counts.enumerated == counts.legal + sum(counts.by_rule.values())
    assert plan.evaluated == counts.legal >= counts.fit >= counts.timed > 0


def test_the_front_has_no_beaten_point(plan):
    points = [(each.step_time_s, each.memory_bytes) for each in plan.front]
    assert points == sorted(points)
    assert all(after[1] < before[1] for before, after in pairwise(points))


def test_pins_hold():
    found = suanli.layout("llama-3.1-8b", **SMALL, pin={"tp": 2, "pp": [1, 2], "zero": 1})
    assert {row.tp for row in found.layouts} == {2}
    assert {row.zero for row in found.layouts} == {1}
    assert {row.pp for row in found.layouts} <= {1, 2}


def test_schedules_are_those_the_stack_runs_unless_pinned():
    hundred = {"gpu": "h100-sxm", "gpus": 64, "global_batch": 256, "seq": 4096}
    free = suanli.layout("llama-3.1-70b", **hundred, pin="pp=8")
    assert {row.schedule for row in free.layouts} <= {"1f1b", "interleaved"}
    assert not any("dualpipe" in lever.change for lever in free.advice)
    pinned = suanli.layout("llama-3.1-70b", **hundred, pin="pp=8,schedule=zero-bubble")
    assert {row.schedule for row in pinned.layouts} == {"zero-bubble"}


def test_several_numbers_of_gpus_are_compared():
    found = suanli.layout("llama-3.1-8b", gpu="h100-sxm", gpus="8,16", global_batch=64, seq=4096)
    assert {point.gpus for point in found.front} == {8, 16}
    assert found.layouts[0].gpus == 16


def test_a_memory_limit_holds_and_costs_time(plan):
    found = suanli.layout("llama-3.1-8b", **SMALL, memory_limit="32GB")
    assert all(row.memory_bytes["total"] <= 32e9 for row in found.layouts)
    assert found.layouts[0].step_time_s >= min(row.step_time_s for row in plan.layouts)


# --- where there is nothing ---------------------------------------------------------------------------------------


def test_nothing_fits_says_by_how_much_and_what_would():
    with pytest.raises(InputError) as caught:
        suanli.layout("llama-3.1-405b", gpu="h100-sxm", gpus=8, global_batch=64, seq=8192)
    (fault,) = caught.value.faults
    assert fault.code == "nothing_fits"
    assert fault.got.startswith("79.11 GiB; the smallest (tp8 ")
    assert " more, of it " in fault.got
    gpus = int(fault.expected.split("--gpus ")[1].replace(",", ""))
    assert suanli.layout("llama-3.1-405b", gpu="h100-sxm", gpus=gpus, global_batch=64, seq=8192).layouts
    with pytest.raises(InputError, match="no layout fits the memory"):
        suanli.layout("llama-3.1-405b", gpu="h100-sxm", gpus=gpus // 2, global_batch=64, seq=8192)


def test_states_on_the_host_are_named_where_they_would_fit():
    """70B on 8 GPUs: 18 bytes a parameter are 159 GB a GPU, without the 12 of the optimizer 53 GB."""
    asked = {"gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "seq": 4096}
    with pytest.raises(InputError, match="or --pin offload=yes, optimizer states on the host"):
        suanli.layout("llama-3.1-70b", **asked, pin="cp=1")
    found = suanli.layout("llama-3.1-70b", **asked, pin="cp=1,offload=yes").layouts[0]
    assert found.offload
    assert found.memory_bytes["optimizer"] == 0
    assert " offload" in found.short
    with pytest.raises(InputError) as caught:  # MegaScale has no offload
        suanli.layout("llama-3.1-70b", **asked, pin="cp=1", stack="megascale")
    assert "offload" not in str(caught.value)


# --- what a stack can run -----------------------------------------------------------------------------------------

SEVENTY = {"gpu": "h100-sxm", "gpus": 64, "global_batch": 128, "seq": 8192}


def test_as_few_layers_are_recomputed_as_fit():
    """70B on 64 GPUs: none does not fit, all of them waste time; a pin of the policy or of the number holds."""
    pins = "tp=4,pp=4,cp=1,vpp=1,micro_batch=1,zero=1,sp=yes"
    best = suanli.layout("llama-3.1-70b", **SEVENTY, pin=pins).layouts[0]
    assert (best.recompute, best.recompute_layers is None) == ("full", False)
    number = best.recompute_layers
    every = suanli.layout("llama-3.1-70b", **SEVENTY, pin=f"{pins},recompute=full").layouts[0]
    assert every.recompute_layers is None
    assert best.step_time_s < every.step_time_s
    same = suanli.layout("llama-3.1-70b", **SEVENTY, pin=f"{pins},recompute_layers={number}").layouts[0]
    assert same == best
    with pytest.raises(InputError, match="no layout fits the memory"):
        suanli.layout("llama-3.1-70b", **SEVENTY, pin=f"{pins},recompute_layers={number - 1}" if number > 1 else
                      f"{pins},recompute=none")  # fmt: skip
    titan = suanli.layout("llama-3.1-70b", **SEVENTY, pin=pins.replace("zero=1", "zero=2"), stack="torchtitan")
    assert not any(row.recompute_layers for row in titan.layouts)  # it recomputes every block, or by operator


def test_sharing_states_and_zero_are_the_stacks():
    """Megatron-FSDP has no pipeline; a pin asks for it all the same. torchtitan shares states in a node or over all."""
    core = suanli.layout("llama-3.1-70b", **SEVENTY, top=40)
    assert {row.zero for row in core.layouts if row.pp > 1} <= {0, 1}
    pinned = suanli.layout("llama-3.1-70b", **SEVENTY, pin="pp=4,zero=2")
    assert {row.zero for row in pinned.layouts} == {2}
    titan = suanli.layout("llama-3.1-8b", gpu="h100-sxm", gpus=64, global_batch=256, seq=4096, stack="torchtitan",
                          pin="pp=1,tp=1,cp=1,zero=3", top=200)  # fmt: skip
    assert {row.shards for row in titan.layouts} == {None, 8}
    eight = suanli.layout("llama-3.1-8b", gpu="h100-sxm", gpus=64, global_batch=256, seq=4096, stack="torchtitan",
                          pin="pp=1,tp=1,cp=1,zero=3,shards=16").layouts[0]  # fmt: skip
    assert eight.shards == 16
    note = next(note for note in core.notes if note.startswith("megatron-core runs"))
    assert note == (
        "megatron-core runs schedules 1f1b, interleaved; ZeRO 0, 1, 2, 3, beside a pipeline 0, 1; what it lacks by "
        "--pin, and offload=yes"
    )


def test_emit_is_for_what_was_found():
    pins = "tp=4,pp=4,cp=1,vpp=1,micro_batch=1,zero=1,sp=yes"
    found = suanli.layout("llama-3.1-70b", **SEVENTY, pin=pins, emit="megatron")
    layers = found.layouts[0].recompute_layers
    assert "--recompute-method block" in found.emit.text
    assert f"--recompute-num-layers {layers}" in found.emit.text
    with pytest.raises(InputError, match=f"torchtitan cannot express recompute of {layers} layers of a stage"):
        suanli.layout("llama-3.1-70b", **SEVENTY, pin=pins, emit="torchtitan")


def test_what_a_program_can_have_of_a_device_is_the_limit(plan):
    """torch sees 79.11 GiB of an H100 of 80 GB; a limit that is typed is taken as it is."""
    assert plan.memory_limit_bytes == 81008 * 2**20
    assert plan.notes[-1] == (
        "memory limit 84.94 GB a GPU, what a program can have of h100-sxm (torch: a total capacity of 79.11 GiB)"
    )
    typed = suanli.layout("llama-3.1-8b", **SMALL, memory_limit="80GB")
    assert (typed.memory_limit_bytes, typed.notes[-1]) == (80 * 10**9, "memory limit 80 GB a GPU")


def test_the_limit_it_names_is_enough():
    with pytest.raises(InputError) as caught:
        suanli.layout("llama-3.1-8b", **SMALL, pin="tp=1,pp=1,zero=0,micro_batch=1", memory_limit="40GB")
    needed = caught.value.faults[0].expected.split("--memory-limit ")[1].split(",")[0].replace(" ", "")
    roomy = f"{float(needed.removesuffix('GiB')) + 0.1:.2f}GiB"
    assert suanli.layout("llama-3.1-8b", **SMALL, pin="tp=1,pp=1,zero=0,micro_batch=1", memory_limit=roomy).layouts


def test_no_legal_layout_says_which_rule():
    with pytest.raises(InputError) as caught:
        suanli.layout("llama-3.1-8b", **SMALL, pin="tp=8,pp=4")
    assert caught.value.faults[0].message == "no layout is legal"
    assert "tp=8, pp=4" in caught.value.faults[0].got
    assert "degrees divide the GPUs" in caught.value.faults[0].got


FAULTS = [
    ({"gpu": None}, "a layout is for a device in --gpu; expected --gpu h100-sxm."),
    ({"gpus": None}, "a layout needs its GPUs in --gpus; expected --gpus 1024, or several: 512,1024."),
    ({"global_batch": None},
     "a layout needs its global batch in --global-batch; expected --global-batch 2048, sequences of a step."),
    ({"stack": "megatron-cor"}, "unknown stack 'megatron-cor' in --stack"),
    ({"dtype": "fp64"}, "unknown dtype 'fp64' in --dtype; expected one of 5 known"),
    ({"emit": "megatrom"}, "unknown tool 'megatrom' in --emit; expected one of 4 known; nearest: megatron. "
                           "Tools: megatron, torchtitan, deepspeed, nemo."),
    ({"fabric": "hgx-h1000"}, "unknown node 'hgx-h1000'"),
    ({"why": (1, 9)}, "no such place in --why; got 9; expected a place from 1 to 5 (--top), or pins like tp=8."),
    ({"why": (1,)}, "two layouts are compared in --why; got (1,); expected two places, like 1 2, or two pins, like "
                    "tp=8 tp=4."),
    ({"gpu": "tpu-v5p"}, "curves"),
    ({"pin": "tp=3"}, "tp cannot be so in --pin tp; got 3: 32 heads cannot be cut into 3"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=[str(each[0]) for each in FAULTS])
def test_what_is_wrong_is_said(changes, message):
    with pytest.raises(InputError) as caught:
        suanli.layout("llama-3.1-8b", **SMALL | changes)
    assert message in str(caught.value)


def test_all_faults_together():
    with pytest.raises(InputError) as caught:
        suanli.layout("llama-3.1-8b", gpu="h100-sx", gpus=0, stack="x", emit="y")
    assert len(caught.value.faults) == 5


def test_a_picture_model_has_no_layout():
    with pytest.raises(InputError, match="the model cannot be laid out"):
        suanli.layout("resnet50", **SMALL)


# --- comparison, levers, launch -----------------------------------------------------------------------------------


def test_why_compares_places_and_pins():
    found = suanli.layout("llama-3.1-8b", **SMALL, why=(1, {"tp": 8})).why
    assert found.second.tp == 8
    assert sum(row.difference for row in found.step) == pytest.approx(
        found.second.step_time_s - found.first.step_time_s
    )
    by_place = suanli.layout("llama-3.1-8b", **SMALL, why="1 2").why
    assert by_place.first != by_place.second


@pytest.mark.parametrize("pins", ["tp=8", "tp=2,pp=2", "cp=1,zero=1"])
def test_why_takes_the_layout_that_the_same_pins_would_find(pins):
    """Of those that fit, fastest once played out: not the closed form's, not one that asks for more memory."""
    second = suanli.layout("llama-3.1-8b", **SMALL, why=("1", pins)).why.second
    assert second == suanli.layout("llama-3.1-8b", **SMALL, pin=pins).layouts[0]


def test_why_compares_what_does_not_fit_too():
    why = suanli.layout("llama-3.1-8b", **SMALL, why=("1", "tp=1,pp=1,cp=1,zero=0,micro_batch=4")).why
    assert why.second.memory_bytes["total"] > why.first.memory_bytes["total"]
    assert why.second.margin_bytes < 0


def test_levers_are_priced_by_the_same_model(plan):
    best = plan.layouts[0]
    assert plan.advice
    gains = [each.gain_fraction for each in plan.advice if each.fits]
    assert gains == sorted(gains, reverse=True)
    lever = next(each for each in plan.advice if each.change == "recompute none → full")
    pins = {name: getattr(best, name) for name in ("tp", "pp", "vpp", "cp", "micro_batch", "zero", "sp", "schedule")}
    again = suanli.layout("llama-3.1-8b", **SMALL, pin=pins | {"recompute": "full"}).layouts[0]
    assert lever.step_time_s == pytest.approx(again.step_time_s)
    assert lever.memory_bytes == again.memory_bytes["total"]
    assert lever.gain_fraction == pytest.approx(1 - again.step_time_s / best.step_time_s)


def test_emit_is_the_first_layout(plan):
    found = suanli.layout("llama-3.1-8b", **SMALL, emit="megatron")
    best = found.layouts[0].as_layout()
    assert isinstance(best, Layout)
    assert f"--tensor-model-parallel-size {best.tp}" in found.emit.text
    assert f"--micro-batch-size {best.micro_batch}" in found.emit.text


# model → what is said of pretrain_gpt.py, from its tree
EMITTED = [("mamba-370m", "no state spaces"), ("bert-large", "attention is causal: pretrain_bert.py"),
           ("llama-3.1-8b", None)]  # fmt: skip


@pytest.mark.parametrize(("model", "said"), EMITTED)
def test_emit_knows_what_the_model_is(model, said):
    found = suanli.layout(model, gpu="h100-sxm", gpus=8, global_batch=64, seq=448, pin="pp=1", emit="megatron")
    notes = [note for note in found.emit.notes if "pretrain_gpt.py" in note]
    assert [said in note for note in notes] == ([True] if said else [])


@pytest.mark.parametrize("model", ["t5-base", "whisper-large-v3", "clip-vit-large-patch14"])
def test_emit_refuses_several_stacks(model):
    with pytest.raises(InputError, match="megatron cannot express blocks over several streams"):
        suanli.layout(model, gpu="h100-sxm", gpus=8, global_batch=64, seq=77, pin="pp=1", emit="megatron")
