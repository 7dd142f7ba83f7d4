"""A model under a stack: sizes by dtype, states of a parameter, tails; and what passes through a rank, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from suanli.catalog.stacks import find_stack
from suanli.nouns.arch import Arch
from suanli.nouns.layout import Layout
from suanli.nouns.workload import Workload
from suanli.plan.pipeline import stages_of
from suanli.plan.planned import Policy, Rank, model_of
from suanli.plan.sharding import Degrees
from suanli.plan.transient import boundary_bytes, buffer_bytes, loss_bytes, working_bytes
from suanli.readers.model import read_model

CORE, TITAN, DEEP = (find_stack(name) for name in ("megatron-core", "torchtitan", "deepspeed"))
LLAMA, MIXTRAL = read_model("llama-3-8b"), read_model("mixtral-8x7b")

# dtype, stack: bytes of an activation, of a matmul's kept input, of a gradient, of optimizer states
SIZES = [
    ("bf16", "megatron-core", (2, 2, 4, 12)),
    ("fp8", "megatron-core", (2, 1, 4, 12)),
    ("nvfp4", "megatron-core", (2, 1, 4, 12)),  # kept in whole bytes
    ("fp32", "megatron-core", (4, 4, 4, 8)),
    ("fp64", "megatron-core", (8, 8, 8, 8)),
    ("fp16", "deepspeed", (2, 2, 2, 12)),
    ("bf16", "torchtitan", (2, 2, 4, 8)),  # fp32 weights are their own master copy
    ("mxfp8", "torchtitan", (2, 2, 4, 8)),
]


@pytest.mark.parametrize(("dtype", "stack", "sizes"), SIZES)
def test_sizes(dtype: str, stack: str, sizes: tuple[int, ...]) -> None:
    model = model_of(LLAMA, Workload(phase="train", dtype=dtype), find_stack(stack))
    storage = model.storage
    assert (storage.size, storage.matmul_size, model.gradient_bytes, model.optimizer_bytes) == sizes


def test_optimizers() -> None:
    for optimizer, each in (("adamw-bf16", 8), ("sgd", 4), ("none", 0), ("lion", 8)):
        model = model_of(LLAMA, Workload(phase="train", optimizer=optimizer), CORE)
        assert model.optimizer_bytes == each


def test_tails() -> None:
    """torchtitan's nvfp4 recipe: 6 of 36 blocks of Qwen3-8B, 5 of 32 of Llama-3-8B stay in bf16."""
    for name, blocks in (("qwen3-8b", 6), ("llama-3-8b", 5)):
        assert model_of(read_model(name), Workload(phase="train", dtype="nvfp4"), TITAN).tail == blocks
    assert model_of(LLAMA, Workload(phase="train", dtype="mxfp8"), TITAN).tail == 0


def rank(arch: object, stack: object, **degrees: object) -> Rank:
    return Rank(model_of(arch, Workload(phase="train", seq=1024), stack), Degrees(**degrees))  # type: ignore[arg-type]


ONE = 1024 * 4096 * 2  # bytes of an activation between two blocks of Llama-3-8B and Mixtral


def test_boundaries() -> None:
    assert boundary_bytes(rank(LLAMA, CORE)) == ONE
    assert boundary_bytes(rank(LLAMA, CORE, tp=8)) == ONE  # whole on every rank,
    assert boundary_bytes(rank(LLAMA, CORE, tp=8, sp=True, cp=2, micro_batch=4)) == 4 * ONE // 16  # or cut


def buffers(found: Rank, pp: int = 1) -> int:
    chunks = stages_of(found.model.parts, Layout(pp=pp), 8)[0]
    return int(buffer_bytes(found, Policy(copied=pp > 1), chunks))


def test_buffers() -> None:
    plain = replace(CORE, weight_placeholders=False)
    assert buffers(rank(LLAMA, plain)) == 0
    assert buffers(rank(LLAMA, plain), pp=2) == 4 * ONE  # an activation and a gradient, in and out
    assert buffers(rank(LLAMA, plain, tp=2, sp=True)) == ONE  # the input gathered
    assert buffers(rank(LLAMA, DEEP)) == 2 * 10**9
    assert buffers(rank(MIXTRAL, plain)) == 0
    assert buffers(rank(MIXTRAL, plain, ep=8, dp=8)) == 2 * 2 * ONE  # two experts a token, there and back
    assert buffers(rank(MIXTRAL, replace(plain, weight_placeholders=True))) == 2 * (4096 * 6144 + 4096 * 4096)


