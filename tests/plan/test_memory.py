"""Memory per rank: published figures and reports, every term by hand, and what no option may do."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.stacks import find_stack, list_stacks
from suanli.errors import InputError
from suanli.nouns.estimate import ALLOCATED, TERMS, MemoryEstimate, StageMemory
from suanli.nouns.layout import Layout
from suanli.nouns.workload import Workload
from suanli.plan.memory import memory_estimate, stage_memory
from suanli.plan.pipeline import stages_of
from suanli.plan.planned import Policy, Rank, model_of
from suanli.plan.sharding import Degrees, degrees_of
from suanli.readers.hf import read_hf_config
from suanli.readers.model import read_model

GIB = 2**30
CORE, OLD, TITAN, DEEP = (find_stack(name) for name in ("megatron-core", "megatron-2021", "torchtitan", "deepspeed"))


def estimate(model: str, stack: object = CORE, *, seq: int = 2048, batch: int | None = None, dtype: str = "bf16",
             capacity: int | None = None, **degrees: object) -> MemoryEstimate:  # fmt: skip
    layout = Layout(**degrees)  # type: ignore[arg-type]
    return memory_estimate(
        read_model(model), Workload(phase="train", seq=seq, dtype=dtype), layout, stack,  # type: ignore[arg-type]
        global_batch=batch or layout.dp * layout.micro_batch * layout.pp, capacity=capacity,
    )  # fmt: skip


# --- published figures --------------------------------------------------------------------------------------------

# arXiv:2205.05198 figure 1, first stage, GiB: model, its layout, micro-batch, parameters and optimizer states of its
# layers (18 bytes a parameter), activations without recompute, and with sequence parallelism and selective recompute
FIGURE_1 = [
    ("megatron-22b", {"tp": 8}, 4, 45.5625, 59.25, 9.5625),
    ("megatron-175b", {"tp": 8, "pp": 8, "vpp": 3, "schedule": "interleaved"}, 1, 45.5625, 66.84375, 12.3515625),
    ("megatron-530b", {"tp": 8, "pp": 35, "vpp": 3, "schedule": "interleaved"}, 1, 31.640625, 114.0234375,
     23.076171875),
]  # fmt: skip


@pytest.mark.parametrize(("model", "degrees", "batch", "states", "none", "selective"), FIGURE_1)
def test_figure_1(
    model: str, degrees: dict[str, object], batch: int, states: float, none: float, selective: float
) -> None:
    stack = replace(OLD, keeps_outputs=False)
    for more, expected in (({}, none), ({"sp": True, "recompute": "selective"}, selective)):
        layout = Layout(**degrees, **more, micro_batch=batch)  # type: ignore[arg-type]
        arch = read_model(model)
        planned = model_of(arch, Workload(phase="train", seq=2048), stack)
        planned = replace(planned, parts=replace(planned.parts, before=(), after=()))  # the figure has layers only
        policy = Policy(recompute=layout.recompute, copied=layout.pp > 1)
        chunks = stages_of(planned.parts, layout, 5 * layout.pp)[0]
        found = stage_memory(Rank(planned, degrees_of(layout)), policy, 0, chunks)
        assert found.activations / GIB == expected
        weights = 12 * arch.shape.num_layers * arch.shape.hidden**2 // (8 * layout.pp)  # type: ignore[union-attr]
        assert 18 * weights / GIB == states
        assert found.states / 18 == pytest.approx(weights, rel=2e-3)  # ours has norms and biases too


def test_llama_405b_on_16384() -> None:
    """Meta's layout (arXiv:2407.21783 table 4): no recompute, gradients sharded, 126 layers on 16 stages.

    An H100 of "80 GB" has 80 GiB, of which the driver leaves 79.6. calculon says 862 GiB.
    """
    degrees = {"tp": 8, "pp": 16, "dp": 128, "sp": True, "seq": 8192, "batch": 2048}
    usable = int(79.6 * GIB)
    found = estimate("llama-3.1-405b", zero=2, capacity=usable, **degrees)
    assert found.fits and 70 * GIB < found.total < usable
    assert found.largest == "activations"
    assert [stage.layers for stage in found.stages] == [7, *[8] * 14, 7]
    whole = estimate("llama-3.1-405b", zero=1, capacity=usable, **degrees)
    assert whole.fits is False and whole.margin is not None and whole.margin < 0  # gradients of 3.2e9 in fp32


def test_deepseek_v3_on_2048() -> None:
    """arXiv:2412.19437: 61 layers on 16 stages, 256 experts on 64 ranks, DualPipe's two copies, fp8, moments in bf16,
    norms, gates and latent up-projections made again: it fits H800s of 80 GiB, and without that it does not."""
    arch = read_model("deepseek-v3")
    workload = Workload(phase="train", seq=4096, dtype="fp8", optimizer="adamw-bf16")
    fits = {}
    for recompute in ("none", "selective", "full"):
        layout = Layout(pp=16, dp=128, ep=64, zero=1, schedule="dualpipe", recompute=recompute)
        found = memory_estimate(arch, workload, layout, find_stack("hai-llm"), global_batch=15360,
                                capacity=int(79.6 * GIB))  # fmt: skip
        fits[recompute] = found.fits
        assert sum(stage.layers for stage in found.stages) == 2 * 61
        assert found.assumed == ("the busiest expert rank has 1 times the mean of tokens",)
    assert fits == {"none": False, "selective": True, "full": True}


# --- reports (planners.md §5) -------------------------------------------------------------------------------------


def test_live_terms_under_zero_3_with_offload() -> None:
    """deepspeed #4527: 6.8B on 4 GPUs, said 0.49 GB, measured 14.7 to 21 GB."""
    found = estimate("opt-6.7b", DEEP, dp=4, zero=3, offload=True, recompute="full", micro_batch=4, dtype="fp16")
    assert 14.7 * 10**9 < found.total < 21 * 10**9
    assert found.stages[0].optimizer == found.stages[0].gradients == 0
    assert found.stages[0].offloaded == pytest.approx((12 + 2) * found.stages[0].params / 4, rel=1e-3)


