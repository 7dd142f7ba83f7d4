"""Building blocks that every family is put together from: norms, attention, MLPs, experts, stacks of layers.

Each function returns leaves with dotted names as in the PyTorch model. Families say names and shapes; they do no
arithmetic of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from suanli.nouns.arch import Module
from suanli.nouns.layers import Attention, Buffer, Elementwise, Embedding, Experts, Layer, Linear, Norm, Parameter

Node = Module | Layer
Kind = TypeVar("Kind", bound=Hashable)


def dotted(at: str, name: str) -> str:
    """`at.name`, or `name` where there is no `at`."""
    return f"{at}.{name}" if at else name


FUSED_GATES = ("gate_up_proj", "Wi", "input_linear")  # names of a projection that holds gate and up
GATED_ACTIVATIONS = 3  # kept for backward: gate, act(gate), up; their product is kept as the next matrix's input


def norm(name: str, dim: int, kind: str = "rms", per: int = 1) -> Norm:
    """`rms` (scale), `layer` (scale and shift), `layer_no_bias` (scale), `plain` (no parameters)."""
    return Norm(name=name, dim=dim, weight=kind != "plain", bias=kind == "layer", per=per)


OWN, BORROWED, KEYS_ONLY = "own", "borrowed", "keys_only"  # where an attention's keys and values come from


@dataclass(frozen=True, kw_only=True)
class AttentionNames:
    """Where the projections of an attention live."""

    at: str = "self_attn"
    q: str = "q_proj"
    k: str = "k_proj"
    v: str = "v_proj"
    o: str = "o_proj"
    fused: str | None = None


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """Shape of an attention. `qk_norm`: None, `head` (one norm of a head's width) or `full` (all heads' width)."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    names: AttentionNames = AttentionNames()
    qkv_bias: bool = False
    k_bias: bool = True  # only read where qkv_bias holds (Whisper's keys have none)
    o_bias: bool = False
    qk_norm: str | None = None
    qk_norm_kind: str = "rms"
    qk_norm_names: tuple[str, str] = ("q_norm", "k_norm")
    mask: str = "causal"
    window: int | None = None
    chunk: int | None = None
    sinks: bool = False
    dropout: bool = False
    keys: str = OWN  # or those of another layer, or values that are the keys
    key_stream: str | None = None
    key_width: int | None = None
    v_dim: int | None = None  # width of a value head where it is not that of a key head
    differential: bool = False  # every map is computed for both halves of the value heads (arXiv:2410.05258)
    gate: str | None = None  # a projection whose output scales the attention's: one number an element, or a head
    gate_per_head: bool = False
    gate_bias: bool = False
    sub_norm: str | None = None  # a norm between the attention and its output projection


def attention(spec: AttentionSpec) -> tuple[Node, ...]:
    """Projections, optional norms of queries and keys, the attention itself, the output projection."""
    names = spec.names
    query, key = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    v_dim = spec.v_dim or spec.head_dim
    out_width = spec.heads * v_dim
    core = Attention(
        name=f"{names.at}.attention",
        heads=spec.heads,
        kv_heads=0 if spec.keys == BORROWED else spec.kv_heads,  # what is borrowed is not cached again
        qk_dim=spec.head_dim,
        v_dim=v_dim,
        mask=spec.mask,
        window=spec.window,
        chunk=spec.chunk,
        key_stream=spec.key_stream,
        dropout=spec.dropout,
    )
    if spec.differential:  # two kernels of all heads, over one cache
        cached = spec.kv_heads * (spec.head_dim + v_dim)
        core = replace(core, qk_dim=2 * spec.head_dim, v_dim=2 * v_dim, latent_dim=cached)
    sinks = (Parameter(name=f"{names.at}.sinks", shape=(spec.heads,)),) if spec.sinks else ()
    out = Linear(name=dotted(names.at, names.o), in_features=out_width, out_features=spec.hidden, bias=spec.o_bias)
    between = (norm(dotted(names.at, spec.sub_norm), out_width),) if spec.sub_norm else ()
    projections = _projections(spec, query, key, spec.kv_heads * v_dim)
    return (*projections, *_qk_norms(spec), *_gate(spec, out_width), *sinks, core, *between, out)


