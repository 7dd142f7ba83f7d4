"""What one forward pass of a layer multiplies and moves: one function a layer kind, and the rules they share.

A convention's fields are read here and in `count`; nothing asks for its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from suanli.formulas import counting, scans
from suanli.nouns.arch import SAMPLE, Arch, Placed
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Attention,
    BlockLinear,
    CausalConv,
    Conv,
    Elementwise,
    Embedding,
    Experts,
    Layer,
    Linear,
    LinearAttention,
    Norm,
    Opaque,
    Recurrent,
    Scan,
    Similarity,
    StateSpace,
)
from suanli.nouns.workload import DTYPE_BITS, Workload


@dataclass(frozen=True, slots=True)
class Product:
    """A registered formula with the numbers put in, and what comes out."""

    formula: str
    inputs: Mapping[str, Any]
    value: Any


NOTHING = Product("", {}, 0)


def product(function: Callable[..., Any], **inputs: Any) -> Product:
    """`function(**inputs)`, remembering both; a fraction that came out whole is an int again."""
    value = function(**inputs)
    if isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    return Product(function.__name__, inputs, value)


@dataclass(frozen=True, slots=True)
class Work:
    """What one copy of a layer does in one forward pass over the batch. Sizes are elements, not bytes."""

    product: Product
    reads: int
    writes: int
    weights: int

    @property
    def flops(self) -> int:
        """Operations counted: a whole number, or a polynomial where the lengths are symbols (`symbolic`)."""
        return self.product.value  # type: ignore[no-any-return]

    @property
    def formula(self) -> str:
        """Id of the formula that counted them."""
        return self.product.formula


@dataclass(frozen=True)
class Setting:
    """A workload on an architecture: how many positions each stream has in this pass."""

    arch: Arch
    workload: Workload
    convention: Convention

    def queries(self, stream: str) -> int:
        """New positions of one sequence that pass through the layers of `stream`."""
        decoding = self.workload.phase == "decode"
        if stream == SAMPLE:
            return 0 if decoding else 1
        found = self.arch.stream(stream)
        if decoding:
            return 1 if found.decodes else 0
        return self.workload.seq + found.extra if found.length is None else found.length

    def keys(self, stream: str) -> int:
        """Positions of one sequence that a query of `stream` can look at."""
        found = self.arch.stream(stream)
        if self.workload.phase == "decode" and found.decodes:
            return self.workload.keys + found.extra
        return self.workload.seq + found.extra if found.length is None else found.length

    def sequences(self, stream: str) -> int:
        """Sequences of the whole batch: several a sample where its positions stand in copies, one where once."""
        if stream == SAMPLE:
            return self.workload.batch
        found = self.arch.stream(stream)
        return found.copies if found.once else self.workload.batch * found.copies

    def tokens(self, stream: str) -> int:
        """Positions of the whole batch."""
        return self.sequences(stream) * self.queries(stream)

    def head_tokens(self, stream: str) -> int:
        """Positions the lm head sees: in prefill only the last of each sequence."""
        return self.workload.batch if self.workload.phase == "prefill" else self.tokens(stream)


# --- one function a layer kind ------------------------------------------------------------------------------------


def _linear_work(layer: Linear, stream: str, at: Setting) -> Work:
    tokens = at.head_tokens(stream) if layer.role == "lm_head" else at.tokens(stream)
    counted = layer.role != "router" or at.convention.router
    inputs = {"tokens": tokens, "in_features": layer.in_features, "out_features": layer.out_features}
    flops = product(counting.linear_flops, **inputs) if counted else NOTHING
    return Work(flops, tokens * layer.in_features, tokens * layer.out_features, layer.weight_params)


def _embedding_work(layer: Embedding, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    flops = NOTHING
    if at.convention.embedding_as_matmul and layer.role == "token":
        flops = product(counting.linear_flops, tokens=tokens, in_features=layer.num, out_features=layer.dim)
    return Work(flops, tokens * layer.dim, tokens * layer.dim, 0)


def attended_pairs(layer: Attention, queries: int, keys: int, rule: str) -> Product:
    """Pairs of one sequence under a convention's rule: the only place that knows masks."""
    if rule == "none":
        return NOTHING
    if layer.keys is not None:
        return product(counting.full_pairs, queries=queries, keys=layer.keys)
    if layer.mask == "band" and rule == "mask":
        return product(counting.band_pairs, positions=queries, reach=layer.window or keys)
    if rule == "half" and layer.key_stream is None:  # across streams nothing is masked, so nothing is halved
        return product(counting.half_pairs, queries=queries, keys=keys)
    if rule in ("full", "half"):
        return product(counting.full_pairs, queries=queries, keys=keys)
    if layer.mask != "causal" or layer.key_stream is not None:
        seen = keys if layer.window is None else min(keys, layer.window)
        return product(counting.full_pairs, queries=queries, keys=seen)
    if layer.chunk is not None:
        return product(counting.chunked_pairs, queries=queries, keys=keys, chunk=layer.chunk)
    return product(counting.causal_pairs, queries=queries, keys=keys, window=layer.window or keys)


