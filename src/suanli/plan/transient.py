"""What passes through a rank: activations kept, what a block's backward and the loss make, buffers."""

from __future__ import annotations

from typing import Any

from suanli.formulas.parallel import larger, rank_part
from suanli.nouns.layers import Experts, Linear
from suanli.plan.pieces import VOCAB, Piece
from suanli.plan.pipeline import Chunk
from suanli.plan.planned import Model, Policy, Rank
from suanli.plan.sharding import Degrees, Kept, rank_leaf, rank_positions


def chunk_bytes(rank: Rank, policy: Policy, chunk: Chunk) -> Any:
    """What one micro-batch leaves in a chunk."""
    stack, full = rank.model.stack, policy.recompute == "full"
    rest = "none" if full else policy.recompute  # of the blocks that full recompute does not make again
    total: Any = 0
    for kind, found in enumerate(rank.blocks):
        again = chunk.recomputed[kind] if full else 0
        total = total + again * _left(rank.model, "full", found)
        total = total + (chunk.blocks[kind] - again) * _left(rank.model, rest, found)
        if rest == "selective" and stack.selective == "matmuls":
            known = chunk.tail if rank.model.workload.dtype in stack.opaque_dtypes else chunk.blocks
            total = total + known[kind] * found.products
    if stack.keeps_outputs and policy.copied and not chunk.last:
        total = total + boundary_bytes(rank)
    outside = "none" if policy.recompute == "none" else "scores"
    for here, found in zip((chunk.first, chunk.last), rank.outside, strict=True):
        total = total + found.policy(outside, stack.flash) * here
    return total


def _left(model: Model, recompute: str, found: Kept) -> Any:
    """What a policy leaves of a block, results of products apart."""
    selective = {"matmuls": "attention"}.get(model.stack.selective, model.stack.selective)
    return found.policy(selective if recompute == "selective" else recompute, model.stack.flash)


def working_bytes(rank: Rank, policy: Policy, chunks: tuple[Chunk, ...]) -> Any:
    """What the backward of one block makes: what recompute makes again, gradients of its widest leaf, and from ZeRO-2
    on its weights' gradients before they are scattered."""
    model, most = rank.model, 0
    for kind, found in enumerate(rank.blocks):
        if any(chunk.blocks[kind] for chunk in chunks):
            again = found.policy("none", model.stack.flash) - _left(model, policy.recompute, found)
            most = larger(most, again + found.widest)
    return most + (rank.at.zero >= 2) * model.size * rank.largest_block


def loss_bytes(rank: Rank) -> Any:
    """At the loss: logits, what the cross-entropy makes of them, and the gradient of the head's matrix."""
    model, at, total = rank.model, rank.at, 0
    for piece in model.parts.after:
        if piece.cut == VOCAB and isinstance(piece.layer, Linear):
            leaf = rank_leaf(piece, at)
            assert isinstance(leaf, Linear)
            tokens = rank_part(model.positions.tokens(piece.placed.stream, at.micro_batch), at.cp)
            total = total + tokens * leaf.out_features * model.logit_bytes + leaf.weight_params * model.size
    return total


# --- buffers ------------------------------------------------------------------------------------------------------


def buffer_bytes(rank: Rank, policy: Policy, chunks: tuple[Chunk, ...]) -> Any:
    """Placeholders, buckets, the gathered input under SP, all-to-all and pipeline boundaries."""
    model, at, stack, size = rank.model, rank.at, rank.model.stack, rank.model.size
    total: Any = stack.bucket_elements * size
    if stack.weight_placeholders:
        total = total + size * _matrix_shapes(model, at, chunks)
    total = total + at.sp * rank_part(_edge_positions(model, at), at.cp) * _width(model) * size
    if policy.copied:  # an activation and a gradient on their way in, and as many on their way out
        total = total + 2 * 2 * boundary_bytes(rank)
    experts = [piece for block in model.parts.blocks for piece in block.pieces if isinstance(piece.layer, Experts)]
    if experts:
        layer = experts[0].layer
        sent = rank_positions(experts[0], _edge_positions(model, at), at) * layer.top_k * layer.hidden * size
        total = total + 2 * sent * (at.ep * at.etp > 1)  # there, and back
    return total


def boundary_bytes(rank: Rank) -> Any:
    """What one micro-batch hands from stage to stage."""
    model, at = rank.model, rank.at
    return rank_part(_edge_positions(model, at), at.outer_cut) * _width(model) * model.size


def _edge_positions(model: Model, at: Degrees) -> Any:
    """Positions of a micro-batch between two blocks."""
    streams = [block.pieces[0].placed.stream for block in model.parts.blocks]
    return model.positions.tokens(streams[0], at.micro_batch) if streams else 0


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