def test_the_floor_that_more_gpus_do_not_lower() -> None:
    """deepspeed #4093: GPT-J 6B, said 0.77 GB; 13 GB on 2 GPUs and on 4, for what is not sharded is most of it."""
    two, four = (
        estimate("gpt-j-6b", DEEP, dp=dp, zero=3, offload=True, recompute="full", dtype="fp16").stages[0]
        for dp in (2, 4)
    )
    for term in ("activations", "working", "buffers", "context"):
        assert getattr(two, term) == getattr(four, term) > 0
    assert two.weights - four.weights == 2 * two.params // 4  # the shards of two, and of four
    assert 11 * 10**9 < four.total < two.total < 16 * 10**9
    assert four.total - 2 * four.params // 4 > two.total / 2


ZERO = [  # stage: bytes a parameter of weights, gradients, states on 8 ranks; ZeRO-3 gathers beside (deepspeed #5102)
    (0, 2, 4, 12),
    (1, 2, 4, 12 / 8),
    (2, 2, 4 / 8, 12 / 8),
]


@pytest.mark.parametrize(("zero", "weights", "gradients", "optimizer"), ZERO)
def test_zero(zero: int, weights: float, gradients: float, optimizer: float) -> None:
    stage = estimate("llama-3-8b", dp=8, zero=zero).stages[0]
    for term, each in (("weights", weights), ("gradients", gradients), ("optimizer", optimizer)):
        assert getattr(stage, term) == pytest.approx(each * stage.params, rel=1e-9)


def test_zero_3() -> None:
    stage = estimate("llama-3-8b", replace(CORE, vocab_multiple=1), dp=8, zero=3).stages[0]
    block, head = 218_112_000, 128256 * 4096
    assert stage.weights == 2 * 8_030_261_248 // 8 + 2 * (2 * block + head + 4096)  # two blocks, the head and its norm
    assert stage.gradients == 4 * 8_030_261_248 // 8


def test_hybrid_sharding() -> None:
    """HSDP: states over 4 of 8 ranks."""
    whole, part = (estimate("llama-3-8b", dp=8, zero=1, shards=shards).stages[0] for shards in (None, 4))
    assert part.optimizer == 2 * whole.optimizer


# dtype, stack: bytes a parameter on one GPU; deepspeed #3442's tuner said 20 and 16
@pytest.mark.parametrize(("dtype", "stack", "each"), [("bf16", CORE, 18), ("fp32", CORE, 16), ("fp16", DEEP, 16),
                                                      ("bf16", TITAN, 16), ("bf16", DEEP, 20)])  # fmt: skip
