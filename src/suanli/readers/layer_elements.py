"""The elements of layer expressions: each reads its options and gives layers, following torch.nn's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, shown
from suanli.nouns.layers import Conv, Elementwise, Embedding, Linear, Norm, Recurrent
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped
from suanli.units import GIGA

MAX_NUMBER = GIGA
MAX_FAULTS = 20  # more of one expression are not listed

Size = tuple[int, ...]


@dataclass
class Flow:
    """What reaches an element: features (channels) and, for pictures and signals, their spatial size.

    After a fault the features are unknown (None), and a size that was never given is `lost`: what follows from
    them is not reported.
    """

    size: Size | None
    features: int | None = None
    lost: bool = False
    faults: FaultList = field(default_factory=lambda: FaultList(ConfigError))

    def fault(self, where: str, message: str, **parts: Any) -> None:
        """Record a fault at an element."""
        if len(self.faults.faults) < MAX_FAULTS:
            self.faults.add(code="bad_expression", message=message, where=where, **parts)

    def enter(self, where: str, expected: int) -> None:
        """Check that an element takes what the one before it gives."""
        if self.features is not None and self.features != expected:
            self.fault(
                where, "the element does not take what the one before it gives", got=f"{self.features:,}",
                expected=f"{expected:,}",
            )  # fmt: skip


@dataclass(frozen=True)
class Element:
    """One parsed element: its index, name, numbers given by place and by keyword, and flags."""

    index: int
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def where(self) -> str:
        """How messages name it."""
        return f"element {self.index + 1}, {self.name}"

    @property
    def label(self) -> str:
        """Its path in the tree."""
        return f"{self.index}.{self.name}"


class Reading:
    """Typed reads of an element's options; unknown ones are faults."""

    def __init__(self, element: Element, flow: Flow, places: tuple[str, ...]) -> None:
        self.element, self.flow = element, flow
        self.values = dict(zip(places, element.args, strict=False)) | element.options
        self.known: set[str] = set()
        if len(element.args) > len(places):
            flow.fault(
                element.where,
                "too many values",
                got=str(len(element.args)),
                expected=f"at most {len(places)}",
            )

    def number(self, name: str, default: int | None = None, low: int = 1) -> int:
        """A whole number."""
        self.known.add(name)
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MAX_NUMBER:
            message = f"missing {name}" if value is None else f"{name} is not possible"
            expected = f"a whole number from {low} to {MAX_NUMBER:,}"
            self.flow.fault(self.element.where, message, got=None if value is None else shown(value), expected=expected)
            return max(low, 1)
        return value

    def sizes(self, name: str, rank: int, default: int | None = None, low: int = 1) -> Size:
        """One number for every direction, or a tuple with one each."""
        value = self.values.get(name)
        if isinstance(value, tuple):
            self.known.add(name)
            good = all(isinstance(n, int) and not isinstance(n, bool) and low <= n <= MAX_NUMBER for n in value)
            if len(value) == rank and good:
                return value
            self.flow.fault(self.element.where, f"{name} is not possible", got=shown(value), expected=f"{rank} numbers")
            return (max(low, 1),) * rank
        return (self.number(name, default, low),) * rank

    def flag(self, name: str, default: bool) -> bool:
        """true or false; a bare word means true."""
        self.known.add(name)
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            self.flow.fault(self.element.where, f"{name} is not true or false", got=shown(value))
            return default
        return value

    def done(self) -> None:
        """Fault on options nobody read."""
        for name in self.values:
            if name not in self.known:
                self.flow.fault(
                    self.element.where, f"unknown option {shown(name)}", expected=", ".join(sorted(self.known)),
                    nearest=nearest_names(name, self.known),
                )  # fmt: skip


def _linear(element: Element, flow: Flow) -> tuple[Node, ...]:
    read = Reading(element, flow, ("inputs", "outputs"))
    wide, out, bias = read.number("inputs"), read.number("outputs"), read.flag("bias", True)
    read.done()
    flow.enter(element.where, wide)
    if flow.size is not None and prod(flow.size) != 1:
        flow.fault(
            element.where,
            "a linear layer after spatial ones needs flatten before it",
            got=f"size {flow.size}",
        )
    flow.features = out
    return (Linear(name=element.label, in_features=wide, out_features=out, bias=bias),)


