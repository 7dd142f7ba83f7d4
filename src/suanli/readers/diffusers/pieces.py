"""What denoisers are put together from: embedders of the step and of the prompt, modulation, attention, feed-forward.

Each function returns nodes with dotted names as in diffusers, placed in the stream they run in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from suanli.nouns.arch import SAMPLE, TOKENS, Module
from suanli.nouns.layers import Attention, Conv, Elementwise, Layer, Linear, Norm, Parameter
from suanli.readers.blocks import GATED_ACTIVATIONS, Node, dotted, norm
from suanli.readers.config import Config, StandIn
from suanli.readers.diffusers.canvas import FRAMES, JOINT, PAIR, PATCHES, Canvas, Size

Nodes = tuple[Node, ...]

SINUSOIDS = 256  # width of a step's sinusoids where a class fixes it
SHIFTS = 6  # vectors that modulate a block: shift, scale and gate of its attention and of its feed-forward
SIZES = 6  # numbers that tell of a picture: height and width of the original, of the crop's corner, of the target


def over(stream: str, *nodes: Node) -> Module:
    """Nodes that run at each position of a stream."""
    return Module(name="", stream=stream, children=nodes)


def linear(name: str, into: int, out: int, *, bias: bool = True, raw: bool = False) -> Linear:
    """A matrix; `raw` where it reads what no gradient is wanted of."""
    return Linear(name=name, in_features=into, out_features=out, bias=bias, raw_input=raw)


def act(name: str, width: int, *, gated: bool = False) -> Elementwise:
    """An activation of that width; a gated one keeps gate, its activation and what it scales."""
    saved = GATED_ACTIVATIONS * width if gated else width
    return Elementwise(name=name, op="gated" if gated else "activation", width=width, saved=saved)


def modulated(before: Norm, *, gated: bool = True) -> Module:
    """A norm whose result is scaled and shifted; `gated` where what is made of it is scaled again on its way back.
    Both products keep what they scale for backward.
    """
    width = before.dim
    kept = Elementwise(name=f"{before.name}.shift", op="modulation", width=width, saved=(2 if gated else 1) * width)
    return Module(name="", children=(before, kept))


def plain(name: str, width: int, *, gated: bool = True) -> Module:
    """A norm without weights, as stands before a modulation."""
    return modulated(norm(name, width, "plain"), gated=gated)


def layer_norm(name: str, width: int, affine: bool) -> Norm:
    """A layer norm, with scale and shift where `affine`."""
    return norm(name, width, "layer" if affine else "plain")


def without_backward(nodes: Nodes) -> Nodes:
    """The same layers where nothing reads their result: they run, and no gradient comes back."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Layer):
            found.append(replace(node, detached=True))
        else:
            found.append(replace(node, children=without_backward(node.children)))
    return tuple(found)


# --- embedders and modulation -------------------------------------------------------------------------------------


def two_matrices(
    at: str, into: int, hidden: int, out: int | None = None, *, bias: bool = True, raw: bool = True
) -> Nodes:
    """`linear_1`, an activation, `linear_2`: how steps, guidance, sizes and prompts are embedded."""
    return (
        linear(dotted(at, "linear_1"), into, hidden, bias=bias, raw=raw),
        act(dotted(at, "act"), hidden),
        linear(dotted(at, "linear_2"), hidden, hidden if out is None else out, bias=bias),
    )


def embedders(at: str, hidden: int, *, guidance: bool = False, pooled: int | None = None, bias: bool = True) -> Nodes:
    """The step's embedding, that of the guidance, and that of a pooled prompt of `pooled` channels, once a sample."""
    nodes = two_matrices(f"{at}.timestep_embedder", SINUSOIDS, hidden, bias=bias)
    if guidance:
        nodes = (*nodes, *two_matrices(f"{at}.guidance_embedder", SINUSOIDS, hidden, bias=bias))
    if pooled is not None:
        nodes = (*nodes, *two_matrices(f"{at}.text_embedder", pooled, hidden))
    return (over(SAMPLE, *nodes),)


def modulation(name: str, into: int, out: int, *, bias: bool = True, stream: str = SAMPLE) -> Module:
    """Shifts, scales and gates from the conditioning: an activation and a matrix, once a sample."""
    return over(stream, act(f"{name}.silu", into), linear(name, into, out, bias=bias))


def single_modulation(at: str, hidden: int, *, sizes: bool = False) -> Nodes:
    """One modulation for all blocks (PixArt-α, arXiv:2310.00426 §2.3); with the picture's size where `sizes`."""
    nodes = two_matrices(f"{at}.emb.timestep_embedder", SINUSOIDS, hidden)
    extra: Nodes = ()
    if sizes:
        third = hidden // 3
        extra = (
            over(PAIR, *two_matrices(f"{at}.emb.resolution_embedder", SINUSOIDS, third)),
            over(SAMPLE, *two_matrices(f"{at}.emb.aspect_ratio_embedder", SINUSOIDS, third)),
        )
    return over(SAMPLE, *nodes), *extra, modulation(f"{at}.linear", hidden, SHIFTS * hidden)


