"""Memory of one rank of every pipeline stage: states, activations in flight, the loss, buffers, and an allowance.

A rank holds most at one of three moments, and each is added up: at the loss (last stage only), while a block is in
backward, while the optimizer steps. `stage_memory` takes degrees that are numbers or arrays, so that one formula
explains a layout and ranks a grid of them.
"""

from __future__ import annotations

from typing import Any

from suanli.formulas.parallel import larger
from suanli.nouns.arch import Arch
from suanli.nouns.estimate import MemoryEstimate, StageMemory
from suanli.nouns.layers import Experts
from suanli.nouns.layout import Layout
from suanli.nouns.stack import Stack
from suanli.nouns.workload import Workload
from suanli.plan.accumulation import whole_fraction
from suanli.plan.pipeline import Chunk, stages_of
from suanli.plan.planned import Model, Policy, Rank, model_of
from suanli.plan.sharding import check_layout, degrees_of
from suanli.plan.states import held_params, held_states
from suanli.plan.transient import buffer_bytes, chunk_bytes, loss_bytes, working_bytes


def memory_estimate(
    arch: Arch,
    workload: Workload,
    layout: Layout,
    stack: Stack,
    *,
    global_batch: int,
    capacity: int | None = None,
    imbalance: float = 1,
    fused_loss: bool | None = None,
) -> MemoryEstimate:
    """Memory of every stage. Raises InputError listing what the layout cannot cut of the model or the batch."""
    model = model_of(arch, workload, stack, fused_loss=fused_loss)
    check_layout(model.parts, layout, workload.seq)
    rank = Rank(model, degrees_of(layout, vocab_multiple=stack.vocab_multiple, imbalance=imbalance))
    micro_batches = layout.micro_batches(global_batch)
    stages = stages_of(model.parts, layout, micro_batches, model.tail)
    policy = Policy(
        recompute=layout.recompute, offload=layout.offload, copied=layout.pp > 1, micro_batches=micro_batches,
        whole=whole_fraction(stack, layout.pp, layout.vpp, micro_batches),
    )  # fmt: skip
    mixed = any(isinstance(piece.layer, Experts) for block in model.parts.blocks for piece in block.pieces)
    return MemoryEstimate(
        layout=layout.short,
        stack=stack.name,
        stages=tuple(stage_memory(rank, policy, stage, chunks) for stage, chunks in enumerate(stages)),
        capacity=capacity,
        assumed=(f"the busiest expert rank has {imbalance:g} times the mean of tokens",) if mixed else (),
        reasons={} if capacity is not None else dict.fromkeys(("fits", "margin"), "no device, hence no capacity"),
    )


def stage_memory(rank: Rank, policy: Policy, stage: int, chunks: tuple[Chunk, ...]) -> StageMemory:
    """One rank of a stage. Every term is a number, or an array where the degrees are."""
    params = held_params(rank, policy, chunks)
    states = held_states(rank, policy, params)
    activations = sum(chunk.in_flight * chunk_bytes(rank, policy, chunk) for chunk in chunks)
    loss = loss_bytes(rank) if any(chunk.last for chunk in chunks) else 0
    working = working_bytes(rank, policy, chunks)
    # Gradients that are freed after a step are not there yet when the only micro-batch holds most.
    stack = rank.model.stack
    early = states["gradients"] * (policy.micro_batches > 1 if stack.frees_gradients else 1)
    early = early + whole_bytes(states["whole"], policy.whole)
    stepping = states["stepping"] + states["gradients"] > activations + larger(loss, working) + early
    passing, at_loss = 1 - stepping * 1, (loss > working) * 1
    terms = {
        "weights": states["weights"],
        "gradients": states["gradients"] * stepping + early * passing,
        "optimizer": states["optimizer"],
        "activations": activations * passing,
        "logits": loss * at_loss * passing,
        "working": working * (1 - at_loss) * passing + states["stepping"] * stepping,
        "buffers": buffer_bytes(rank, policy, chunks),
    }
    return StageMemory(
        stage=stage,
        layers=sum(sum(chunk.blocks) for chunk in chunks),
        params=params.dense + params.experts,
        offloaded=states["offloaded"],
        reserve=reserve_bytes(rank.model, sum(terms.values())),
        context=stack.context_bytes,
        moment=_moment(at_loss, stepping),
        **terms,
    )


def peak_bytes(kept_bytes: Any, loss: Any, working: Any, gradients: Any, early: Any, stepping: Any) -> Any:
    """What a rank holds beside weights, optimizer and buffers when it holds most: the terms of `stage_memory` that
    depend on the moment, added up. `early` is what of the gradients is there before the optimizer steps.
    """
    return larger(stepping + gradients, kept_bytes + larger(loss, working) + early)


def whole_bytes(whole: Any, fraction: Any) -> Any:
    """Of gradients that are sharded in the end, what stands whole while micro-batches add up."""
    return _whole(whole * fraction)


def reserve_bytes(model: Model, allocated: Any) -> Any:
    """What the allocator reserves beyond what it has given out."""
    return _whole(allocated * model.stack.reserve_fraction)


def _whole(value: Any) -> Any:
    """Rounded down to whole bytes."""
    if isinstance(value, float):
        return int(value)
    if isinstance(value, int):
        return value
    import numpy as np  # noqa: PLC0415  an array: `//` takes a hundred times as long

    return np.floor(value)


def _moment(at_loss: Any, stepping: Any) -> str:
    """When the peak is; of a grid, that it varies."""
    if not isinstance(at_loss, int) or not isinstance(stepping, int):
        return "varies"
    return "step" if stepping else "loss" if at_loss else "block"