def _conv(rank: int, turned: bool = False) -> Callable[[Element, Flow], tuple[Node, ...]]:
    def build(element: Element, flow: Flow) -> tuple[Node, ...]:
        read = Reading(element, flow, ("inputs", "outputs", "kernel", "stride", "padding"))
        c_in, c_out = read.number("inputs"), read.number("outputs")
        kernel, stride = read.sizes("kernel", rank), read.sizes("stride", rank, 1)
        padding, dilation = read.sizes("padding", rank, 0, 0), read.sizes("dilation", rank, 1)
        extra = read.sizes("output_padding", rank, 0, 0)
        groups, bias, transposed = (
            read.number("groups", 1),
            read.flag("bias", True),
            read.flag("transposed", turned),
        )
        read.done()
        flow.enter(element.where, c_in)
        if c_in % groups or c_out % groups:
            flow.fault(
                element.where,
                "groups does not divide the channels",
                got=f"{groups} groups, {c_in} and {c_out}",
            )
        size = _spatial(element, flow, rank)
        steps = tuple(zip(size, kernel, stride, padding, dilation, extra, strict=True))
        if any(extra) and not (transposed and all(e < max(s, d) for _, _, s, _, d, e in steps)):
            flow.fault(element.where, "output_padding is for transposed convolutions, less than stride or dilation")
        if transposed:
            out = tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + e for n, k, s, p, d, e in steps)
        else:
            out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in steps)
        out = _checked(element, flow, out)
        flow.features, flow.size = c_out, out
        return (
            Conv(
                name=element.label, in_channels=c_in, out_channels=c_out, kernel=kernel, in_size=size, out_size=out,
                groups=groups, bias=bias, transposed=transposed,
            ),
        )  # fmt: skip

    return build


def _spatial(element: Element, flow: Flow, rank: int) -> Size:
    if flow.size is None or len(flow.size) != rank:
        example = "x".join(["224"] * rank)
        got = "no size" if flow.size is None else "x".join(map(str, flow.size))
        flow.fault(element.where, "the size of the input is needed", got=got, expected=f"@ {example} or --image")
        flow.size, flow.lost = (1,) * rank, True
    return flow.size


def _checked(element: Element, flow: Flow, size: Size) -> Size:
    if min(size) < 1:
        if not flow.lost:
            flow.fault(element.where, "nothing is left of the input", got="x".join(map(str, size)))
        return tuple(max(1, n) for n in size)
    return size


