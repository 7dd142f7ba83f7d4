"""A training software stack: what it keeps in memory beside the model's books, as data with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SELECTIVE = ("scores", "matmuls", "light")
# When gradients that ZeRO shards are scattered.
MICRO_BATCH, TURN, STEP = "micro-batch", "turn", "step"
SCATTERS = (MICRO_BATCH, TURN, STEP)


def _field(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack. `sources` says for every field where its value comes from."""

    name: str = _field("", "what it is called")
    title: str = _field("", "what it is, and from when")
    sources: Mapping[str, str] = _field("", "where each value comes from, by field")

    # what it can run
    schedules: tuple[str, ...] = _field("", "orders of a pipeline's passes that it can run")
    zero: tuple[int, ...] = _field("", "ZeRO stages it can run")
    pipeline_zero: tuple[int, ...] = _field("", "those it can run with a pipeline; none: it has no pipeline")
    hybrid: tuple[int, ...] = _field("", "ZeRO stages that can shard over fewer ranks than there are replicas (HSDP)")
    offloads: bool = _field("", "optimizer states can live in the host's memory")
    block_recompute: bool = _field("", "full recompute can be of the first layers of every chunk only")
    scatters: str = _field("", "when sharded gradients are scattered: " + ", ".join(SCATTERS))
    pipeline_scatters: str = _field("", "the same with a pipeline")

    # states
    fp32_weights: bool = _field("", "weights are held in fp32 and gathered in the dtype (FSDP): no master copy beside")
    gradient_bytes: Mapping[str, int] = _field("bytes", "gradients held for a parameter, by dtype of training")
    fp8_copy_bytes: int = _field("bytes", "8-bit copies held for an element of a matrix when training in fp8")
    step_bytes: int = _field("bytes", "made for a sharded parameter while the optimizer steps")
    frees_gradients: bool = _field("", "gradients are freed after a step, and made anew through the first backward")
    offloads_gradients: bool = _field("", "offload takes sharded gradients to the host with the optimizer's states")
    vocab_multiple: int = _field("rows", "embedding tables are padded to this times tp; 1: as they are")

    # activations
    flash: bool = _field("", "attention stores no scores")
    fused_gate: bool = _field("", "a gated MLP keeps the gate and what it gates, and makes its activation again")
    fp8_inputs: bool = _field("", "inputs of matrices are kept in 8 bits when training in fp8")
    selective: str = _field("", "what selective recompute makes again: " + ", ".join(SELECTIVE))
    opaque_dtypes: tuple[str, ...] = _field("", "dtypes whose products selective recompute of matmuls does not know")
    tail_fraction: Mapping[str, float] = _field("fraction", "last blocks that stay in 16 bits, by dtype of training")
    keeps_outputs: bool = _field("", "what a stage sends on is held until its backward")
    loss_logit_bytes: int = _field("bytes", "held for a logit at the loss")
    fused_loss_logit_bytes: int = _field("bytes", "the same with a fused cross-entropy")
    fused_loss: bool = _field("", "whether the cross-entropy is fused unless said otherwise")

    # buffers
    weight_placeholders: bool = _field("", "one 16-bit tensor is kept for each shape of a block's matrices")
    bucket_elements: int = _field("elements", "buckets of gradients and weights beside the states, in the dtype")
    prefetched_blocks: int = _field("blocks", "gathered at once where weights are sharded")

    # allowance
    context_bytes: int = _field("bytes", "CUDA context, libraries and communicators, outside torch's allocator")
    reserve_fraction: float = _field("fraction", "what the allocator reserves beyond what it has given out")
