"""The leaves of an architecture: what a model is made of, with shapes and parameters, and no arithmetic of work."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Base of the leaves. `shares_input`: reads the tensor the layer before it read (k and v after q); `raw_input`:
    reads pixels or waves, which never need a gradient; `detached`: runs forward, and no gradient comes back through it;
    `reads_block`: reads what entered its block, or a norm of it, not what the layer before it made (a parallel MLP).
    """

    kind: ClassVar[str] = "layer"
    name: str
    trainable: bool = True
    shares_input: bool = False
    raw_input: bool = False
    detached: bool = False
    reads_block: bool = False

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
    """QKᵀ and AV. `mask`: `causal`, `full` or `band`; `window` and `chunk` limit how far back a position sees, in a
    band how far to either side.

    `latent_dim` is what one position leaves in the cache when keys and values are kept compressed (MLA).
    `key_stream` is set for cross-attention. `keys` is set where a query meets that many keys whatever the mask: windows
    of a picture, blocks, rows or columns, outside of which nothing is multiplied.
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
    keys: int | None = None
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
class Scan(Layer):
    """A running state of key_dim × value_dim a head instead of pairs of positions: constant memory, no S².

    Each position changes the state (what its key and value say) and reads it (with its query). `rule` says how:
    `decay` (linear attention whose state fades), `mlstm` (that, and a normaliser of key_dim beside the state),
    `selective` (Mamba 1: every channel a head of width 1), `ssd` (Mamba 2), `delta` (the old value of the key is read
    and taken out before the new one is written), `sum` (one sum over all positions that every position reads). `chunk`
    is how many positions a kernel takes at once; `groups` is how many sets of keys and queries there are where heads
    share them.
    """

    kind: ClassVar[str] = "scan"
    heads: int
    key_dim: int
    value_dim: int
    rule: str = "decay"
    chunk: int = 256
    groups: int | None = None

    @property
    def state_elements(self) -> int:
        """Elements of the state one sequence leaves behind."""
        return self.heads * self.key_dim * self.state_width

    @property
    def state_width(self) -> int:
        """Columns of a head's state: the value's, and the normaliser's where there is one."""
        return self.value_dim + int(self.rule == "mlstm")

    @property
    def read_width(self) -> int:
        """Elements of queries, keys and values a position brings."""
        sets = self.heads if self.groups is None else self.groups
        return 2 * sets * self.key_dim + self.heads * self.value_dim


@dataclass(frozen=True, kw_only=True)
class LinearAttention(Scan):
    """Linear attention and the delta rule: lightning, RetNet, GLA, mLSTM, gated delta nets, KDA."""


@dataclass(frozen=True, kw_only=True)
class StateSpace(Scan):
    """Selective state spaces: Mamba 1 (arXiv:2312.00752) and Mamba 2 (arXiv:2405.21060); key_dim is their N."""

    rule: str = "ssd"


@dataclass(frozen=True, kw_only=True)
class CausalConv(Layer):
    """A short convolution over the positions of a stream, each seeing itself and the `kernel` − 1 before it."""

    kind: ClassVar[str] = "conv"
    channels: int
    kernel: int
    groups: int | None = None
    bias: bool = False

    @property
    def inputs_each(self) -> int:
        """Channels that one output channel sees: 1 where it is depthwise."""
        return 1 if self.groups is None else self.channels // self.groups

    @property
    def weight_params(self) -> int:
        """Elements of the kernels."""
        return self.channels * self.inputs_each * self.kernel

    @property
    def params(self) -> int:
        """Kernels and bias."""
        return self.weight_params + (self.channels if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class BlockLinear(Layer):
    """A block-diagonal matrix: `blocks` of equal size, each on its own part of the input."""

    kind: ClassVar[str] = "linear"
    in_features: int
    out_features: int
    blocks: int
    bias: bool = False

    @property
    def weight_params(self) -> int:
        """Elements of all blocks."""
        return self.in_features // self.blocks * self.out_features

    @property
    def params(self) -> int:
        """Blocks and bias."""
        return self.weight_params + (self.out_features if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class KeptState(Layer):
    """What a sequence keeps between tokens beside keys, values and scans' states: no parameters, no products."""

    kind: ClassVar[str] = "state"
    elements: int
    fp32: bool = False


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
