"""What stands where attention stands in models with a running state: Mamba 1 and 2, delta nets, short convolutions.

Like `blocks`: shapes and dotted names as in the PyTorch model, no arithmetic of work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from suanli.nouns.layers import (
    BlockLinear,
    CausalConv,
    Elementwise,
    Linear,
    LinearAttention,
    Parameter,
    StateSpace,
)
from suanli.readers.blocks import GATED_ACTIVATIONS, AttentionSpec, Node, attention, norm

DELTA_CHUNK = 64  # positions the kernels of the delta rule take at once, and transformers without them


def linear(name: str, width: int, out: int, *, bias: bool = False, shares: bool = False) -> Linear:
    """A matrix."""
    return Linear(name=name, in_features=width, out_features=out, bias=bias, shares_input=shares)


def gate(at: str, width: int) -> Elementwise:
    """An activated gate times what came out of the mixer."""
    return Elementwise(name=f"{at}.act", op="gated", width=width, saved=GATED_ACTIVATIONS * width)


@dataclass(frozen=True, kw_only=True)
class MambaSpec:
    """Mamba 1 (arXiv:2312.00752 §3). `blocks` > 1: Zamba's heads, each with its own x and dt projections. `normed`:
    norms of dt, B and C (Jamba); `plain` ones without weights (Falcon Mamba).
    """

    hidden: int
    inner: int
    state: int
    rank: int
    kernel: int
    at: str = "mixer"
    blocks: int = 1
    bias: bool = False
    conv_bias: bool = True
    norms: str | None = None


def mamba(spec: MambaSpec) -> tuple[Node, ...]:
    """Input and gate, short convolution, the projections that make the scan selective, scan, output."""
    at = spec.at
    return (
        linear(f"{at}.in_proj", spec.hidden, 2 * spec.inner, bias=spec.bias),
        CausalConv(name=f"{at}.conv1d", channels=spec.inner, kernel=spec.kernel, bias=spec.conv_bias),
        *_selection(spec),
        Parameter(name=f"{at}.A_log", shape=(spec.inner, spec.state)),
        Parameter(name=f"{at}.D", shape=(spec.inner,)),
        StateSpace(
            name=f"{at}.scan", heads=spec.inner, key_dim=spec.state, value_dim=1, rule="selective", groups=spec.blocks
        ),
        gate(at, spec.inner),
        linear(f"{at}.out_proj", spec.inner, spec.hidden, bias=spec.bias),
    )


def _selection(spec: MambaSpec) -> tuple[Node, ...]:
    """The projections to dt, B and C and from dt's rank to every channel."""
    at, out = spec.at, spec.rank + 2 * spec.state
    if spec.blocks > 1:
        rank = spec.blocks * spec.rank
        return (
            BlockLinear(
                name=f"{at}.x_proj_weight", in_features=spec.inner, out_features=spec.blocks * out, blocks=spec.blocks
            ),
            BlockLinear(name=f"{at}.dt_proj_weight", in_features=rank, out_features=spec.inner, blocks=spec.blocks),
            Parameter(name=f"{at}.dt_proj_bias", shape=(spec.inner,)),
        )
    norms = (("dt_layernorm", spec.rank), ("b_layernorm", spec.state), ("c_layernorm", spec.state))
    return (
        linear(f"{at}.x_proj", spec.inner, out),
        *(norm(f"{at}.{name}", width, spec.norms) for name, width in norms if spec.norms),
        linear(f"{at}.dt_proj", spec.rank, spec.inner, bias=True),
    )


@dataclass(frozen=True, kw_only=True)
class Mamba2Spec:
    """Mamba 2 (arXiv:2405.21060 §7.1): heads × head_dim wide, B and C in `groups`."""

    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    chunk: int
    at: str = "mixer"
    bias: bool = False
    out_bias: bool | None = None
    conv_bias: bool = True
    normed: bool = True


def mamba2(spec: Mamba2Spec) -> tuple[Node, ...]:
    """One projection to everything, short convolution of x, B and C, scan, gated norm, output."""
    at, inner = spec.at, spec.heads * spec.head_dim
    mixed = inner + 2 * spec.groups * spec.state
    out_bias = spec.bias if spec.out_bias is None else spec.out_bias
    return (
        linear(f"{at}.in_proj", spec.hidden, inner + mixed + spec.heads, bias=spec.bias),
        CausalConv(name=f"{at}.conv1d", channels=mixed, kernel=spec.kernel, bias=spec.conv_bias),
        *(Parameter(name=f"{at}.{name}", shape=(spec.heads,)) for name in ("dt_bias", "A_log", "D")),
        StateSpace(
            name=f"{at}.scan", heads=spec.heads, key_dim=spec.state, value_dim=spec.head_dim, chunk=spec.chunk,
            groups=spec.groups,
        ),
        gate(at, inner),
        *((norm(f"{at}.norm", inner),) if spec.normed else ()),
        linear(f"{at}.out_proj", inner, spec.hidden, bias=out_bias),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DeltaSpec:
    """The gated delta rule (arXiv:2412.06464) and KDA (arXiv:2510.26692): keys in `key_heads`, values in `heads`.

    `projections` are what is made from the input: (name, width) in order; `parameters` raw tensors (name, shape).
    """

    hidden: int
    heads: int
    key_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    projections: tuple[tuple[str, int], ...]
    after: tuple[Node, ...] = ()
    parameters: tuple[tuple[str, tuple[int, ...]], ...] = ()
    at: str = "linear_attn"
    norm: str = "norm"
    out: str = "out_proj"


def delta_net(spec: DeltaSpec) -> tuple[Node, ...]:
    """Projections, short convolution of queries, keys and values, the delta rule, gated norm, output."""
    at, width = spec.at, spec.heads * spec.value_dim
    mixed = 2 * spec.key_heads * spec.key_dim + width
    return (
        *(
            linear(f"{at}.{name}", spec.hidden, out, shares=index > 0)
            for index, (name, out) in enumerate(spec.projections)
        ),
        *spec.after,
        CausalConv(name=f"{at}.conv1d", channels=mixed, kernel=spec.kernel),
        *(Parameter(name=f"{at}.{name}", shape=shape) for name, shape in spec.parameters),
        LinearAttention(
            name=f"{at}.attention", heads=spec.heads, key_dim=spec.key_dim, value_dim=spec.value_dim, rule="delta",
            chunk=DELTA_CHUNK, groups=spec.key_heads,
        ),
        norm(f"{at}.{spec.norm}", spec.value_dim, per=spec.heads),
        gate(at, width),
        linear(f"{at}.{spec.out}", width, spec.hidden),
    )  # fmt: skip


def gated_attention(spec: AttentionSpec) -> tuple[Node, ...]:
    """Attention whose queries' projection makes a gate of the same width as well (Qwen3-Next)."""
    query = f"{spec.names.at}.{spec.names.q}"
    return tuple(
        replace(node, out_features=2 * node.out_features) if isinstance(node, Linear) and node.name == query else node
        for node in attention(spec)
    )


def short_conv(hidden: int, kernel: int, *, bias: bool = False, at: str = "conv") -> tuple[Node, ...]:
    """LFM2's mixer: two gates around a short depthwise convolution."""
    return (
        linear(f"{at}.in_proj", hidden, 3 * hidden, bias=bias),
        CausalConv(name=f"{at}.conv", channels=hidden, kernel=kernel, bias=bias),
        gate(at, hidden),
        linear(f"{at}.out_proj", hidden, hidden, bias=bias),
    )