def _gate(spec: AttentionSpec, width: int) -> tuple[Node, ...]:
    if spec.gate is None:
        return ()
    out = spec.heads if spec.gate_per_head else width
    name = dotted(spec.names.at, spec.gate)
    return (Linear(name=name, in_features=spec.hidden, out_features=out, bias=spec.gate_bias),)


def _projections(spec: AttentionSpec, query: int, key: int, value: int) -> tuple[Node, ...]:
    names, bias = spec.names, spec.qkv_bias
    if names.fused is not None:
        width = query + key + value
        return (Linear(name=dotted(names.at, names.fused), in_features=spec.hidden, out_features=width, bias=bias),)
    source = spec.key_width or spec.hidden
    crossing = spec.key_stream is not None
    q = Linear(name=dotted(names.at, names.q), in_features=spec.hidden, out_features=query, bias=bias)
    k = Linear(
        name=dotted(names.at, names.k), in_features=source, out_features=key, bias=bias and spec.k_bias,
        shares_input=not crossing,
    )  # fmt: skip
    v = Linear(name=dotted(names.at, names.v), in_features=source, out_features=value, bias=bias, shares_input=True)
    if crossing:  # keys and values are projected once for each position of the other stream
        return (q, Module(name="", children=(k, v), stream=spec.key_stream))
    return {OWN: (q, k, v), KEYS_ONLY: (q, k), BORROWED: (q,)}[spec.keys]


def _qk_norms(spec: AttentionSpec) -> tuple[Norm, ...]:
    found = _both_norms(spec)
    return found[:1] if spec.keys == BORROWED else found


def _both_norms(spec: AttentionSpec) -> tuple[Norm, ...]:
    if spec.qk_norm is None:
        return ()
    kind = spec.qk_norm_kind
    q, k = (dotted(spec.names.at, name) for name in spec.qk_norm_names)
    if spec.qk_norm == "head":
        return (
            norm(q, spec.head_dim, kind, per=spec.heads),
            norm(k, spec.head_dim, kind, per=spec.kv_heads),
        )
    return (
        norm(q, spec.heads * spec.head_dim, kind),
        norm(k, spec.kv_heads * spec.head_dim, kind),
    )


