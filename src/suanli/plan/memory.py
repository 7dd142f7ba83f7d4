"""Memory of one rank of every pipeline stage: states, activations in flight, the loss, buffers, and an allowance.

A rank holds most at one of three moments, and each is added up: at the loss (last stage only), while a block is in
backward, while the optimizer steps. `stage_memory` takes degrees that are numbers or arrays, so that one formula
explains a layout and ranks a grid of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.formulas.parallel import larger, rank_part, sharded_bytes
from suanli.kept import FP32_BYTES
from suanli.nouns.arch import Arch
from suanli.nouns.estimate import MemoryEstimate, StageMemory
from suanli.nouns.layers import Experts, Linear
from suanli.nouns.layout import Layout
from suanli.nouns.stack import Stack
from suanli.nouns.workload import DTYPE_BITS, OPTIMIZER_MOMENTS, Workload
from suanli.plan.pieces import VOCAB, Parts, Piece, parts_of
from suanli.plan.pipeline import Chunk, stages_of
from suanli.plan.sharding import (
    Degrees,
    Held,
    Kept,
    Positions,
    Storage,
    check_layout,
    degrees_of,
    held,
    kept,
    positions_of,
    rank_leaf,
    rank_positions,
)
from suanli.units import BITS_PER_BYTE

_WIDE = ("fp64", "fp32", "tf32")  # dtypes that training stores everything in; narrower ones are stored in 16 bits
_SIXTEEN_BIT_BYTES = 2


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model under a stack and a workload, taken apart once for all layouts."""

    parts: Parts
    positions: Positions
    stack: Stack
    workload: Workload
    fused_loss: bool | None = None

    @property
    def size(self) -> int:
        """Bytes of a weight as the matrices meet it, and of an activation."""
        wide = self.workload.dtype in _WIDE
        return DTYPE_BITS[self.workload.dtype] // BITS_PER_BYTE if wide else _SIXTEEN_BIT_BYTES

    @property
    def quantised(self) -> bool:
        """Whether matrices are multiplied in fewer than 16 bits."""
        return DTYPE_BITS[self.workload.dtype] < BITS_PER_BYTE * _SIXTEEN_BIT_BYTES

    @property
    def storage(self) -> Storage:
        """How activations are kept."""
        narrow = -(-DTYPE_BITS[self.workload.dtype] // BITS_PER_BYTE)
        matmul = narrow if self.quantised and self.stack.fp8_inputs else self.size
        return Storage(size=self.size, matmul_size=matmul, fused_gate=self.stack.fused_gate)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of gradient held for a parameter."""
        dtype = "bf16" if self.quantised else self.workload.dtype
        return self.stack.gradient_bytes.get(dtype, self.size)

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of optimizer state for a parameter: moments, and a master copy where weights are narrower."""
        wide = self.size >= FP32_BYTES or self.stack.fp32_weights or self.workload.optimizer == "none"
        return OPTIMIZER_MOMENTS[self.workload.optimizer] + (0 if wide else FP32_BYTES)

    @property
    def logit_bytes(self) -> int:
        """Bytes held for a logit at the loss."""
        fused = self.stack.fused_loss if self.fused_loss is None else self.fused_loss
        return self.stack.fused_loss_logit_bytes if fused else self.stack.loss_logit_bytes


def model_of(arch: Arch, workload: Workload, stack: Stack, *, fused_loss: bool | None = None) -> Model:
    """The model ready for `stage_memory`."""
    return Model(
        parts=parts_of(arch),
        positions=positions_of(arch, workload),
        stack=stack,
        workload=workload,
        fused_loss=fused_loss,
    )


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
    stages = stages_of(model.parts, layout, layout.micro_batches(global_batch))
    policy = Policy(recompute=layout.recompute, offload=layout.offload, copied=layout.pp > 1)
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


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What of a layout is no degree: recompute, offload, and whether tied tables are copied to the last stage."""

    recompute: str = "none"
    offload: bool = False
    copied: bool = field(default=False, metadata={"doc": "first and last stage are different ranks"})


def stage_memory(model: Model, at: Degrees, policy: Policy, stage: int, chunks: tuple[Chunk, ...]) -> StageMemory:
    """One rank of a stage. Every term is a number, or an array where the degrees are."""
    blocks = [kept(block.pieces, model.positions, at, model.storage, len(block.layers)) for block in model.parts.blocks]
    params = _params(model, at, policy, chunks)
    states = _states(model, at, policy, params)
    activations = sum(chunk.in_flight * _chunk_bytes(model, at, policy, chunk, blocks) for chunk in chunks)
    buffers = _buffers(model, at, policy, chunks)
    loss = _loss(model, at) if any(chunk.last for chunk in chunks) else 0
    working = _working(model, policy, chunks, blocks)
    step = model.stack.step_bytes
    steps = sharded_bytes(params.trained_dense, step, at.state_ranks)
    steps += sharded_bytes(params.trained_experts, step, at.expert_state_ranks)
    at_loss, stepping = loss > working, steps > activations + larger(loss, working)
    passing = 1 - stepping * 1
    terms = {
        **{name: states[name] for name in ("weights", "gradients", "optimizer")},
        "activations": activations * passing,
        "logits": loss * at_loss * passing,
        "working": working * (1 - at_loss * 1) * passing + steps * stepping,
        "buffers": buffers,
    }
    reserve = model.stack.reserve_fraction
    allocated = sum(terms.values())
    return StageMemory(
        stage=stage,
        layers=sum(sum(chunk.blocks) for chunk in chunks),
        params=params.dense + params.experts,
        offloaded=states["offloaded"],
        overhead=model.stack.context_bytes + (_whole(allocated * reserve) if reserve else 0),
        moment=_moment(at_loss, stepping),
        **terms,
    )


def _whole(value: Any) -> Any:
    """Rounded down to whole bytes."""
    return int(value) if isinstance(value, float) else value // 1


def _moment(at_loss: Any, stepping: Any) -> str:
    """When the peak is; of a grid, that it varies."""
    if not isinstance(at_loss, bool) or not isinstance(stepping, bool):
        return "varies"
    return "step" if stepping else "loss" if at_loss else "block"


# --- states -------------------------------------------------------------------------------------------------------


def _params(model: Model, at: Degrees, policy: Policy, chunks: tuple[Chunk, ...]) -> Held:
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


def _states(model: Model, at: Degrees, policy: Policy, params: Held) -> Mapping[str, Any]:
    """Weights, gradients and optimizer states of a rank."""
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
    optimizer = sharded(*trained, model.optimizer_bytes, 1)
    return {
        "weights": weights + (at.zero == 3) * _gathered(model, at),
        "gradients": sharded(*trained, model.gradient_bytes, 2) + (at.zero == 3) * _unreduced(model, at),
        "optimizer": 0 if policy.offload else optimizer,
        "offloaded": optimizer if policy.offload else 0,
    }


def _largest_unit(model: Model, at: Degrees) -> Any:
    """Parameters of the largest thing that is gathered at once: a block, or what is outside them (FSDP's root)."""
    most: Any = 0
    for pieces, copies in [(block.pieces, len(block.layers)) for block in model.parts.blocks]:
        found = held(pieces, at, copies)
        most = larger(most, found.dense + found.experts)
    return most


def _gathered(model: Model, at: Degrees) -> Any:
    """Bytes of weights gathered under ZeRO-3: blocks prefetched, and what lies outside the blocks."""
    outside = held(model.parts.before, at) + held(model.parts.after, at)
    return model.size * (model.stack.prefetched_blocks * _largest_unit(model, at) + outside.dense + outside.experts)


def _unreduced(model: Model, at: Degrees) -> Any:
    """Bytes of gradients of one block, not yet scattered over the ranks."""
    return model.size * _largest_unit(model, at)


# --- activations --------------------------------------------------------------------------------------------------


def _chunk_bytes(model: Model, at: Degrees, policy: Policy, chunk: Chunk, blocks: list[Kept]) -> Any:
    """What one micro-batch leaves in a chunk."""
    total: Any = 0
    for found, count, again in zip(blocks, chunk.blocks, chunk.recomputed, strict=True):
        total = total + count * found.policy(_kept_policy(model, policy), model.stack.flash)
        if policy.recompute == "full":
            everything, first = found.policy("none", model.stack.flash), found.policy("full", model.stack.flash)
            total = total + (count - again) * everything - (count - again) * first
    outside = "none" if policy.recompute == "none" else "selective"
    for here, pieces in ((chunk.first, model.parts.before), (chunk.last, model.parts.after)):
        if here:
            total = total + kept(pieces, model.positions, at, model.storage).policy(outside, model.stack.flash)
    return total


def _kept_policy(model: Model, policy: Policy) -> str:
    """What the stack means by a policy's name."""
    selective = {"scores": "selective", "matmuls": "matmuls"}[model.stack.selective]
    return selective if policy.recompute == "selective" else policy.recompute


def _working(model: Model, policy: Policy, chunks: tuple[Chunk, ...], blocks: list[Kept]) -> Any:
    """What the backward of one block makes: what recompute makes again, and gradients of its widest leaf."""
    most: Any = 0
    for kind, found in enumerate(blocks):
        if not any(chunk.blocks[kind] for chunk in chunks):
            continue
        again: Any = 0
        if policy.recompute != "none":
            everything = found.policy("none", model.stack.flash)
            again = everything - found.policy(_kept_policy(model, policy), model.stack.flash)
        most = larger(most, again + found.widest)
    return most


def _loss(model: Model, at: Degrees) -> Any:
    """At the loss: logits, what the cross-entropy makes of them, and the gradient of the head's matrix."""
    total: Any = 0
    for piece in model.parts.after:
        if piece.cut == VOCAB and isinstance(piece.layer, Linear):
            leaf = rank_leaf(piece, at)
            assert isinstance(leaf, Linear)
            tokens = rank_part(model.positions.tokens(piece.placed.stream, at.micro_batch), at.cp)
            total = total + tokens * leaf.out_features * model.logit_bytes + leaf.weight_params * model.size
    return total


# --- buffers ------------------------------------------------------------------------------------------------------


def _buffers(model: Model, at: Degrees, policy: Policy, chunks: tuple[Chunk, ...]) -> Any:
    """Placeholders, buckets, the gathered input under SP, all-to-all and pipeline boundaries."""
    stack, size = model.stack, model.size
    edge = next(block.pieces[0] for block in model.parts.blocks) if model.parts.blocks else None
    total: Any = stack.bucket_elements * size
    if stack.weight_placeholders:
        total = total + size * _matrix_shapes(model, at, chunks)
    if edge is None:
        return total
    width = _width(model)
    tokens = model.positions.tokens(edge.placed.stream, at.micro_batch)
    total = total + at.sp * rank_part(tokens, at.cp) * width * size
    if policy.copied:  # an activation and a gradient on their way in, and as many on their way out
        total = total + 2 * 2 * rank_part(tokens, at.outer_cut) * width * size
    experts = [piece for block in model.parts.blocks for piece in block.pieces if isinstance(piece.layer, Experts)]
    if experts:
        layer, piece = experts[0].layer, experts[0]
        sent = rank_positions(piece, tokens, at) * layer.top_k * layer.hidden * size
        total = total + 2 * sent * (at.ep * at.etp > 1)  # there, and back
    return total


def _width(model: Model) -> int:
    """Width of what goes from block to block: that of the first norm or matrix."""
    pieces: list[Piece] = [piece for block in model.parts.blocks for piece in block.pieces]
    for piece in pieces:
        width = getattr(piece.layer, "in_features", None) or getattr(piece.layer, "dim", None)
        if width:
            return int(width)
    return 0


def _matrix_shapes(model: Model, at: Degrees, chunks: tuple[Chunk, ...]) -> Any:
    """Elements of one matrix of each shape in the stage's blocks; q, k and v, gate and up, are one matrix each."""
    shapes: dict[tuple[int, int, str], Any] = {}
    for kind, block in enumerate(model.parts.blocks):
        if not any(chunk.blocks[kind] for chunk in chunks):
            continue
        for inputs, outputs, cut, elements in _matrices(block.pieces, at):
            shapes[inputs, outputs, cut] = elements
    return sum(shapes.values())


def _matrices(pieces: tuple[Piece, ...], at: Degrees) -> list[tuple[int, int, str, Any]]:
    found: list[tuple[int, int, str, Any]] = []
    for piece in pieces:
        leaf = rank_leaf(piece, at)
        if not isinstance(leaf, Linear) or leaf.role != "matmul":
            continue
        if leaf.shares_input and found:
            inputs, outputs, cut, elements = found.pop()
            found.append((inputs, outputs + piece.layer.out_features, cut, elements + leaf.weight_params))
        else:
            found.append((piece.layer.in_features, piece.layer.out_features, piece.cut, leaf.weight_params))
    return found
