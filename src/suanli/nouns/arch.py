"""A model as a tree of modules whose leaves are layers, named as in the published PyTorch model.

Positions flow in *streams*: a decoder's tokens, an encoder's frames, an image's patches, or one position a
sample (`SAMPLE`) for pooled heads and for convolutional nets, whose layers know their own spatial sizes.
A module's `indices` say which numbered copies it stands for: `layers` with `range(32)` is 32 equal layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import ClassVar

TOKENS = "tokens"  # the stream the user's --seq measures
SAMPLE = "sample"  # one position for each sequence or image


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A kind of position. `length` None means the workload's sequence length; `decodes` grows by one in decode."""

    name: str
    length: int | None = None
    decodes: bool = False


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Base of the leaves. `shares_input`: reads the tensor the layer before it read (k and v after q)."""

    kind: ClassVar[str] = "layer"
    name: str
    trainable: bool = True
    shares_input: bool = False

    @property
    def params(self) -> int:
        """Parameters held here; 0 where the weight is another layer's."""
        return 0

    @property
    def params_active(self) -> int:
        """Parameters one token passes through."""
        return self.params


@dataclass(frozen=True, kw_only=True)
class Linear(Layer):
    """y = xW + b. `role` is `matmul`, `lm_head`, `router` or `lora`; `tied` means the weight is another layer's."""

    kind: ClassVar[str] = "linear"
    in_features: int
    out_features: int
    bias: bool = False
    role: str = "matmul"
    tied: bool = False

    @property
    def weight_params(self) -> int:
        """Elements of the weight, tied or not."""
        return self.in_features * self.out_features

    @property
    def params(self) -> int:
        """Weight unless tied, and bias."""
        return (0 if self.tied else self.weight_params) + (self.out_features if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class Embedding(Layer):
    """A table of `num` rows of `dim`, looked up and not multiplied. `role`: `token`, `position`, `type`, `bias`."""

    kind: ClassVar[str] = "embedding"
    num: int
    dim: int
    role: str = "token"
    tied: bool = False

    @property
    def params(self) -> int:
        """Rows times width unless tied."""
        return 0 if self.tied else self.num * self.dim


@dataclass(frozen=True, kw_only=True)
class Norm(Layer):
    """Layer, RMS or batch normalisation over `dim`, applied `per` times a position."""

    kind: ClassVar[str] = "norm"
    dim: int
    weight: bool = True
    bias: bool = False
    per: int = 1

    @property
    def params(self) -> int:
        """Scale and shift."""
        return self.dim * (int(self.weight) + int(self.bias))


@dataclass(frozen=True, kw_only=True)
class Elementwise(Layer):
    """Activation, dropout, pooling: no matmul. `saved` elements (and `mask_bytes`) a position are kept for backward."""

    kind: ClassVar[str] = "elementwise"
    op: str
    width: int
    saved: int = 0
    mask_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Parameter(Layer):
    """A raw tensor: class token, sinks, a scale."""

    kind: ClassVar[str] = "parameter"
    shape: tuple[int, ...]

    @property
    def params(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Buffer(Layer):
    """A tensor saved in checkpoints that is no parameter (correction biases, running means)."""

    kind: ClassVar[str] = "buffer"
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Attention(Layer):
    """QKᵀ and AV. `mask`: `causal` or `full`; `window` and `chunk` limit how far back a position sees.

    `latent_dim` is what one position leaves in the cache when keys and values are kept compressed (MLA).
    `key_stream` is set for cross-attention.
    """

    kind: ClassVar[str] = "attention"
    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    mask: str = "causal"
    window: int | None = None
    chunk: int | None = None
    key_stream: str | None = None
    latent_dim: int | None = None
    dropout: bool = False


@dataclass(frozen=True, kw_only=True)
class Experts(Layer):
    """`num` two- or three-matrix MLPs, each token passing through `top_k` of them."""

    kind: ClassVar[str] = "experts"
    num: int
    top_k: int
    hidden: int
    ffn: int
    gated: bool = True
    bias: bool = False

    @property
    def matrices(self) -> int:
        """Matrices of one expert."""
        return 3 if self.gated else 2

    @property
    def params_per_expert(self) -> int:
        """Matrices and their biases."""
        inner = (2 if self.gated else 1) * self.ffn
        return self.hidden * inner + self.ffn * self.hidden + (inner + self.hidden if self.bias else 0)

    @property
    def params(self) -> int:
        """All experts."""
        return self.num * self.params_per_expert

    @property
    def params_active(self) -> int:
        """The experts one token is routed to."""
        return min(self.top_k, self.num) * self.params_per_expert


@dataclass(frozen=True, kw_only=True)
class LinearAttention(Layer):
    """Attention by a running state of key_dim × value_dim a head: no pairs, constant memory (lightning, RetNet …)."""

    kind: ClassVar[str] = "linear_attention"
    heads: int
    key_dim: int
    value_dim: int

    @property
    def state_elements(self) -> int:
        """Elements of the state one sequence leaves behind."""
        return self.heads * self.key_dim * self.value_dim


@dataclass(frozen=True, kw_only=True)
class Similarity(Layer):
    """Every sample's vector of `dim` against every other's: the logits of a contrastive model."""

    kind: ClassVar[str] = "similarity"
    dim: int


@dataclass(frozen=True, kw_only=True)
class Opaque(Layer):
    """Weights of unknown shape, known only by number: `total` held, `active` used by one token."""

    kind: ClassVar[str] = "opaque"
    total: int
    active: int

    @property
    def params(self) -> int:
        """All of them."""
        return self.total

    @property
    def params_active(self) -> int:
        """Those a token passes through."""
        return self.active


@dataclass(frozen=True, kw_only=True)
class Conv(Layer):
    """Convolution of any rank on one sample of spatial size `in_size`, giving `out_size`."""

    kind: ClassVar[str] = "conv"
    in_channels: int
    out_channels: int
    kernel: tuple[int, ...]
    in_size: tuple[int, ...]
    out_size: tuple[int, ...]
    groups: int = 1
    bias: bool = True
    transposed: bool = False

    @property
    def weight_params(self) -> int:
        """Elements of the kernel."""
        return self.in_channels // self.groups * self.out_channels * prod(self.kernel)

    @property
    def params(self) -> int:
        """Kernel and bias."""
        return self.weight_params + (self.out_channels if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class Recurrent(Layer):
    """LSTM, GRU or plain RNN over the whole sequence, `num_layers` deep; `proj_size` as in torch's LSTM."""

    kind: ClassVar[str] = "recurrent"
    cell: str
    input_size: int
    hidden_size: int
    num_layers: int = 1
    bidirectional: bool = False
    proj_size: int = 0
    bias: bool = True

    @property
    def gates(self) -> int:
        """Matrices per input: LSTM 4, GRU 3, RNN 1."""
        return {"lstm": 4, "gru": 3, "rnn": 1}[self.cell]

    @property
    def directions(self) -> int:
        """2 when bidirectional."""
        return 2 if self.bidirectional else 1

    @property
    def out_size(self) -> int:
        """Width of what one direction passes on."""
        return self.proj_size or self.hidden_size

    def depth_inputs(self) -> list[int]:
        """Input width of each layer of the stack."""
        return [self.input_size] + [self.out_size * self.directions] * (self.num_layers - 1)

    @property
    def params(self) -> int:
        """Input and state matrices, biases (two a gate, as torch keeps them), projection."""
        gated = self.gates * self.hidden_size
        each = [
            gated * (width + self.out_size) + (2 * gated if self.bias else 0) + self.proj_size * self.hidden_size
            for width in self.depth_inputs()
        ]
        return self.directions * sum(each)


@dataclass(frozen=True, kw_only=True)
class Module:
    """An inner node. `stream` holds for all below unless they name another; `block` marks a unit of checkpointing."""

    name: str
    children: tuple[Module | Layer, ...]
    indices: Sequence[int] | None = None
    stream: str | None = None
    block: bool = False

    @property
    def times(self) -> int:
        """How many equal copies this stands for."""
        return 1 if self.indices is None else len(self.indices)

    @property
    def label(self) -> str:
        """Name with its indices: `layers.0-31`, `layers.0-40:2`."""
        return self.name if self.indices is None else f"{self.name}.{index_label(self.indices)}"


def index_label(indices: Sequence[int]) -> str:
    """`0-31`, `0-40:2`, or `0,3,7`."""
    if len(indices) == 1:
        return str(indices[0])
    steps = {b - a for a, b in pairwise(indices)}
    if len(steps) == 1:
        step = steps.pop()
        return f"{indices[0]}-{indices[-1]}" + ("" if step == 1 else f":{step}")
    text = ",".join(map(str, indices))
    return text if len(text) <= 40 else f"{text[:37]}…"


@dataclass(frozen=True)
class Placed:
    """A leaf where it stands: path, copies, stream, and the checkpointed block it is in (its label, or nothing)."""

    path: str
    layer: Layer
    times: int
    stream: str
    block: str = ""

    @property
    def in_block(self) -> bool:
        """Whether it is inside a checkpointed block."""
        return bool(self.block)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The usual letters of a transformer, for formulas that need them: L, h, H, K, d, f, V."""

    num_layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = False


@dataclass(frozen=True, kw_only=True)
class Arch:
    """A model: its tree, its streams, and where its shape was read."""

    name: str
    root: Module
    streams: tuple[Stream, ...] = (Stream(name=TOKENS, decodes=True),)
    main_stream: str = TOKENS
    max_positions: int | None = None
    shape: Shape | None = None
    title: str = ""
    task: str = ""
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str = "token"  # what one position of the main stream is called on screen
    extra: dict[str, int] = field(default_factory=dict)

    def stream(self, name: str) -> Stream:
        """The stream called `name`; `SAMPLE` always exists."""
        if name == SAMPLE:
            return Stream(name=SAMPLE, length=1)
        return next(stream for stream in self.streams if stream.name == name)

    def leaves(self) -> tuple[Placed, ...]:
        """Every leaf with its place, in execution order; the walk is made once."""
        cached = self.__dict__.get("_leaves")
        if cached is None:
            cached = tuple(_walk(self.root, "", 1, self.main_stream, ""))
            object.__setattr__(self, "_leaves", cached)
        return cached

    def _sum(self, what: str) -> int:
        return sum(placed.times * getattr(placed.layer, what) for placed in self.leaves())

    @property
    def params_total(self) -> int:
        """Parameters, tied weights once."""
        return self._sum("params")

    @property
    def params_active(self) -> int:
        """Parameters one token passes through: all but the experts it is not routed to."""
        return self._sum("params_active")

    @property
    def params_embedding(self) -> int:
        """Parameters of embedding tables (token, position, type)."""
        return sum(p.times * p.layer.params for p in self.leaves() if isinstance(p.layer, Embedding))

    @property
    def params_trainable(self) -> int:
        """Parameters that get a gradient."""
        return sum(p.times * p.layer.params for p in self.leaves() if p.layer.trainable)

    @property
    def buffer_elements(self) -> int:
        """Elements of checkpointed tensors that are no parameters."""
        return sum(p.times * p.layer.elements for p in self.leaves() if isinstance(p.layer, Buffer))

    @property
    def decodes(self) -> bool:
        """Whether the model produces one token after another."""
        return any(stream.decodes for stream in self.streams)


def _walk(node: Module | Layer, path: str, times: int, stream: str, block: str) -> Iterator[Placed]:
    if isinstance(node, Layer):
        yield Placed(f"{path}.{node.name}".lstrip("."), node, times, stream, block)
        return
    here = f"{path}.{node.label}".strip(".")
    for child in node.children:
        yield from _walk(child, here, times * node.times, node.stream or stream, here if node.block else block)


def split_first(module: Module) -> tuple[Module, ...]:
    """The first copy of a repeated module, and the rest: the two may differ in what needs a gradient."""
    if module.indices is None or len(module.indices) == 1:
        return (module,)
    return replace(module, indices=module.indices[:1]), replace(module, indices=module.indices[1:])