def test_states_on_one_gpu(dtype: str, stack: object, each: int) -> None:
    stage = estimate("gpt2", stack, dtype=dtype, batch=2, seq=1024).stages[0]
    assert stage.states == each * stage.params


def test_gradients_are_divided_by_tp() -> None:
    """EleutherAI's calc_mem: 46.2 GiB at tp 1 and at tp 4, where it is 11.6 (12 layers of Llama-3-70B)."""
    one, four = (stage(12, tp=tp).gradients / GIB for tp in (1, 4))
    assert (round(one, 1), round(four, 1)) == (46.1, 11.5)


def stage(layers: int, **degrees: object) -> StageMemory:
    config = {"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": layers, "num_attention_heads": 64,
              "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256}  # fmt: skip
    layout = Layout(**degrees)  # type: ignore[arg-type]
    arch, workload = read_hf_config(config, "part"), Workload(phase="train", seq=4096)
    return memory_estimate(arch, workload, layout, CORE, global_batch=4 * layout.dp).stages[0]


def test_weights_of_70b() -> None:
    """accelerate #3379: 141 GB in 16 bits, not 64.7."""
    assert estimate("llama-3-70b", TITAN, dp=1).stages[0].params == 70_553_706_496
    assert estimate("llama-3-70b", replace(CORE, vocab_multiple=1)).stages[0].weights == 2 * 70_553_706_496


def test_gradient_dtype_is_the_stacks() -> None:
    """Megatron PR #1345: 6 + 12/d with fp32 main gradients, 4 + 12/d with 16-bit ones."""
    narrow = replace(CORE, gradient_bytes={"bf16": 2})
    for stack, each in ((CORE, 6), (narrow, 4)):
        found = estimate("gpt2", stack, dp=4, zero=1, seq=1024).stages[0]
        assert found.states == pytest.approx((each + 12 / 4) * found.params, rel=1e-6)


# --- terms --------------------------------------------------------------------------------------------------------


def test_a_tied_table_is_on_both_ends() -> None:
    one, two = (estimate("gpt2", OLD, pp=pp, seq=1024) for pp in (1, 2))
    table = 768 * 50304
    assert sum(stage.params for stage in two.stages) == one.stages[0].params + table
    assert one.stages[0].params == 124_439_808 + 768 * (50304 - 50257)


def test_eight_bit_copies() -> None:
    wide, narrow = (estimate("llama-3-8b", dtype=dtype).stages[0] for dtype in ("bf16", "fp8"))
    matrices = 32 * (218_112_000 - 2 * 4096)
    assert narrow.weights - wide.weights == 2 * matrices
    assert narrow.gradients == wide.gradients and narrow.optimizer == wide.optimizer


def test_the_loss() -> None:
    """16-bit logits and an fp32 softmax of 2,048 · 128,256, and the head's gradient; fused 4 bytes; by tp an eighth."""
    head = 4096 * 128256
    arch, workload = read_model("llama-3-8b"), Workload(phase="train", seq=2048)
    for fused, each in ((None, 6), (False, 6), (True, 4)):
        found = memory_estimate(arch, workload, Layout(), CORE, global_batch=2, fused_loss=fused).stages[0]
        assert found.moment == "loss" and found.working == 0
        assert found.logits == 2048 * 128256 * each + 2 * head
    padded = 129024 // 8
    assert estimate("llama-3-8b", tp=8).stages[0].logits == padded * (2048 * 6 + 2 * 4096)
    assert estimate("llama-3-8b", TITAN, tp=8, batch=2).stages[0].logits == 128256 // 8 * (2048 * 4 + 2 * 4096)


def test_only_the_last_stage_has_a_loss() -> None:
    found = estimate("llama-3-8b", pp=4)
    assert [stage.moment for stage in found.stages] == ["block"] * 3 + ["loss"]
    assert [stage.logits > 0 for stage in found.stages] == [False] * 3 + [True]


def test_gradients_come_after_the_peak_of_an_only_micro_batch() -> None:
    """torch frees gradients after a step: at the loss of one micro-batch there are none, of the second there are."""
    one, two = (estimate("llama-3-8b", TITAN, dp=8, zero=3, batch=8 * count).stages[0] for count in (1, 2))
    assert one.gradients == 0 and two.gradients == 4 * 8_030_261_248 // 8


def test_the_optimizers_step_may_be_the_peak() -> None:
    """DeepSpeed copies gradients to fp32 when it steps: with one GPU and short sequences that is the most."""
    found = estimate("gpt2-xl", DEEP, seq=64, dtype="fp16", batch=1).stages[0]
    assert found.moment == "step" and found.activations == 0
    assert found.working == 4 * found.params


def test_recompute_keeps_less_and_works_more() -> None:
    none, some, full = (
        estimate("llama-3-8b", pp=2, batch=8, **more).stages[0]
        for more in ({}, {"recompute": "full", "recompute_layers": 4}, {"recompute": "full"})
    )
    assert none.activations > some.activations > full.activations
    assert full.working > none.working
    block, inputs = none.activations // (2 * 16), full.activations // (2 * 16)
    assert some.activations == 2 * (4 * inputs + 12 * block)


def test_outputs_kept_for_backward() -> None:
    kept, freed = (
        estimate("gpt3-1.3b", replace(OLD, keeps_outputs=keeps), pp=4, recompute="full", batch=8).stages
        for keeps in (True, False)
    )
    one = 2 * 2048 * 2048
    assert [a.activations - b.activations for a, b in zip(kept, freed, strict=True)] == [4 * one, 3 * one, 2 * one, 0]


def test_placeholders_for_weight_gradients() -> None:
    """Transformer Engine keeps one 16-bit tensor a weight shape: q, k and v are one matrix, gate and up another."""
    with_, without = (
        estimate("llama-3-8b", replace(CORE, weight_placeholders=keeps)).stages[0] for keeps in (True, False)
    )
    assert with_.buffers - without.buffers == 2 * (218_112_000 - 2 * 4096)


def test_imbalance_is_charged_and_said() -> None:
    arch, workload = read_model("mixtral-8x7b"), Workload(phase="train", seq=2048)
    even, skewed = (
        memory_estimate(arch, workload, Layout(dp=8, ep=8), CORE, global_batch=8, imbalance=factor)
        for factor in (1, 1.5)
    )
    assert skewed.total > even.total
    assert skewed.assumed == ("the busiest expert rank has 1.5 times the mean of tokens",)


def test_refusals() -> None:
    with pytest.raises(InputError, match="attention heads cannot be cut evenly"):
        estimate("gpt2", tp=8)
    with pytest.raises(InputError, match="a pipeline stage would be empty"):
        estimate("gpt2", pp=15, seq=1024)


def test_a_net_without_blocks_or_head() -> None:
    found = estimate("resnet-50", TITAN, micro_batch=32).stages[0]
    assert found.params == 25_557_032
    assert found.logits == 0 and found.activations > found.states


# --- the verdict --------------------------------------------------------------------------------------------------


def test_fits_or_says_why_not() -> None:
    found = estimate("llama-3-8b")
    assert found.fits is None and found.margin is None
    assert found.reasons == {"fits": "no device, hence no capacity", "margin": "no device, hence no capacity"}
    assert estimate("llama-3-8b", capacity=found.total).fits is True
    tight = estimate("llama-3-8b", capacity=found.total - 1)
    assert (tight.fits, tight.margin, tight.reasons) == (False, -1, {})


def test_terms_close() -> None:
    found = estimate("mixtral-8x7b", pp=4, dp=8, ep=8, tp=2, sp=True, zero=1)
    for each in found.stages:
        assert each.total == sum(getattr(each, term) for term in TERMS)
        assert each.allocated == sum(getattr(each, term) for term in ALLOCATED)
        assert each.reserved == each.allocated + each.reserve
        assert all(isinstance(getattr(each, term), int) for term in TERMS)
    assert found.total == max(each.total for each in found.stages)


# --- laws ---------------------------------------------------------------------------------------------------------

STATES = ("weights", "gradients", "optimizer", "activations")
MODELS = {name: model_of(read_model(name), Workload(phase="train", seq=4096), CORE)
          for name in ("llama-3-8b", "mixtral-8x7b")}  # fmt: skip


def one(name: str, layout: Layout, micro_batches: int, stage: int = 0) -> StageMemory:
    model = MODELS[name]
    policy = Policy(recompute=layout.recompute, copied=layout.pp > 1, micro_batches=micro_batches)
    chunks = stages_of(model.parts, layout, micro_batches)[stage]
    return stage_memory(Rank(model, degrees_of(layout, vocab_multiple=128)), policy, stage, chunks)


LAYOUTS = st.builds(
    dict, tp=st.sampled_from([1, 2, 4]), cp=st.sampled_from([1, 2, 4]), dp=st.sampled_from([8, 16]),
    pp=st.sampled_from([1, 2, 4]), zero=st.sampled_from([0, 1, 2]), micro_batch=st.sampled_from([1, 2]),
    recompute=st.sampled_from(["none", "selective", "full"]),
)  # fmt: skip
NAMES = st.sampled_from(sorted(MODELS))


@given(degrees=LAYOUTS, name=NAMES, lever=st.sampled_from(["tp", "cp", "dp", "zero", "recompute", "sp", "pp"]))
def test_no_lever_raises_states_or_activations(degrees: dict[str, object], name: str, lever: str) -> None:
    """More TP, CP, DP, PP, ZeRO, recompute or SP: no term of the first stage grows (where the batch feeds it)."""
    steps = {
        "zero": lambda z: min(z + 1, 2),
        "recompute": {"none": "selective", "selective": "full", "full": "full"}.get,
    }
    before = Layout(**degrees, sp=degrees["tp"] > 1 and lever != "sp")  # type: ignore[arg-type,operator]
    if lever == "sp":
        after = replace(before, sp=before.tp > 1)
    elif lever in steps:
        after = replace(before, **{lever: steps[lever](getattr(before, lever))})  # type: ignore[operator]
    else:
        after = replace(before, **{lever: 2 * getattr(before, lever)})
    first, second = one(name, before, 16), one(name, after, 16)
    for term in STATES:
        if (lever, term) == ("pp", "activations"):  # as many layers' worth in flight, and nothing of the head
            continue
        assert getattr(second, term) <= getattr(first, term), (lever, term)


@given(degrees=LAYOUTS, name=NAMES)
def test_ranks_of_a_stage_sum_to_the_model(degrees: dict[str, object], name: str) -> None:
    """Optimizer states of all ranks together: 12 bytes a parameter, what is whole on tp ranks counted so often."""
    layout = Layout(**{**degrees, "tp": 1, "zero": 1})  # type: ignore[arg-type]
    found = sum(one(name, layout, 16, stage).optimizer for stage in range(layout.pp))
    params = sum(one(name, layout, 16, stage).params for stage in range(layout.pp))
    assert found == pytest.approx(12 * params / (layout.dp * layout.cp), rel=1e-6)


@given(data=st.data(), name=NAMES, recompute=st.sampled_from(["none", "selective", "full"]),
       pp=st.sampled_from([1, 4]), stack=st.sampled_from([s.name for s in list_stacks()]))  # fmt: skip
def test_arrays_are_scalars(data: st.DataObject, name: str, recompute: str, pp: int, stack: str) -> None:
    """A grid of layouts at once gives, in every place, what one layout gives."""
    model = replace(MODELS[name], stack=find_stack(stack))
    row = st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2]), st.sampled_from([8, 16]),
                    st.sampled_from([1, 2, 8]), st.booleans(), st.integers(0, 3), st.sampled_from([1, 4]),
                    st.sampled_from([1, 2, 64]))  # fmt: skip
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    tp, cp, dp, ep, sp, zero, micro_batch, batches = (np.array(column) for column in zip(*rows, strict=True))
    layout = Layout(pp=pp, recompute=recompute)

    def at(micro_batches: object, **degrees: object) -> list[StageMemory]:
        policy = Policy(recompute=recompute, copied=pp > 1, micro_batches=micro_batches)
        stages = stages_of(model.parts, layout, micro_batches)
        rank = Rank(model, Degrees(**degrees, vocab_multiple=128))  # type: ignore[arg-type]
        return [stage_memory(rank, policy, number, chunks) for number, chunks in enumerate(stages)]

    grid = at(batches, tp=tp, cp=cp, dp=dp, ep=ep, sp=sp, zero=zero, micro_batch=micro_batch)
    for place, each in enumerate(rows):
        names = ("tp", "cp", "dp", "ep", "sp", "zero", "micro_batch")
        single = at(each[-1], **dict(zip(names, each[:-1], strict=True)))
        for many, alone in zip(grid, single, strict=True):
            for field in fields(StageMemory):
                if field.name not in ("moment", "stage", "layers"):
                    found = np.broadcast_to(getattr(many, field.name), tp.shape)[place]
                    assert found == pytest.approx(getattr(alone, field.name), rel=1e-12, abs=1), field.name
