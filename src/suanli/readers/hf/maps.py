"""A builder that follows a picture through a net: every layer's size and width come from the one before it.

Convolutions work once a sample and know their sizes; matrices over positions run in a stream named by the map's size.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from suanli.nouns.arch import SAMPLE, Arch, Module, Stream
from suanli.nouns.layers import Attention, Buffer, Conv, Elementwise, Linear, Norm, Parameter
from suanli.readers.blocks import Node, dotted, norm
from suanli.readers.config import Config
from suanli.readers.hf.resnet import conv_out
from suanli.readers.hf.vision import image_size, labels_of

Size = tuple[int, ...]


class Net:
    """Nodes in the order they run, and the map they leave: `channels` wide, of `size`."""

    def __init__(self, channels: int, size: Size) -> None:
        self.picture = size
        self.channels, self.size = channels, size
        self.nodes: list[Node] = []
        self.begun = False  # whether something before the block being made has weights
        self.streams: dict[str, Stream] = {}

    def add(self, *nodes: Node) -> None:
        """Layers that leave the map as it is."""
        self.nodes.extend(nodes)

    def stream(self, size: Size | None = None, more: int = 0) -> str:
        """The stream of all positions of a map, with `more` tokens."""
        shape = size or self.size
        name = "x".join(map(str, shape)) + (f"+{more}" if more else "")
        self.streams[name] = Stream(name=name, length=prod(shape) + more)
        return name

    def over(self, *nodes: Node, size: Size | None = None, more: int = 0) -> None:
        """Layers that work on each position of the map (or of another size)."""
        self.add(Module(name="", stream=self.stream(size, more), children=nodes))

    def conv(
        self, name: str, width: int, kernel: int | Size, stride: int | Size = 1, *, padding: int | Size | None = None,
        groups: int = 1, bias: bool = False, out: Size | None = None,
    ) -> None:  # fmt: skip
        """A convolution, padded by half its kernel unless said, or to a given size."""
        window = (kernel, kernel) if isinstance(kernel, int) else kernel
        steps = (stride, stride) if isinstance(stride, int) else stride
        pads = tuple(each // 2 for each in window) if padding is None else padding
        pads = (pads, pads) if isinstance(pads, int) else pads
        size = out or tuple(
            conv_out((n,), k, s, p)[0] for n, k, s, p in zip(self.size, window, steps, pads, strict=True)
        )
        conv = Conv(
            name=name, in_channels=self.channels, out_channels=width, kernel=window, in_size=self.size, out_size=size,
            groups=groups, bias=bias, raw_input=not (self.begun or any(_learns(node) for node in self.nodes)),
        )  # fmt: skip
        self.add(conv)
        self.channels, self.size = width, tuple(max(1, each) for each in size)

    def batch_norm(self, name: str) -> None:
        """A batch norm over the map, with its running mean, variance and count."""
        self.add(norm(name, self.channels, "layer", per=prod(self.size)))
        self.add(Buffer(name=f"{name}.running", shape=(2 * self.channels + 1,)))

    def conv_norm(
        self, name: str, width: int, kernel: int | Size, stride: int | Size = 1, *, at: tuple[str, str] | None = None,
        groups: int = 1, padding: int | Size | None = None, out: Size | None = None,
    ) -> None:  # fmt: skip
        """A convolution without bias and its batch norm, named as in ResNet unless `at` says."""
        conv, normed = at or ("convolution", "normalization")
        self.conv(dotted(name, conv), width, kernel, stride, groups=groups, padding=padding, out=out)
        self.batch_norm(dotted(name, normed))

    def pool(self, size: Size) -> None:
        """A pooling that leaves a map of another size."""
        self.size = size
        self.add(Elementwise(name="pooling", op="pooling", width=self.channels * prod(size)))

    def squeeze(self, first: str, second: str, narrow: int, *, bias: bool = True) -> None:
        """Squeeze and excitation: two 1×1 convolutions on the mean of the map."""
        kept, width = self.size, self.channels
        self.size = (1, 1)
        self.conv(first, narrow, 1, bias=bias)
        self.conv(second, width, 1, bias=bias)
        self.size = kept

    def norm(self, name: str, kind: str = "layer") -> None:
        """A layer norm of each position."""
        self.add(norm(name, self.channels, kind, per=prod(self.size)))

    def scale(self, name: str) -> None:
        """A learned factor a channel."""
        self.add(Parameter(name=name, shape=(self.channels,)))

    def mlp(self, first: str, second: str, width: int) -> None:
        """Two matrices on each position."""
        h = self.channels
        self.over(
            Linear(name=first, in_features=h, out_features=width, bias=True),
            Elementwise(name=f"{first}.act", op="activation", width=width, saved=width),
            Linear(name=second, in_features=width, out_features=h, bias=True),
        )

    def block(self, name: str, make: Callable[[], None], index: int | None = None, times: int = 1) -> None:
        """What `make` adds, as one module; `times` copies from `index` on where it leaves the map as it was."""
        before, begun = self.nodes, self.begun
        self.nodes, self.begun = [], begun or any(_learns(node) for node in before)
        make()
        indices = None if index is None else range(index, index + times)
        inner = Module(name=name, children=tuple(self.nodes), indices=indices, block=index is not None)
        self.nodes, self.begun = [*before, inner], begun

    def stage(self, name: str, depth: int, make: Callable[[bool], None]) -> None:
        """Numbered layers: the first, and the rest, which are equal."""
        if depth:
            self.block(name, lambda: make(True), 0)
        if depth > 1:
            self.block(name, lambda: make(False), 1, depth - 1)

    def head(self, name: str, labels: int, *, width: int | None = None, bias: bool = True) -> None:
        """A dense layer on the pooled map."""
        self.add(Linear(name=name, in_features=width or self.channels, out_features=labels, bias=bias))

    def arch(self, name: str) -> Arch:
        """The net as a classifier of pictures."""
        return Arch(
            name=name, root=Module(name="", stream=SAMPLE, children=tuple(self.nodes)),
            streams=tuple(self.streams.values()), main_stream=SAMPLE, task="image-classification", unit="image",
            notes=("picture " + "x".join(map(str, self.picture)),),
        )  # fmt: skip


def _learns(node: Node) -> bool:
    """Whether a node multiplies something: the first that does reads the picture."""
    if isinstance(node, Module):
        return any(_learns(child) for child in node.children)
    return isinstance(node, Conv | Linear)


def start(config: Config, default: int = 224) -> tuple[Net, int]:
    """A net that sees the config's picture, and the number of its classes."""
    labels = config.maybe("num_labels") or labels_of(config) or 2
    return Net(config.whole("num_channels", default=3), image_size(config, default)), labels


