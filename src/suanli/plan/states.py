"""What a rank holds whatever the batch: parameters, weights, gradients, optimizer states, as ZeRO shards them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.formulas.parallel import larger, sharded_bytes
from suanli.kept import FP32_BYTES
from suanli.plan.pipeline import Chunk
from suanli.plan.planned import Model, Policy
from suanli.plan.sharding import Degrees, Held, held


def held_params(model: Model, at: Degrees, policy: Policy, chunks: tuple[Chunk, ...]) -> Held:
    """Parameters a rank holds of its stage."""
    total = Held()
    here = {place for chunk in chunks for place in ("first", "last") if getattr(chunk, place)}
    for chunk in chunks:
        for block, count in zip(model.parts.blocks, chunk.blocks, strict=True):
            total += held(block.pieces, at, len(block.layers)).times(count)
    if "first" in here:
        total += held(model.parts.before, at)
    if "last" in here:  # a tied table is on both ends of a pipeline, unless one rank is both ends
        total += held(model.parts.after, at, untied=policy.copied and "first" not in here)
    return total


def held_states(model: Model, at: Degrees, policy: Policy, params: Held) -> Mapping[str, Any]:
    """Weights, gradients and optimizer states of a rank, and what a step of the optimizer makes beside them."""
    dense, experts = at.state_ranks, at.expert_state_ranks

    def sharded(dense_params: Any, expert_params: Any, each: int, stage: int) -> Any:
        over = at.zero >= stage
        return sharded_bytes(dense_params, each, 1 + (dense - 1) * over) + sharded_bytes(
            expert_params, each, 1 + (experts - 1) * over
        )

    trained = (params.trained_dense, params.trained_experts)
    total = (params.dense, params.experts)
    if model.stack.fp32_weights:  # sharded in fp32; gathered in the dtype, for good unless ZeRO-3 frees them
        weights = sharded(*total, FP32_BYTES, 2) + (at.zero == 2) * sum(total) * model.size
    else:
        weights = sharded(*total, model.size, 3)
    weights = weights + FP32_BYTES * params.buffers
    if model.quantised:
        weights = weights + params.matrices * model.stack.fp8_copy_bytes
    gradients, optimizer = sharded(*trained, model.gradient_bytes, 2), sharded(*trained, model.optimizer_bytes, 1)
    away = policy.offload * model.stack.offloads_gradients * (at.zero >= 2)
    return {
        "weights": weights + (at.zero == 3) * gathered(model, at),
        "gradients": gradients * (1 - away),
        "optimizer": optimizer * (1 - policy.offload),
        "offloaded": optimizer * policy.offload + gradients * away,
        "stepping": sharded(*trained, model.stack.step_bytes, 1) * (1 - policy.offload),
    }


def largest_block(model: Model, at: Degrees) -> Any:
    """Parameters of the largest block."""
    most: Any = 0
    for pieces, copies in [(block.pieces, len(block.layers)) for block in model.parts.blocks]:
        found = held(pieces, at, copies)
        most = larger(most, found.dense + found.experts)
    return most


def gathered(model: Model, at: Degrees) -> Any:
    """Bytes of weights gathered under ZeRO-3: blocks prefetched, and the larger of what is before and after them."""
    outside = [held(pieces, at) for pieces in (model.parts.before, model.parts.after)]
    before, after = (each.dense + each.experts for each in outside)
    blocks = min(model.stack.prefetched_blocks, model.parts.num_layers)
    return model.size * (blocks * largest_block(model, at) + larger(before, after))
