"""Layer expressions: `"conv2d(3, 64, kernel=7, stride=2, padding=3) @ 224x224 -> relu -> flatten -> linear(…)"`.

Elements and defaults are those of torch.nn. `->` chains them; `@ HxW` gives the size of the picture (or `@ L` the
length of a signal) that convolutions work on. Without `@`, layers work on tokens and --seq says how many. The text
is parsed, never evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, shown
from suanli.nouns.arch import (
    SAMPLE,
    TOKENS,
    Arch,
    Conv,
    Elementwise,
    Embedding,
    Linear,
    Module,
    Norm,
    Recurrent,
    Stream,
)
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped

MAX_TEXT = 20_000
MAX_NUMBER = 10**9

BARE_WORD = re.compile(r"([(,]\s*)([a-z_]+)(?=\s*[,)])")  # `bidirectional` is short for `bidirectional=true`

# torch's own spellings of the options
TORCH_NAMES = {
    "kernel_size": "kernel", "num_layers": "layers", "input_size": "input", "hidden_size": "hidden",
    "proj_size": "proj", "num_heads": "heads", "embed_dim": "hidden", "num_embeddings": "num", "embedding_dim": "dim",
    "output_size": "size", "normalized_shape": "dim", "num_features": "dim", "in_features": "inputs",
    "out_features": "outputs", "in_channels": "inputs", "out_channels": "outputs",
}  # fmt: skip

Size = tuple[int, ...]


def looks_like_expression(text: str) -> bool:
    """Whether `text` is meant as a layer expression rather than a name or a path."""
    head = text.strip().split("(", 1)[0].strip().lower()
    return "(" in text and head.isidentifier() and head in ELEMENTS or "->" in text


@dataclass
class Flow:
    """What reaches an element: features (channels) and, for pictures and signals, their spatial size."""

    size: Size | None
    features: int | None = None
    faults: FaultList = field(default_factory=lambda: FaultList(ConfigError))

    def fault(self, where: str, message: str, **parts: Any) -> None:
        """Record a fault at an element."""
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


# --- elements -----------------------------------------------------------------------------------------------------


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


def _conv(rank: int) -> Callable[[Element, Flow], tuple[Node, ...]]:
    def build(element: Element, flow: Flow) -> tuple[Node, ...]:
        read = Reading(element, flow, ("inputs", "outputs", "kernel", "stride", "padding"))
        c_in, c_out = read.number("inputs"), read.number("outputs")
        kernel, stride = read.sizes("kernel", rank), read.sizes("stride", rank, 1)
        padding, dilation = read.sizes("padding", rank, 0, 0), read.sizes("dilation", rank, 1)
        extra = read.sizes("output_padding", rank, 0, 0)
        groups, bias, transposed = (
            read.number("groups", 1),
            read.flag("bias", True),
            read.flag("transposed", False),
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
        reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
        if transposed:
            moved = zip(size, stride, padding, reach, extra, strict=True)
            out = tuple((n - 1) * s - 2 * p + r + e for n, s, p, r, e in moved)
        else:
            out = tuple((n + 2 * p - r) // s + 1 for n, s, p, r in zip(size, stride, padding, reach, strict=True))
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
        flow.size = (1,) * rank
    return flow.size


def _checked(element: Element, flow: Flow, size: Size) -> Size:
    if min(size) < 1:
        flow.fault(element.where, "nothing is left of the input", got="x".join(map(str, size)))
        return tuple(max(1, n) for n in size)
    return size


def _pool(element: Element, flow: Flow) -> tuple[Node, ...]:
    rank = len(flow.size or (1, 1))
    read = Reading(element, flow, ("kernel", "stride", "padding"))
    kernel = read.sizes("kernel", rank)
    stride, padding = read.sizes("stride", rank, kernel[0]), read.sizes("padding", rank, 0, 0)
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


# --- parsing ------------------------------------------------------------------------------------------------------


def read_layer_expression(text: str, name: str | None = None, image: Size | None = None) -> Arch:
    """The architecture an expression describes. `image` overrides the size after `@`. Raises ConfigError."""
    flow = Flow(size=image)
    if len(text) > MAX_TEXT:
        flow.fault(
            "the expression",
            "the expression is too long",
            got=f"{len(text):,} characters",
            expected=f"{MAX_TEXT:,}",
        )
        flow.faults.raise_if_any()
    elements = [_parse(index, part, flow) for index, part in enumerate(text.split("->"))]
    if image is not None:
        flow.size = image
    nodes: list[Node] = []
    for element in elements:
        if element is not None:
            nodes.extend(ELEMENTS[element.name](element, flow))
    flow.faults.raise_if_any()
    spatial = any(isinstance(node, Conv) for node in nodes)
    return Arch(
        name=name or " ".join(text.split()),
        root=Module(name="", children=tuple(nodes), stream=SAMPLE if spatial else TOKENS),
        streams=() if spatial else (Stream(name=TOKENS),),
        main_stream=SAMPLE if spatial else TOKENS,
        task="expression",
        unit="sample" if spatial else "token",
    )


def _parse(index: int, part: str, flow: Flow) -> Element | None:
    """One element; a fault and None where it cannot be read."""
    body, _, size = part.partition("@")
    body = BARE_WORD.sub(r"\1\2=true", body.lower())
    where = f"element {index + 1}"
    if size.strip():
        _take_size(where, size, flow)
    try:
        tree = ast.parse(body.strip() or "?", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        flow.fault(where, "cannot be read", got=shown(body.strip()), expected="name(number, …, option=number)")
        return None
    call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
    if not isinstance(call.func, ast.Name) or call.func.id not in ELEMENTS:
        word = call.func.id if isinstance(call.func, ast.Name) else body.strip()
        flow.fault(
            where,
            f"unknown layer {shown(word)}",
            expected=", ".join(ELEMENTS),
            nearest=nearest_names(word, ELEMENTS),
        )
        return None
    element = Element(index, call.func.id, (), {})
    return _arguments(element, call, flow)


def _take_size(where: str, text: str, flow: Flow) -> None:
    parts = text.strip().lower().split("x")
    if all(part.isdecimal() and 0 < int(part[:10]) <= 10**6 and len(part) < 8 for part in parts) and len(parts) <= 3:
        flow.size = tuple(int(part) for part in parts)
    else:
        flow.fault(where, "the size after @ cannot be read", got=shown(text.strip()), expected="a size like 224x224")


def _arguments(element: Element, call: ast.Call, flow: Flow) -> Element | None:
    args, options = [], {}
    for node in call.args:
        args.append(_literal(element, node, flow))
    for keyword in call.keywords:
        name = keyword.arg or "**"
        options[TORCH_NAMES.get(name, name)] = _literal(element, keyword.value, flow)
    return Element(element.index, element.name, tuple(args), options)


def _literal(element: Element, node: ast.expr, flow: Flow) -> Any:
    """A number, true, false, or a tuple of numbers; anything else is a fault."""
    if isinstance(node, ast.Name) and node.id in ("true", "false"):
        return node.id == "true"
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_literal(element, item, flow) for item in node.elts)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        value = node.value
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_NUMBER else value
    return ast.unparse(node) if len(ast.dump(node)) < 2000 else "…"