def _attention_work(layer: Attention, stream: str, at: Setting) -> Work:
    queries, keys = at.queries(stream), at.keys(layer.key_stream or stream)
    if queries == 0:
        return Work(NOTHING, 0, 0, 0)
    batch = at.sequences(stream)
    pairs = attended_pairs(layer, queries, keys, at.convention.pairs)
    flops = product(
        counting.attention_flops,
        pairs=batch * pairs.value,
        heads=layer.heads,
        qk_dim=layer.qk_dim,
        v_dim=layer.v_dim,
    )
    limits = [limit + queries - 1 for limit in (layer.window, layer.chunk) if limit and at.convention.pairs == "mask"]
    per_key = layer.latent_dim or layer.kv_heads * (layer.qk_dim + layer.v_dim)
    reads = batch * (queries * layer.heads * layer.qk_dim + min([keys, *limits]) * per_key)
    return Work(flops, reads, batch * queries * layer.heads * layer.v_dim, 0)


def _experts_work(layer: Experts, stream: str, at: Setting) -> Work:
    tokens, routed = at.tokens(stream), min(layer.top_k, layer.num)
    flops = product(
        counting.experts_flops,
        tokens=tokens,
        experts_per_token=routed,
        matrices=layer.matrices,
        hidden=layer.hidden,
        ffn=layer.ffn,
    )
    touched = min(layer.num, tokens * routed)  # no more experts are read than tokens ask for
    moved = tokens * routed * layer.hidden
    return Work(flops, moved, moved, touched * layer.params_per_expert)


def _conv_work(layer: Conv, stream: str, at: Setting) -> Work:
    batch = at.tokens(stream)
    flops = product(
        counting.conv_flops,
        batch=batch,
        positions=prod(layer.in_size if layer.transposed else layer.out_size),
        in_channels=layer.in_channels,
        out_channels=layer.out_channels,
        groups=layer.groups,
        kernel_size=prod(layer.kernel),
    )
    reads = batch * layer.in_channels * prod(layer.in_size)
    return Work(flops, reads, batch * layer.out_channels * prod(layer.out_size), layer.weight_params)


