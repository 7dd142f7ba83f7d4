"""`count`: a model and a workload, under a convention, become a ledger whose rows close.

One function a layer kind says what a forward pass multiplies (`WORK`); passes, recompute and conventions are
applied to that in one place (`build_ledger`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from suanli.errors import Fault, InputError
from suanli.formulas import all_formulas, counting
from suanli.nouns.arch import (
    SAMPLE,
    Arch,
    Attention,
    Conv,
    Embedding,
    Experts,
    Layer,
    Linear,
    LinearAttention,
    Module,
    Opaque,
    Placed,
    Recurrent,
    Similarity,
    split_first,
)
from suanli.nouns.convention import Convention
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger, Op, Uncounted
from suanli.nouns.workload import DTYPE_BITS, Workload

BITS_PER_BYTE = 8


@dataclass(frozen=True, slots=True)
class Work:
    """What one copy of a layer does in one forward pass over the batch. Sizes are elements, not bytes."""

    flops: int
    reads: int
    writes: int
    weights: int
    formula: str


@dataclass(frozen=True)
class Setting:
    """A workload on an architecture: how many positions each stream has in this pass."""

    arch: Arch
    workload: Workload
    convention: Convention

    def queries(self, stream: str) -> int:
        """New positions of one sample that pass through the layers of `stream`."""
        decoding = self.workload.phase == "decode"
        if stream == SAMPLE:
            return 0 if decoding else 1
        found = self.arch.stream(stream)
        if decoding:
            return 1 if found.decodes else 0
        return self.workload.seq if found.length is None else found.length

    def keys(self, stream: str) -> int:
        """Positions of one sample that a query of `stream` can look at."""
        found = self.arch.stream(stream)
        if self.workload.phase == "decode" and found.decodes:
            return self.workload.keys
        return self.workload.seq if found.length is None else found.length

    def tokens(self, stream: str) -> int:
        """Positions of the whole batch."""
        return self.workload.batch * self.queries(stream)

    def head_tokens(self, stream: str) -> int:
        """Positions the lm head sees: in prefill only the last of each sequence."""
        return self.workload.batch if self.workload.phase == "prefill" else self.tokens(stream)


# --- one function a layer kind ------------------------------------------------------------------------------------


def _linear_work(layer: Linear, stream: str, at: Setting) -> Work:
    tokens = at.head_tokens(stream) if layer.role == "lm_head" else at.tokens(stream)
    flops = counting.linear_flops(tokens, layer.in_features, layer.out_features)
    if layer.role == "router" and not at.convention.router:
        flops = 0
    return Work(flops, tokens * layer.in_features, tokens * layer.out_features, layer.weight_params, "linear_flops")


def _embedding_work(layer: Embedding, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    charged = at.convention.embedding_as_matmul and layer.role == "token"
    flops = counting.linear_flops(tokens, layer.num, layer.dim) if charged else 0
    return Work(flops, tokens * layer.dim, tokens * layer.dim, 0, "linear_flops" if charged else "")


def attended_pairs(layer: Attention, queries: int, keys: int, rule: str) -> tuple[int, str]:
    """Pairs of one sequence under a convention's rule, and the formula: the only place that knows masks.

    `half` is a trapezium of T·(2S−T)/2 pairs, S²/2 when T = S; it is even or odd, so twice it is returned as
    `half_pairs` and the caller halves the FLOPs.
    """
    causal = layer.mask == "causal" and layer.key_stream is None
    if rule == "none":
        return 0, "full_pairs"
    if rule == "half":
        return queries * (2 * keys - queries), "half_pairs"
    if rule == "full":
        return counting.full_pairs(queries, keys), "full_pairs"
    if not causal:
        seen = keys if layer.window is None else min(keys, layer.window)
        return counting.full_pairs(queries, seen), "full_pairs"
    if layer.chunk is not None:
        return counting.chunked_pairs(queries, keys, layer.chunk), "chunked_pairs"
    return counting.causal_pairs(queries, keys, layer.window or keys), "causal_pairs"


def _attention_work(layer: Attention, stream: str, at: Setting) -> Work:
    queries, keys = at.queries(stream), at.keys(layer.key_stream or stream)
    if queries == 0:
        return Work(0, 0, 0, 0, "attention_flops")
    pairs, rule = attended_pairs(layer, queries, keys, at.convention.pairs)
    flops = counting.attention_flops(at.workload.batch * pairs, layer.heads, layer.qk_dim, layer.v_dim)
    if rule == "half_pairs":
        flops //= 2  # attention_flops is a multiple of 2
    near = keys if layer.window is None or at.convention.pairs != "mask" else min(keys, layer.window + queries - 1)
    per_key = layer.latent_dim or layer.kv_heads * (layer.qk_dim + layer.v_dim)
    batch = at.workload.batch
    reads = batch * (queries * layer.heads * layer.qk_dim + near * per_key)
    return Work(flops, reads, batch * queries * layer.heads * layer.v_dim, 0, "attention_flops")


def _experts_work(layer: Experts, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    routed = min(layer.top_k, layer.num)
    matrices = 3 if layer.gated else 2
    flops = counting.experts_flops(tokens, routed, matrices, layer.hidden, layer.ffn)
    touched = min(layer.num, tokens * routed)  # no more experts are read than tokens ask for
    moved = tokens * routed * layer.hidden
    return Work(flops, moved, moved, touched * layer.params_per_expert, "experts_flops")


def _conv_work(layer: Conv, stream: str, at: Setting) -> Work:
    batch = at.tokens(stream)
    positions = prod(layer.in_size if layer.transposed else layer.out_size)
    flops = counting.conv_flops(
        batch, positions, layer.in_channels, layer.out_channels, layer.groups, prod(layer.kernel)
    )
    reads = batch * layer.in_channels * prod(layer.in_size)
    return Work(flops, reads, batch * layer.out_channels * prod(layer.out_size), layer.weight_params, "conv_flops")


def _recurrent_work(layer: Recurrent, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    flops = counting.recurrent_flops(
        tokens,
        layer.directions,
        layer.depth_inputs(),
        layer.gates,
        layer.hidden_size,
        layer.out_size,
        layer.proj_size,
    )
    writes = tokens * layer.out_size * layer.directions * layer.num_layers
    return Work(flops, tokens * sum(layer.depth_inputs()), writes, layer.params, "recurrent_flops")


def _linear_attention_work(layer: LinearAttention, stream: str, at: Setting) -> Work:
    tokens = at.tokens(stream)
    flops = counting.linear_attention_flops(tokens, layer.heads, layer.key_dim, layer.value_dim)
    reads = tokens * layer.heads * (2 * layer.key_dim + layer.value_dim)
    return Work(flops, reads, tokens * layer.heads * layer.value_dim, 0, "linear_attention_flops")


def _similarity_work(layer: Similarity, stream: str, at: Setting) -> Work:
    batch = at.tokens(stream)
    return Work(
        counting.linear_flops(batch, layer.dim, batch),
        2 * batch * layer.dim,
        batch * batch,
        0,
        "linear_flops",
    )


def _opaque_work(layer: Opaque, stream: str, at: Setting) -> Work:
    return Work(counting.ideal_flops(2, layer.active, at.tokens(stream)), 0, 0, layer.active, "ideal_flops")


def _passive_work(layer: Layer, stream: str, at: Setting) -> Work:
    """Norms, activations, raw parameters: bytes move, nothing is multiplied that a convention counts."""
    moved = at.tokens(stream) * passive_width(layer)
    return Work(0, moved, moved, layer.params, "")


def passive_width(layer: Layer) -> int:
    """Elements a position that a layer without matmuls works on."""
    width = getattr(layer, "width", None) or getattr(layer, "dim", 0)
    return int(width) * int(getattr(layer, "per", 1))


WORK: dict[type[Layer], Any] = {
    Linear: _linear_work,
    Embedding: _embedding_work,
    Attention: _attention_work,
    Experts: _experts_work,
    Conv: _conv_work,
    Recurrent: _recurrent_work,
    Similarity: _similarity_work,
    LinearAttention: _linear_attention_work,
    Opaque: _opaque_work,
}


def layer_work(placed: Placed, at: Setting) -> Work:
    """One copy of a layer, one forward pass, under the convention's basis."""
    work: Work = WORK.get(type(placed.layer), _passive_work)(placed.layer, placed.stream, at)
    if at.convention.basis == "params" and not isinstance(placed.layer, Attention | LinearAttention | Similarity):
        charged = charged_params(placed.layer, at.convention)
        flops = counting.ideal_flops(2, charged, at.tokens(at.arch.main_stream))
        return replace(work, flops=flops, formula="ideal_flops" if flops else "")
    return work