@dataclass(frozen=True, kw_only=True)
class LatentSpec:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434 §2.1), expanded as training and prefill run it."""

    hidden: int
    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    bias: bool = False
    at: str = "self_attn"
    index_heads: int = 0  # an indexer of that many heads chooses the keys (DeepSeek-V3.2)
    index_dim: int = 0
    sinks: bool = False
    gate: str | None = None
    gate_per_head: bool = False
    rope_norm: str | None = None
    window: int | None = None
    query_gate: str | None = None  # queries and gate in one projection, from the latent before and after its norm


def latent_attention(spec: LatentSpec) -> tuple[Node, ...]:
    """Down and up projections of queries and of the joint key/value latent, attention, output."""
    at, qk_dim = spec.at, spec.nope_dim + spec.rope_dim
    query: tuple[Node, ...]
    if spec.q_rank is None:
        query = (Linear(name=f"{at}.q_proj", in_features=spec.hidden, out_features=spec.heads * qk_dim),)
    else:
        up = Linear(name=f"{at}.q_b_proj", in_features=spec.q_rank, out_features=spec.heads * qk_dim)
        if spec.query_gate:
            name, width = f"{at}.{spec.query_gate}", spec.heads * (qk_dim + spec.v_dim)
            up = Linear(name=name, in_features=2 * spec.q_rank, out_features=width)
        query = (
            Linear(name=f"{at}.q_a_proj", in_features=spec.hidden, out_features=spec.q_rank, bias=spec.bias),
            norm(f"{at}.q_a_layernorm", spec.q_rank),
            up,
        )
    latent, width = spec.kv_rank + spec.rope_dim, spec.heads * spec.v_dim
    return (
        *query,
        Linear(name=f"{at}.kv_a_proj_with_mqa", in_features=spec.hidden, out_features=latent, bias=spec.bias),
        norm(f"{at}.kv_a_layernorm", spec.kv_rank),
        Linear(
            name=f"{at}.kv_b_proj", in_features=spec.kv_rank, out_features=spec.heads * (spec.nope_dim + spec.v_dim)
        ),
        *((norm(f"{at}.{spec.rope_norm}", spec.rope_dim),) if spec.rope_norm else ()),
        *((Parameter(name=f"{at}.sinks", shape=(spec.heads,)),) if spec.sinks else ()),
        *_latent_gate(spec, width),
        *_indexer(spec),
        Attention(
            name=f"{at}.attention", heads=spec.heads, kv_heads=spec.heads, qk_dim=qk_dim, v_dim=spec.v_dim,
            latent_dim=latent, window=spec.window,
        ),
        Linear(name=f"{at}.o_proj", in_features=width, out_features=spec.hidden, bias=spec.bias),
    )  # fmt: skip


def _latent_gate(spec: LatentSpec, width: int) -> tuple[Node, ...]:
    if spec.gate is None:
        return ()
    out = spec.heads if spec.gate_per_head else width
    return (Linear(name=f"{spec.at}.{spec.gate}", in_features=spec.hidden, out_features=out),)


def _indexer(spec: LatentSpec) -> tuple[Node, ...]:
    """The scorer that chooses keys: one key head for all, its heads' scores summed by learned weights. It takes no
    gradient from the model's loss, and its last product adds one multiplication a head and pair to `index_dim`.
    """
    if not spec.index_heads:
        return ()
    at, heads, dim = f"{spec.at}.indexer", spec.index_heads, spec.index_dim
    source = spec.q_rank or spec.hidden
    return (
        Linear(name=f"{at}.wq_b", in_features=source, out_features=heads * dim, detached=True),
        Linear(name=f"{at}.wk", in_features=spec.hidden, out_features=dim, detached=True),
        norm(f"{at}.k_norm", dim, "layer"),
        Linear(name=f"{at}.weights_proj", in_features=spec.hidden, out_features=heads, detached=True),
        Attention(name=f"{at}.scores", heads=heads, kv_heads=1, qk_dim=dim, v_dim=1, latent_dim=dim, detached=True),
    )


def mlp(
    hidden: int,
    ffn: int,
    *,
    at: str = "mlp",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
    dropout: bool = False,
    sub_norm: str | None = None,
    fused: bool = False,
) -> tuple[Node, ...]:
    """Three names: gated; two: plain, or gated where gate and up are `fused` or the first name is known to be so."""
    if len(names) == 3:
        first: tuple[Node, ...] = (
            Linear(name=dotted(at, names[0]), in_features=hidden, out_features=ffn, bias=bias),
            Linear(name=dotted(at, names[1]), in_features=hidden, out_features=ffn, bias=bias, shares_input=True),
        )
        act = Elementwise(name=dotted(at, "act"), op="gated", width=ffn, saved=GATED_ACTIVATIONS * ffn)
    elif fused or names[0] in FUSED_GATES:
        first = (Linear(name=dotted(at, names[0]), in_features=hidden, out_features=2 * ffn, bias=bias),)
        act = Elementwise(name=dotted(at, "act"), op="gated", width=ffn, saved=GATED_ACTIVATIONS * ffn)
    else:
        first = (Linear(name=dotted(at, names[0]), in_features=hidden, out_features=ffn, bias=bias),)
        act = Elementwise(name=dotted(at, "act"), op="activation", width=ffn, saved=ffn)
    last = Linear(name=dotted(at, names[-1]), in_features=ffn, out_features=hidden, bias=bias)
    between = (norm(dotted(at, sub_norm), ffn),) if sub_norm else ()
    return (*first, act, *between, last, *(dropped(dotted(at, "dropout"), hidden) if dropout else ()))


def dropped(name: str, width: int) -> tuple[Elementwise, ...]:
    """A dropout: one byte of mask an element is kept for backward."""
    return (Elementwise(name=name, op="dropout", width=width, mask_bytes=width),)


@dataclass(frozen=True, kw_only=True)
class MoeSpec:
    """Routed experts, their router, and what every token passes besides."""

    hidden: int
    experts: int
    top_k: int
    ffn: int
    at: str = "mlp"
    gate: str = "gate"
    gate_bias: bool = False
    gated: bool = True
    bias: bool = False
    shared_ffn: int = 0
    shared: str = "shared_experts"
    shared_names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    shared_inside: bool = True  # the shared expert's name stands below `at`
    shared_bias: bool = False
    shared_gate: str | None = None
    correction_bias: str | None = None
    correction_trained: bool = False  # held as a parameter, not as a buffer


def reading_block(feed: tuple[Node, ...]) -> tuple[Node, ...]:
    """An MLP beside the attention: what reads its input reads what entered the block."""
    found: list[Node] = []
    entered = False  # the first matrix of a dense MLP or of the shared expert
    for node in feed:
        first = isinstance(node, Linear) and node.role == "matmul" and not (node.shares_input or entered)
        entered = entered or first
        routed = isinstance(node, Experts) or (isinstance(node, Linear) and node.role == "router")
        found.append(replace(node, reads_block=True) if isinstance(node, Layer) and (first or routed) else node)
    return tuple(found)


def moe(spec: MoeSpec) -> tuple[Node, ...]:
    """Router, experts, shared expert with its gate."""
    at = spec.at
    router = Linear(
        name=dotted(at, spec.gate),
        in_features=spec.hidden,
        out_features=spec.experts,
        bias=spec.gate_bias,
        role="router",
    )
    experts = Experts(
        name=dotted(at, "experts"), num=spec.experts, top_k=spec.top_k, hidden=spec.hidden, ffn=spec.ffn,
        gated=spec.gated, bias=spec.bias,
    )  # fmt: skip
    kept = Elementwise(
        name=dotted(at, "experts.act"), op="gated" if spec.gated else "activation", width=spec.top_k * spec.ffn,
        saved=(GATED_ACTIVATIONS if spec.gated else 1) * spec.top_k * spec.ffn,
    )  # fmt: skip
    nodes: list[Node] = [router, experts, kept]
    if spec.correction_bias:
        kept_bias = Parameter if spec.correction_trained else Buffer
        nodes.append(kept_bias(name=f"{at}.{spec.correction_bias}", shape=(spec.experts,)))
    if spec.shared_ffn:
        names = spec.shared_names if spec.gated else spec.shared_names[1:]
        where = dotted(at, spec.shared) if spec.shared_inside else spec.shared
        nodes.extend(mlp(spec.hidden, spec.shared_ffn, at=where, names=names, bias=spec.shared_bias))
    if spec.shared_gate:
        nodes.append(Linear(name=f"{at}.{spec.shared_gate}", in_features=spec.hidden, out_features=1, role="router"))
    return tuple(nodes)


def stack(
    name: str, kinds: Sequence[Kind], make: Callable[[Kind], tuple[Node, ...]], **module: object
) -> tuple[Module, ...]:
    """Numbered layers, equal ones held once: `kinds` says what each layer is, `make` builds one of a kind."""
    groups: dict[Kind, list[int]] = {}
    for index, kind in enumerate(kinds):
        groups.setdefault(kind, []).append(index)
    return tuple(
        Module(name=name, children=make(kind), indices=_compact(indices), block=True, **module)  # type: ignore[arg-type]
        for kind, indices in groups.items()
    )


def _compact(indices: list[int]) -> Sequence[int]:
    """A range where the indices are evenly spaced: it costs nothing to hold."""
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    even = range(indices[0], indices[-1] + 1, step)
    return even if len(even) == len(indices) and list(even) == indices else tuple(indices)


def again(nodes: tuple[Node, ...], *, detached: bool = False) -> tuple[Node, ...]:
    """The same nodes run once more: their products and keys count again, their weights do not. Experts cannot be."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Module):
            found.append(replace(node, children=again(node.children, detached=detached)))
        elif isinstance(node, Linear):
            found.append(replace(node, tied=True, bias=False, detached=detached))
        elif isinstance(node, Embedding):
            found.append(replace(node, tied=True))
        elif isinstance(node, Norm):
            found.append(replace(node, weight=False, bias=False))
        elif isinstance(node, Attention | Elementwise):
            found.append(replace(node, detached=detached))
        else:
            assert isinstance(node, Parameter | Buffer), "only weights that can be tied run again"
    return tuple(found)


def renamed(nodes: tuple[Node, ...], prefix: str) -> tuple[Node, ...]:
    """The same nodes under a dotted prefix."""
    return tuple(replace(node, name=f"{prefix}.{node.name}" if node.name else node.name) for node in nodes)