def _recurrent_work(layer: Recurrent, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    flops = product(
        counting.recurrent_flops,
        tokens=tokens,
        directions=layer.directions,
        depth_inputs=layer.depth_inputs(),
        gates=layer.gates,
        hidden=layer.hidden_size,
        out_size=layer.out_size,
        proj_size=layer.proj_size,
    )
    writes = tokens * layer.out_size * layer.directions * layer.num_layers
    return Work(flops, tokens * sum(layer.depth_inputs()), writes, layer.params)


def _block_linear_work(layer: BlockLinear, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    each = {"in_features": layer.in_features // layer.blocks, "out_features": layer.out_features}
    flops = product(counting.linear_flops, tokens=tokens, **each)
    return Work(flops, tokens * layer.in_features, tokens * layer.out_features, layer.weight_params)


def _causal_conv_work(layer: CausalConv, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    flops = causal_conv(layer, at.workload.batch, at.queries(stream))
    return Work(flops, tokens * layer.channels, tokens * layer.channels, layer.weight_params)


def causal_conv(layer: CausalConv, batch: int, positions: int) -> Product:
    """The convolution at `positions` of each sequence."""
    return product(
        counting.conv_flops, batch=batch, positions=positions, in_channels=layer.channels,
        out_channels=layer.channels, groups=layer.channels // layer.inputs_each, kernel_size=layer.kernel,
    )  # fmt: skip


def _scan_work(layer: Scan, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    state = 0
    if at.workload.phase == "decode" and tokens:  # the state, kept in fp32, is read and written for every token
        bits = DTYPE_BITS[at.workload.dtype]
        state = -(-at.workload.batch * layer.state_elements * DTYPE_BITS["fp32"] // bits)
    writes = tokens * layer.heads * layer.value_dim
    return Work(scan_products(layer, stream, at)[RECURRENCE], tokens * layer.read_width + state, writes + state, 0)


RECURRENCE, KERNEL, FALLBACK = "recurrence", "kernel", "fallback"


def scan_products(layer: Scan, stream: str, at: Setting) -> dict[str, Product]:
    """The three counts of a scan: its recurrence (in totals), a kernel in chunks, transformers without kernels.

    A decoded token is one step of the recurrence whoever runs it, so decoding has only that.
    """
    sizes = {"heads": layer.heads, "key_dim": layer.key_dim, "value_dim": layer.value_dim}
    steps = {"tokens": at.tokens(stream), **sizes}
    whole = {"batch": at.workload.batch, "seq": at.queries(stream), "chunk": layer.chunk, **sizes}
    recurrence = product(_RECURRENCES[layer.rule], **steps)
    if at.workload.phase == "decode":
        return {RECURRENCE: recurrence}
    if layer.rule == "sum":  # one sum for all queries: nothing to take in chunks
        return dict.fromkeys((RECURRENCE, KERNEL, FALLBACK), recurrence)
    if layer.rule == "selective":  # the kernel is the recurrence, kept in registers
        return {
            RECURRENCE: recurrence, KERNEL: recurrence, FALLBACK: product(scans.selective_fallback_flops, **steps),
        }  # fmt: skip
    groups = {"groups": layer.groups or layer.heads} if layer.rule == "ssd" else {}
    kernel, fallback = _CHUNKED[layer.rule]
    return {RECURRENCE: recurrence, KERNEL: product(kernel, **groups, **whole), FALLBACK: product(fallback, **whole)}


_RECURRENCES = {
    "decay": counting.linear_attention_flops, "mlstm": counting.linear_attention_flops,
    "sum": counting.linear_attention_flops,
    "selective": scans.state_space_flops, "ssd": scans.state_space_flops, "delta": scans.delta_rule_flops,
}  # fmt: skip
_CHUNKED: dict[str, tuple[Callable[..., int], Callable[..., int]]] = {
    "decay": (scans.linear_attention_kernel_flops, scans.linear_attention_kernel_flops),
    "mlstm": (scans.linear_attention_kernel_flops, scans.mlstm_fallback_flops),
    "ssd": (scans.ssd_kernel_flops, scans.ssd_fallback_flops),
    "delta": (scans.delta_kernel_flops, scans.delta_fallback_flops),
}


def scan_counts(at: Setting) -> dict[str, int]:
    """Forward FLOPs of all scans of the model, counted in each of the ways; empty where there are none."""
    total: dict[str, int] = {}
    for placed in at.arch.leaves():
        if isinstance(placed.layer, Scan):
            for name, found in scan_products(placed.layer, placed.stream, at).items():
                total[name] = total.get(name, 0) + placed.times * found.value
    return total


def _similarity_work(layer: Similarity, stream: str, at: Setting) -> Work:
    batch = at.tokens(stream)
    flops = product(counting.linear_flops, tokens=batch, in_features=layer.dim, out_features=batch)
    return Work(flops, 2 * batch * layer.dim, batch * batch, 0)


def _opaque_work(layer: Opaque, stream: str, at: Setting) -> Work:
    flops = product(counting.ideal_flops, multiple=2, params=layer.active, tokens=at.tokens(stream))
    return Work(flops, 0, 0, layer.active)


def _passive_work(layer: Layer, stream: str, at: Setting) -> Work:
    """Norms, activations, raw parameters: bytes move, nothing is multiplied that a convention counts."""
    moved = at.tokens(stream) * passive_width(layer)
    return Work(NOTHING, moved, moved, layer.params)


def passive_width(layer: Layer) -> int:
    """Elements a position that a layer without matmuls works on."""
    if isinstance(layer, Norm):
        return layer.dim * layer.per
    return layer.width if isinstance(layer, Elementwise) else 0


WORK: dict[type[Layer], Any] = {
    Linear: _linear_work,
    Embedding: _embedding_work,
    Attention: _attention_work,
    Experts: _experts_work,
    Conv: _conv_work,
    Recurrent: _recurrent_work,
    Similarity: _similarity_work,
    Scan: _scan_work,
    LinearAttention: _scan_work,
    StateSpace: _scan_work,
    CausalConv: _causal_conv_work,
    BlockLinear: _block_linear_work,
    Opaque: _opaque_work,
}


def layer_work(placed: Placed, at: Setting) -> Work:
    """One copy of a layer, one forward pass, under the convention's basis."""
    work: Work = WORK.get(type(placed.layer), _passive_work)(placed.layer, placed.stream, at)
    if at.convention.basis == "params" and not isinstance(placed.layer, Attention | Scan | Similarity):
        charged, tokens = charged_params(placed.layer, at.convention), at.tokens(at.arch.main_stream)
        flops = product(counting.ideal_flops, multiple=2, params=charged, tokens=tokens)
        return replace(work, product=flops if flops.value else NOTHING)
    return work


def charged_params(layer: Layer, convention: Convention) -> int:
    """Parameters of a layer that stand in the N of a 6N-style convention."""
    if isinstance(layer, Embedding):
        return layer.params if convention.embedding_params == "all" else 0
    if isinstance(layer, Linear) and layer.tied and convention.embedding_params == "output":
        return layer.weight_params + layer.params  # the head's matmul needs the table that the lookup does not
    return layer.params if convention.experts == "all" else layer.params_active