def per_stage(config: Config, *names: str) -> list[tuple[int, ...]]:
    """Lists with one whole number a stage. A list that misses or differs in length is a fault; the lists are then
    empty.
    """
    lists = [config.wholes(each, low=1) for each in names]
    lengths = {None if each is None else len(each) for each in lists}
    if len(lengths) != 1 or None in lengths or not 0 < max(len(each or ()) for each in lists) <= 100:
        config.fault("contradiction", f"{', '.join(names)} are not lists of one length", names[0])
        return [() for _ in lists]
    return [each or () for each in lists]


def attend(
    name: str, heads: int, width: int, *, keys: int | None = None, key_stream: str | None = None,
    values: int | None = None, keys_width: int | None = None,
) -> Attention:  # fmt: skip
    """All positions with all, or with `keys` of their window, or with those of another map. Heads are as wide as they
    divide `width`, unless their keys or `values` are said to be of another width (0: not multiplied here).
    """
    d = max(1, width // heads)
    return Attention(
        name=name, heads=heads, kv_heads=heads, qk_dim=d if keys_width is None else keys_width,
        v_dim=d if values is None else values, mask="full", keys=keys, key_stream=key_stream,
    )  # fmt: skip


def linear(name: str, width: int, out: int, *, bias: bool = True) -> Linear:
    """A dense layer."""
    return Linear(name=name, in_features=width, out_features=out, bias=bias)


def plain_norm(name: str, width: int) -> Norm:
    """A layer norm of one position."""
    return norm(name, width, "layer")