def charged_params(layer: Layer, convention: Convention) -> int:
    """Parameters of a layer that stand in the N of a 6N-style convention."""
    if isinstance(layer, Embedding):
        return layer.params if convention.embedding_params == "all" else 0
    if isinstance(layer, Linear) and layer.tied and convention.embedding_params == "output":
        return layer.weight_params + layer.params  # the head's matmul needs the table that the lookup does not
    return layer.params if convention.experts == "all" else layer.params_active


# --- passes -------------------------------------------------------------------------------------------------------


@dataclass
class _Gradients:
    """Walks the layers in order and tells which inputs need a gradient: those behind something trainable."""

    needed: bool = False
    input_needed: bool = False

    def step(self, layer: Layer) -> bool:
        """Whether this layer's input needs a gradient; then moves past it."""
        if not layer.shares_input:
            self.input_needed = self.needed
        self.needed = self.needed or (layer.trainable and layer.params + _tied(layer) > 0)
        return self.input_needed


def _tied(layer: Layer) -> int:
    return layer.weight_params if isinstance(layer, Linear) and layer.tied else 0


def backward_multiple(layer: Layer, input_needs_grad: bool, convention: Convention) -> int:
    """Backward FLOPs over forward FLOPs: one product for the input's gradient, one for the weight's.

    Products of two activations (attention) have two inputs and no weights: two products each, or none.
    """
    if not convention.exact_backward:
        return 2
    if isinstance(layer, Attention | LinearAttention | Similarity):
        return 2 * int(input_needs_grad)
    weight = layer.trainable and not (isinstance(layer, Embedding))
    return int(input_needs_grad) + int(weight)