def test_working() -> None:
    """Gradients around Llama's gate; under full recompute a block again; from ZeRO-2 on its weights' gradients."""
    chunks = stages_of(rank(LLAMA, CORE).model.parts, Layout(), 8)[0]
    gate = 1024 * 2 * 2 * 14336
    assert working_bytes(rank(LLAMA, CORE), Policy(), chunks) == gate
    block = rank(LLAMA, CORE).blocks[0]
    again = block.policy("none", True) - block.policy("full", True)
    assert working_bytes(rank(LLAMA, CORE), Policy(recompute="full"), chunks) == gate + again
    assert working_bytes(rank(LLAMA, CORE, zero=2), Policy(), chunks) == gate + 2 * 218_112_000


def test_loss_is_cut_by_tp_and_cp() -> None:
    whole = loss_bytes(rank(LLAMA, CORE))
    assert whole == 128256 * (1024 * 6 + 4096 * 2)
    assert loss_bytes(rank(LLAMA, CORE, tp=8, cp=2)) == 128256 // 8 * (512 * 6 + 4096 * 2)


# --- what is kept from one question to the next -------------------------------------------------------------------


def test_the_same_question_finds_the_same_model() -> None:
    arch, work = replace(LLAMA), Workload(phase="train", seq=4096)
    first = model_of(arch, work, CORE)
    assert model_of(arch, replace(work), CORE) is first
    others = [model_of(arch, work, TITAN), model_of(arch, replace(work, seq=8192), CORE),
              model_of(arch, work, CORE, fused_loss=True), model_of(replace(LLAMA), work, CORE)]  # fmt: skip
    assert len({id(each) for each in (first, *others)}) == 5


def test_a_model_keeps_few_and_forgets_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    arch = replace(LLAMA)
    for seq in range(1, 20):
        model_of(arch, Workload(phase="train", seq=seq), CORE)
    assert len(arch.__dict__["_models"]) == 8
    monkeypatch.setattr("suanli.plan.planned._MOST", 2)
    model = model_of(arch, Workload(phase="train"), CORE)
    for tp in (1, 2, 4, 8):
        assert Rank(model, Degrees(tp=tp)).blocks == Rank(model, Degrees(tp=tp, dp=4, zero=1)).blocks
    assert len(model.known) <= 2


@pytest.mark.parametrize("arch", [LLAMA, MIXTRAL], ids=["dense", "experts"])
def test_ranks_that_share_what_matters_share_what_they_keep(arch: Arch) -> None:
    model = model_of(replace(arch), Workload(phase="train", seq=4096), CORE)
    one, other = (Rank(model, Degrees(tp=2, dp=dp, zero=zero)) for dp, zero in ((2, 0), (8, 3)))
    for name in ("blocks", "outside", "held_blocks", "held_outside"):
        assert getattr(one, name) is getattr(other, name), name
    wide = Rank(model, Degrees(tp=2, micro_batch=2))
    assert wide.blocks[0].linear == 2 * one.blocks[0].linear


def test_a_rank_of_arrays_gives_those_asked_for() -> None:
    model = model_of(MIXTRAL, Workload(phase="train", seq=4096), CORE)
    tp, ep = np.array([1.0, 2.0, 4.0]), np.array([1.0, 8.0, 2.0])
    found = Rank(model, Degrees(tp=tp, ep=ep, dp=8 + 0 * tp)).take(np.array([2, 0]))
    alone = Rank(model, Degrees(tp=tp[[2, 0]], ep=ep[[2, 0]], dp=8 + 0 * tp[:2]))
    assert found.at.tp.tolist() == [4, 1]
    assert found.largest_block.tolist() == alone.largest_block.tolist()
    assert [each.dense.tolist() for each in found.held_outside] == [each.dense.tolist() for each in alone.held_outside]


def test_a_zero_stage_changes_nothing_of_what_is_kept() -> None:
    rank = Rank(model_of(LLAMA, Workload(phase="train", seq=4096), CORE), Degrees(tp=np.array([1.0, 2.0])))
    blocks, found = rank.blocks, rank.sharded(2)
    assert (found.at.zero, rank.at.zero) == (2, 0)
    assert found.blocks is blocks