def final_modulation(hidden: int, conditioning: int, *, bias: bool = True, at: str = "norm_out") -> Nodes:
    """Scale and shift before the last matrix."""
    return modulation(f"{at}.linear", conditioning, 2 * hidden, bias=bias), over(
        PATCHES, plain(f"{at}.norm", hidden, gated=False)
    )


def patch_conv(name: str, channels: int, hidden: int, canvas: Canvas, patch: Size, *, bias: bool = True) -> Module:
    """A convolution that cuts the latent into patches; one over pictures runs for every latent frame."""
    cells = canvas.grid[-len(patch) :]
    conv = Conv(
        name=name, in_channels=channels, out_channels=hidden, kernel=patch, out_size=cells, bias=bias, raw_input=True,
        in_size=tuple(count * extent for count, extent in zip(cells, patch, strict=True)),
    )  # fmt: skip
    return over(FRAMES if len(canvas.grid) > len(patch) else SAMPLE, conv)


# --- attention ----------------------------------------------------------------------------------------------------

# What a norm of queries and keys is called in diffusers: its kind, and whether it goes over all heads at once.
QK_NORMS = {
    "rms_norm": ("rms", False), "layer_norm": ("layer", False), "fp32_layer_norm": ("plain", False),
    "plain_layer_norm": ("plain", False), "l2": ("plain", False), "rms_norm_across_heads": ("rms", True),
    "layer_norm_across_heads": ("layer", True),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Heads:
    """An attention: `hidden` is the width it reads and leaves, `dim` a head's; `norm` a name of `QK_NORMS` or None."""

    hidden: int
    heads: int
    dim: int
    kv_heads: int | None = None
    bias: bool = True
    out_bias: bool = True
    norm: str | None = None

    @property
    def inner(self) -> int:
        """Width of all query heads."""
        return self.heads * self.dim

    @property
    def keys(self) -> int:
        """Width of all key heads."""
        return (self.kv_heads or self.heads) * self.dim

    def qk_norm(self, name: str, heads: int | None = None) -> Nodes:
        """The norm of queries, or of keys of so many heads."""
        if self.norm is None:
            return ()
        kind, across = QK_NORMS[self.norm]
        number = heads or self.heads
        return (norm(name, number * self.dim, kind),) if across else (norm(name, self.dim, kind, per=number),)

    def core(self, at: str, key_stream: str | None = None) -> Attention:
        """Every query with every key."""
        return Attention(
            name=f"{at}.attention", heads=self.heads, kv_heads=self.kv_heads or self.heads, qk_dim=self.dim,
            v_dim=self.dim, mask="full", key_stream=key_stream,
        )  # fmt: skip


def read_heads(config: Config, heads: int, dim: int) -> tuple[int, int, int]:
    """Number of heads, width of a head, and width of all."""
    number = config.whole("num_attention_heads", default=heads, high=1_000_000)
    each = config.whole("attention_head_dim", default=dim)
    return number, each, number * each


def nullable(config: Config, name: str, default: int | None) -> int | None:
    """A number that may be null, which is not the same as absent: only then it is the class's default."""
    return config.maybe(name) if name in config.values else default


def read_channels(config: Config, into: int, out: int | None = None) -> tuple[int, int]:
    """Channels of the latent that comes in and of what goes out; as many where out is null."""
    channels = config.whole("in_channels", default=into)
    return channels, nullable(config, "out_channels", out) or channels


def read_qk_norm(config: Config, default: str | None = None) -> str | None:
    """The norm of queries and keys that a config names; null is none."""
    return (
        None
        if "qk_norm" in config.values and not config.has("qk_norm")
        else (config.choice("qk_norm", tuple(QK_NORMS), default or "") or None)
    )


def qkv(at: str, spec: Heads, *, into: int | None = None) -> Nodes:
    """Queries, keys and values of one tensor."""
    width = spec.hidden if into is None else into
    key = linear(f"{at}.to_k", width, spec.keys, bias=spec.bias)
    value = linear(f"{at}.to_v", width, spec.keys, bias=spec.bias)
    return (
        linear(f"{at}.to_q", width, spec.inner, bias=spec.bias),
        replace(key, shares_input=True),
        replace(value, shares_input=True),
        *spec.qk_norm(f"{at}.norm_q"),
        *spec.qk_norm(f"{at}.norm_k", spec.kv_heads),
    )


def self_attention(at: str, spec: Heads, stream: str = PATCHES, *, out: bool = True) -> Module:
    """The positions of a stream among themselves; no output matrix where what follows has its own (not `out`)."""
    last = (linear(f"{at}.to_out.0", spec.inner, spec.hidden, bias=spec.out_bias),) if out else ()
    return over(stream, *qkv(at, spec), spec.core(at), *last)


def cross_attention(
    at: str, spec: Heads, width: int, *, stream: str = PATCHES, keys: str = TOKENS, raw: bool = False
) -> Nodes:
    """Positions of one stream look at those of another, of `width` channels; `raw` where these come from outside."""
    return (
        over(stream, linear(f"{at}.to_q", spec.hidden, spec.inner, bias=spec.bias), *spec.qk_norm(f"{at}.norm_q")),
        over(
            keys,
            linear(f"{at}.to_k", width, spec.keys, bias=spec.bias, raw=raw),
            replace(linear(f"{at}.to_v", width, spec.keys, bias=spec.bias), shares_input=True, raw_input=raw),
            *spec.qk_norm(f"{at}.norm_k", spec.kv_heads),
        ),
        over(
            stream,
            spec.core(at, keys),
            linear(f"{at}.to_out.0", spec.inner, spec.hidden, bias=spec.out_bias),
        ),
    )


KEPT, UNREAD, ABSENT = "kept", "unread", "absent"  # what becomes of the prompt's stream after a block


def joint_attention(
    at: str, spec: Heads, *, text: str = TOKENS, joint: str = JOINT, context: int | None = None, ends: str = KEPT,
    added_bias: bool | None = None, out_bias: bool | None = None,
) -> Nodes:  # fmt: skip
    """Patches and prompt, each with matrices of its own, look at both (MMDiT, arXiv:2403.03206 §4).

    `context` is the prompt's width where it is another; `ends` whether its output is read, unread, or not made.
    """
    width = spec.hidden if context is None else context
    bias = spec.bias if added_bias is None else added_bias
    added = (
        linear(f"{at}.add_q_proj", width, spec.inner, bias=bias),
        replace(linear(f"{at}.add_k_proj", width, spec.inner, bias=bias), shares_input=True),
        replace(linear(f"{at}.add_v_proj", width, spec.inner, bias=bias), shares_input=True),
        *spec.qk_norm(f"{at}.norm_added_q"),
        *spec.qk_norm(f"{at}.norm_added_k"),
    )
    bias = spec.out_bias if out_bias is None else out_bias
    back: Nodes = (over(text, linear(f"{at}.to_add_out", spec.inner, width, bias=bias)),)
    back = {KEPT: back, UNREAD: without_backward(back), ABSENT: ()}[ends]
    return (
        over(PATCHES, *qkv(at, spec)),
        over(text, *added),
        over(joint, spec.core(at)),
        over(PATCHES, linear(f"{at}.to_out.0", spec.inner, spec.hidden, bias=spec.out_bias)),
        *back,
    )


# --- feed-forward -------------------------------------------------------------------------------------------------

# Kinds of feed-forward by `activation_fn`: whether the first matrix holds a gate beside what it scales.
FEEDS = {
    "gelu": False, "gelu-approximate": False, "geglu": True, "geglu-approximate": False, "swiglu": True,
    "linear-silu": False,
}  # fmt: skip


def read_feed(config: Config, default: str = "gelu-approximate") -> str:
    """The kind of feed-forward a config names."""
    return config.choice("activation_fn", tuple(FEEDS), default)


def feed(
    at: str, hidden: int, inner: int, kind: str = "gelu-approximate", *, bias: bool = True, stream: str = PATCHES,
    out: int | None = None,
) -> Module:  # fmt: skip
    """`net.0.proj`, an activation, `net.2`."""
    gated = FEEDS[kind]
    return over(
        stream,
        linear(dotted(at, "net.0.proj"), hidden, 2 * inner if gated else inner, bias=bias),
        act(dotted(at, "act"), inner, gated=gated),
        linear(dotted(at, "net.2"), inner, hidden if out is None else out, bias=bias),
    )


def gated_feed(
    at: str, hidden: int, inner: int, names: tuple[str, str, str], *, stream: str = PATCHES, bias: bool = False
) -> Module:
    """A feed-forward of three matrices: what is activated, what it scales, and the way back."""
    return over(
        stream,
        linear(f"{at}.{names[0]}", hidden, inner, bias=bias),
        replace(linear(f"{at}.{names[1]}", hidden, inner, bias=bias), shares_input=True),
        act(f"{at}.act", inner, gated=True),
        linear(f"{at}.{names[2]}", inner, hidden, bias=bias),
    )


def table(name: str, *shape: int) -> Parameter:
    """A learned table of shifts and scales."""
    return Parameter(name=name, shape=shape)


def agree(config: Config, name: str, got: int, expected: int) -> None:
    """Fault a width that another key says otherwise."""
    if got != expected and not isinstance(got, StandIn):
        config.fault(
            "contradiction", f"{name} is not the width of the blocks", name, got=f"{got:,}", expected=f"{expected:,}"
        )