def placed_layers(arch: Arch) -> Iterator[Placed]:
    """Leaves in order; where layers may differ in what needs a gradient, the first copy stands apart."""
    if all(placed.layer.trainable for placed in arch.leaves()):
        return iter(arch.leaves())
    return iter(replace(arch, root=_split(arch.root)).leaves())


def _split(module: Module) -> Module:
    children: list[Module | Layer] = []
    for child in module.children:
        children.extend(split_first(_split(child)) if isinstance(child, Module) else (child,))
    return replace(module, children=tuple(children))


def _rows(placed: Placed, at: Setting, gradients: _Gradients) -> Iterator[Op]:
    """Forward, backward and recompute rows of one leaf."""
    work, times = layer_work(placed, at), placed.times
    input_needed = gradients.step(placed.layer)
    size = DTYPE_BITS[at.workload.dtype]

    def op(pass_: str, model: int, hardware: int, reads: int, writes: int, params: int) -> Op:
        bytes_read, bytes_written = (-(-elements * times * size // BITS_PER_BYTE) for elements in (reads, writes))
        return Op(
            placed.path, placed.layer.kind, pass_, model * times, hardware * times, bytes_read, bytes_written,
            params * times, times, work.formula,
        )  # fmt: skip

    reads = work.reads + work.weights
    yield op(FORWARD, work.flops, work.flops, reads, work.writes, placed.layer.params)
    if at.workload.phase != "train":
        return
    multiple = backward_multiple(placed.layer, input_needed, at.convention)
    flops = multiple * work.flops
    if multiple and (flops or work.reads):
        yield op(BACKWARD, flops, flops, multiple * (work.writes + reads), multiple * work.reads + work.weights, 0)
    again = recomputed(placed, at)
    if again:
        in_figure = work.flops if at.convention.recompute_blocks else 0
        yield op(RECOMPUTE_PASS, in_figure, work.flops, reads, work.writes, 0)


def recomputed(placed: Placed, at: Setting) -> bool:
    """Whether a layer's forward is done again before backward, under the policy (or the convention's own)."""
    policy = "full" if at.convention.recompute_blocks else at.workload.recompute
    if policy == "selective":
        return isinstance(placed.layer, Attention)  # scores and context only, arXiv:2205.05198 §5
    if policy == "full":
        return placed.in_block or at.convention.basis == "params"
    return False


def build_ledger(arch: Arch, workload: Workload, convention: Convention) -> Ledger:
    """The ledger of one pass (or training step) over the batch. Raises InputError where the phase cannot be."""
    check_phase(arch, workload)
    at = Setting(arch, workload, convention)
    if convention.basis == "closed":
        return _closed_ledger(at)
    gradients = _Gradients()
    rows = tuple(row for placed in placed_layers(arch) for row in _rows(placed, at, gradients))
    ledger = Ledger(rows, convention.name, uncounted(at))
    assert ledger.params == arch.params_total, "rows must hold every parameter once"
    return ledger


def check_phase(arch: Arch, workload: Workload) -> None:
    """Refuse to decode with a model that produces no tokens one after another."""
    if workload.phase == "decode" and not arch.decodes:
        raise InputError(
            Fault(
                code="phase_impossible",
                message=f"{arch.name} does not decode",
                where="--phase",
                got="decode",
                expected="forward or train",
                hint="Only decoders produce one token after another.",
            )
        )


def _closed_ledger(at: Setting) -> Ledger:
    """A trainer's closed formula as a ledger: one row a pass, and one row of parameters a leaf is not given."""
    formula = all_formulas()[at.convention.closed_form or ""]
    forward, backward = formula.function(**closed_form_values(at))
    tokens = at.tokens(at.arch.main_stream)
    passes = [(FORWARD, forward * tokens, at.arch.params_total)]
    if at.workload.phase == "train":
        passes.append((BACKWARD, backward * tokens, 0))
        if at.workload.recompute == "full":
            passes.append((RECOMPUTE_PASS, forward * tokens, 0))
    rows = tuple(
        Op(
            "model",
            "closed form",
            name,
            0 if name == RECOMPUTE_PASS else flops,
            flops,
            0,
            0,
            params,
            1,
            formula.id,
        )
        for name, flops, params in passes
    )
    return Ledger(rows, at.convention.name, ())


def closed_form_values(at: Setting) -> dict[str, int]:
    """The letters a closed formula asks for. Raises InputError where the model has no such letters."""
    shape = at.arch.shape
    if shape is None:
        raise InputError(
            Fault(
                code="convention_impossible",
                message=f"convention {at.convention.name} needs a transformer's L, h, H, V; {at.arch.name} has none",
                where="--convention",
                expected="causal, full, palm, 6n or 6n-all",
            )
        )
    known = {
        "num_layers": shape.num_layers, "hidden": shape.hidden, "heads": shape.heads, "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "ffn": shape.ffn, "vocab": shape.vocab, "params": at.arch.params_total,
        "seq": at.keys(at.arch.main_stream),
    }  # fmt: skip
    wanted = all_formulas()[at.convention.closed_form or ""].legend
    return {name: known[name] for name in wanted}


def uncounted(at: Setting) -> tuple[Uncounted, ...]:
    """What the totals leave out, with its size: elementwise work, norms, softmax, lookups, biases."""
    norms = elements = softmax = lookups = biases = 0
    for placed in at.arch.leaves():
        layer, tokens = placed.layer, at.tokens(placed.stream) * placed.times
        if layer.kind == "norm":
            norms += tokens * passive_width(layer)
        elif layer.kind == "elementwise":
            elements += tokens * passive_width(layer)
        elif isinstance(layer, Embedding):
            lookups += tokens * layer.dim
        elif isinstance(layer, Attention) and tokens:
            keys = at.keys(layer.key_stream or placed.stream)
            pairs, _ = attended_pairs(layer, at.queries(placed.stream), keys, "mask")
            softmax += at.workload.batch * pairs * layer.heads * placed.times
        elif isinstance(layer, Linear) and layer.bias:
            biases += tokens * layer.out_features
    found = (
        Uncounted("norms", norms, "elements normalised; no matmul"),
        Uncounted("activations and pooling", elements, "elements passed through; no matmul"),
        Uncounted("softmax", softmax, "scores exponentiated and summed; no matmul"),
        Uncounted("embedding lookups", lookups, "elements copied; a gather, not a product"),
        Uncounted("bias additions", biases, "one add an element; no matmul"),
    )
    return tuple(item for item in found if item.operations)
