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
from suanli.plan.pipeline import Chunk, stages_of
from suanli.plan.planned import Model, Policy, model_of
from suanli.plan.sharding import Degrees, check_layout, degrees_of, kept
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
    at = degrees_of(layout, vocab_multiple=stack.vocab_multiple, imbalance=imbalance)
    micro_batches = layout.micro_batches(global_batch)
    stages = stages_of(model.parts, layout, micro_batches, model.tail)
    policy = Policy(
        recompute=layout.recompute, offload=layout.offload, copied=layout.pp > 1, micro_batches=micro_batches
    )
    assumed = (
        [f"expert ranks differ by a factor of {imbalance:g} at most"]
        if any(isinstance(piece.layer, Experts) for block in model.parts.blocks for piece in block.pieces)
        else []
    )
    return MemoryEstimate(
        layout=layout.short,
        stack=stack.name,
        stages=tuple(stage_memory(model, at, policy, stage, chunks) for stage, chunks in enumerate(stages)),
        capacity=capacity,
        assumed=tuple(assumed),
        reasons={} if capacity is not None else dict.fromkeys(("fits", "margin"), "no device, hence no capacity"),
    )


def stage_memory(model: Model, at: Degrees, policy: Policy, stage: int, chunks: tuple[Chunk, ...]) -> StageMemory:
    """One rank of a stage. Every term is a number, or an array where the degrees are."""
    blocks = [kept(block.pieces, model.positions, at, model.storage, len(block.layers)) for block in model.parts.blocks]
    params = held_params(model, at, policy, chunks)
    states = held_states(model, at, policy, params)
    activations = sum(chunk.in_flight * chunk_bytes(model, at, policy, chunk, blocks) for chunk in chunks)
    loss = loss_bytes(model, at) if any(chunk.last for chunk in chunks) else 0
    working = working_bytes(model, at, policy, chunks, blocks)
    # Gradients that are freed after a step are not there yet when the only micro-batch holds most.
    early = states["gradients"] * (policy.micro_batches > 1 if model.stack.frees_gradients else 1)
    stepping = states["stepping"] + states["gradients"] > activations + larger(loss, working) + early
    passing, at_loss = 1 - stepping * 1, (loss > working) * 1
    terms = {
        "weights": states["weights"],
        "gradients": states["gradients"] * stepping + early * passing,
        "optimizer": states["optimizer"],
        "activations": activations * passing,
        "logits": loss * at_loss * passing,
        "working": working * (1 - at_loss) * passing + states["stepping"] * stepping,
        "buffers": buffer_bytes(model, at, policy, chunks),
    }
    return StageMemory(
        stage=stage,
        layers=sum(sum(chunk.blocks) for chunk in chunks),
        params=params.dense + params.experts,
        offloaded=states["offloaded"],
        reserve=_whole(sum(terms.values()) * model.stack.reserve_fraction),
        context=model.stack.context_bytes,
        moment=_moment(at_loss, stepping),
        **terms,
    )


def _whole(value: Any) -> Any:
    """Rounded down to whole bytes."""
    return int(value) if isinstance(value, float) else value // 1


def _moment(at_loss: Any, stepping: Any) -> str:
    """When the peak is; of a grid, that it varies."""
    if not isinstance(at_loss, int) or not isinstance(stepping, int):
        return "varies"
    return "step" if stepping else "loss" if at_loss else "block"
