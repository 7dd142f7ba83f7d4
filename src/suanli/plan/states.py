"""What a rank holds whatever the batch: parameters, weights, gradients, optimizer states, as ZeRO shards them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.formulas.parallel import larger, sharded_bytes
from suanli.kept import FP32_BYTES
from suanli.plan.pipeline import Chunk
from suanli.plan.planned import Policy, Rank
from suanli.plan.sharding import Held


def held_params(rank: Rank, policy: Policy, chunks: tuple[Chunk, ...]) -> Held:
    """Parameters a rank holds of its stage."""
    total = Held()
    first, last = (any(getattr(chunk, place) for chunk in chunks) for place in ("first", "last"))
    for chunk in chunks:
        for block, count in zip(rank.held_blocks, chunk.blocks, strict=True):
            total += block.times(count)
    before, after = rank.held_outside
    total += before if first else Held()
    if last:  # a tied table is on both ends of a pipeline, unless one rank is both ends
        total += rank.held_apart if policy.copied and not first else after
    return total


def held_states(rank: Rank, policy: Policy, params: Held) -> Mapping[str, Any]:
    """Weights, gradients and optimizer states of a rank, and what a step of the optimizer makes beside them; `whole`
    are gradients that ZeRO shards before they are: a part of them stands while micro-batches add up.
    """
    model, at = rank.model, rank.at
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
        "weights": weights + (at.zero == 3) * gathered(rank),
        "gradients": gradients * (1 - away),
        "whole": (at.zero >= 2) * sum(trained) * model.gradient_bytes,
        "optimizer": optimizer * (1 - policy.offload),
        "offloaded": optimizer * policy.offload + gradients * away,
        "stepping": sharded(*trained, model.stack.step_bytes, 1) * (1 - policy.offload),
    }


def gathered(rank: Rank) -> Any:
    """Bytes of weights gathered under ZeRO-3: blocks prefetched, and the larger of what is before and after them."""
    before, after = (each.dense + each.experts for each in rank.held_outside)
    blocks = min(rank.model.stack.prefetched_blocks, rank.model.parts.num_layers)
    return rank.model.size * (blocks * rank.largest_block + larger(before, after))