def _pool(element: Element, flow: Flow) -> tuple[Node, ...]:
    rank = len(flow.size or (1, 1))
    read = Reading(element, flow, ("kernel", "stride", "padding"))
    kernel = read.sizes("kernel", rank)
    read.values.setdefault("stride", kernel)
    stride, padding = read.sizes("stride", rank), read.sizes("padding", rank, 0, 0)
    read.done()
    size = _spatial(element, flow, rank)
    out = tuple((n + 2 * p - k) // s + 1 for n, k, s, p in zip(size, kernel, stride, padding, strict=True))
    flow.size = _checked(element, flow, out)
    return (Elementwise(name=element.label, op="pooling", width=(flow.features or 1) * prod(flow.size)),)


def _adaptive_pool(element: Element, flow: Flow) -> tuple[Node, ...]:
    rank = len(flow.size or (1, 1))
    read = Reading(element, flow, ("size",))
    wanted = read.sizes("size", rank, 1)
    read.done()
    _spatial(element, flow, rank)
    flow.size = wanted
    return (Elementwise(name=element.label, op="pooling", width=(flow.features or 1) * prod(flow.size)),)


def _activation(element: Element, flow: Flow) -> tuple[Node, ...]:
    Reading(element, flow, ()).done()
    width = (flow.features or 1) * prod(flow.size or (1,))
    return (Elementwise(name=element.label, op="activation", width=width, saved=width),)


def _dropout(element: Element, flow: Flow) -> tuple[Node, ...]:
    return dropped(element.label, (flow.features or 1) * prod(flow.size or (1,)))


def _flatten(element: Element, flow: Flow) -> tuple[Node, ...]:
    Reading(element, flow, ()).done()
    if flow.size is not None:
        flow.features, flow.size = (flow.features or 1) * prod(flow.size), (1,) * len(flow.size)
    return ()


def _norm(kind: str) -> Callable[[Element, Flow], tuple[Node, ...]]:
    def build(element: Element, flow: Flow) -> tuple[Node, ...]:
        read = Reading(element, flow, ("dim",))
        dim = read.number("dim", flow.features)
        read.done()
        flow.enter(element.where, dim)
        return (Norm(name=element.label, dim=dim, bias=kind != "rms", per=prod(flow.size or (1,))),)

    return build


def _embedding(element: Element, flow: Flow) -> tuple[Node, ...]:
    read = Reading(element, flow, ("num", "dim"))
    num, dim = read.number("num"), read.number("dim")
    read.done()
    flow.features = dim
    return (Embedding(name=element.label, num=num, dim=dim),)


def _recurrent(element: Element, flow: Flow) -> tuple[Node, ...]:
    read = Reading(element, flow, ("input", "hidden", "layers"))
    wide, hidden = read.number("input"), read.number("hidden")
    layers, both = read.number("layers", 1), read.flag("bidirectional", False)
    proj, bias = read.number("proj", 0, 0), read.flag("bias", True)
    read.done()
    if proj and (element.name != "lstm" or proj >= hidden):
        flow.fault(element.where, "a projection is for lstm and narrower than hidden", got=str(proj))
        proj = 0
    if layers > 10_000:
        flow.fault(element.where, "layers is not possible", got=str(layers), expected="at most 10,000")
        layers = 1
    flow.enter(element.where, wide)
    if flow.size is not None:
        flow.fault(element.where, "a recurrent layer works on tokens, not on a picture")
    layer = Recurrent(
        name=element.label, cell=element.name, input_size=wide, hidden_size=hidden, num_layers=layers,
        bidirectional=both, proj_size=proj, bias=bias,
    )  # fmt: skip
    flow.features = layer.out_size * layer.directions
    return (layer,)


def _attention(element: Element, flow: Flow) -> tuple[Node, ...]:
    read = Reading(element, flow, ("hidden", "heads", "kv_heads", "head_dim"))
    hidden, heads = read.number("hidden"), read.number("heads")
    kv_heads = read.number("kv_heads", heads)
    default = hidden // heads if hidden % heads == 0 and hidden >= heads else None
    head_dim = read.number("head_dim", default)
    window = read.number("window", 0, 0) or None
    causal, bias = read.flag("causal", False), read.flag("bias", True)
    read.done()
    flow.enter(element.where, hidden)
    if heads % kv_heads:
        flow.fault(element.where, "kv_heads does not divide heads", got=f"{kv_heads} and {heads}")
    if flow.size is not None:
        flow.fault(element.where, "attention works on tokens, not on a picture")
    flow.features = hidden
    spec = AttentionSpec(
        hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, qkv_bias=bias, o_bias=bias,
        mask="causal" if causal or window else "full", window=window, names=AttentionNames(at=element.label),
    )  # fmt: skip
    return attention(spec)


ELEMENTS: dict[str, Callable[[Element, Flow], tuple[Node, ...]]] = {
    "linear": _linear,
    "conv1d": _conv(1),
    "conv2d": _conv(2),
    "conv3d": _conv(3),
    "convtranspose1d": _conv(1, turned=True),
    "convtranspose2d": _conv(2, turned=True),
    "convtranspose3d": _conv(3, turned=True),
    "maxpool": _pool,
    "avgpool": _pool,
    "adaptiveavgpool": _adaptive_pool,
    **dict.fromkeys(("relu", "gelu", "silu", "sigmoid", "tanh", "softmax"), _activation),
    "dropout": _dropout,
    "flatten": _flatten,
    "layernorm": _norm("layer"),
    "rmsnorm": _norm("rms"),
    "batchnorm": _norm("layer"),
    "embedding": _embedding,
    "lstm": _recurrent,
    "gru": _recurrent,
    "rnn": _recurrent,
    "attention": _attention,
}
