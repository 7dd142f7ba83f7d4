"""A model as a tree of modules whose leaves are layers, named as in the published PyTorch model.

Positions flow in *streams*: a decoder's tokens, an encoder's frames, an image's patches, or one position a
sample (`SAMPLE`) for pooled heads and for convolutional nets, whose layers know their own spatial sizes.
A module's `indices` say which numbered copies it stands for: `layers` with `range(32)` is 32 equal layers. One that
`repeats` runs several times with the same weights (ALBERT).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from suanli.nouns.layers import Buffer, Embedding, Layer

TOKENS = "tokens"  # the stream the user's --seq measures
SAMPLE = "sample"  # one position for each sequence or image


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A kind of position. `length` None means the workload's sequence length and `extra` more (a picture's tokens
    among the text's); `copies` sequences of that length stand side by side in a sample and do not see one another
    (tiles of a picture, windows); `decodes` grows by one in decode; positions that exist
    `once` are the same for every sample of the batch (relative positions, prompts).
    """

    name: str
    length: int | None = None
    decodes: bool = False
    once: bool = False
    extra: int = 0
    copies: int = 1


@dataclass(frozen=True, kw_only=True)
class Module:
    """An inner node. `stream` holds for all below unless they name another; `block` marks a unit of checkpointing."""

    name: str
    children: tuple[Module | Layer, ...]
    indices: Sequence[int] | None = None
    stream: str | None = None
    block: bool = False
    repeats: int = 1

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
    """A leaf where it stands: path, copies, stream, and the checkpointed block it is in (its label, or nothing).

    It runs `times` times; `held` copies have weights of their own, fewer where layers share them.
    """

    path: str
    layer: Layer
    times: int
    stream: str
    block: str = ""
    repeats: int = 1

    @property
    def held(self) -> int:
        """Copies with weights of their own."""
        return self.times // self.repeats

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
            cached = tuple(_walk(self.root, "", 1, 1, self.main_stream, ""))
            object.__setattr__(self, "_leaves", cached)
        return cached

    def _sum(self, what: str) -> int:
        return sum(placed.held * getattr(placed.layer, what) for placed in self.leaves())

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
        return sum(p.held * p.layer.params for p in self.leaves() if isinstance(p.layer, Embedding))

    @property
    def params_trainable(self) -> int:
        """Parameters that get a gradient."""
        return sum(p.held * p.layer.params for p in self.leaves() if p.layer.trainable)

    @property
    def buffer_elements(self) -> int:
        """Elements of checkpointed tensors that are no parameters."""
        return sum(p.held * p.layer.elements for p in self.leaves() if isinstance(p.layer, Buffer))

    @property
    def decodes(self) -> bool:
        """Whether the model produces one token after another."""
        return any(stream.decodes for stream in self.streams)


def _walk(node: Module | Layer, path: str, copies: int, repeats: int, stream: str, block: str) -> Iterator[Placed]:
    if isinstance(node, Layer):
        yield Placed(f"{path}.{node.name}".strip("."), node, copies * repeats, stream, block, repeats)
        return
    here = f"{path}.{node.label}".strip(".")
    copies, repeats = copies * node.times, repeats * node.repeats
    for child in node.children:
        yield from _walk(child, here, copies, repeats, node.stream or stream, here if node.block else block)


def split_first(module: Module) -> tuple[Module, ...]:
    """The first copy of a repeated module, and the rest: the two may differ in what needs a gradient."""
    if module.indices is None or len(module.indices) == 1:
        return (module,)
    return replace(module, indices=module.indices[:1]), replace(module, indices=module.indices[1:])
