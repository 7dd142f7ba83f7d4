"""Layer expressions: `"conv2d(3, 64, kernel=7, stride=2, padding=3) @ 224x224 -> relu -> flatten -> linear(…)"`.

Elements and defaults are those of torch.nn. `->` chains them; `@ HxW` gives the size of the picture (or `@ L` the
length of a signal) that convolutions work on. Without `@`, layers work on tokens and --seq says how many. The text
is parsed, never evaluated.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from suanli.errors import nearest_names, shown
from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Conv
from suanli.readers.blocks import Node
from suanli.readers.layer_elements import ELEMENTS, MAX_NUMBER, Element, Flow, Size

MAX_TEXT = 20_000
MAX_ELEMENTS = 1_000

# What may stand in an element, so that the parser never meets strings, operators or names of other scripts, and
# the start of a number that runs into a word (`1and`), over which it would warn.
LETTERS = re.compile(r"[a-z0-9_\s(),=.\[\]-]*")
RUN_ON = re.compile(r"(?<![\w.])\d[\d_.]*+(?:e[+-]?\d+)?+[a-z_]")
BARE_WORD = re.compile(r"([(,]\s*)([a-z_]+)(?=\s*[,)])")  # `bidirectional` is short for `bidirectional=true`

# torch's own spellings of the options
TORCH_NAMES = {
    "kernel_size": "kernel", "num_layers": "layers", "input_size": "input", "hidden_size": "hidden",
    "proj_size": "proj", "num_heads": "heads", "embed_dim": "hidden", "num_embeddings": "num", "embedding_dim": "dim",
    "output_size": "size", "normalized_shape": "dim", "num_features": "dim", "in_features": "inputs",
    "out_features": "outputs", "in_channels": "inputs", "out_channels": "outputs",
}  # fmt: skip


def looks_like_expression(text: str) -> bool:
    """Whether `text` is meant as a layer expression rather than a name or a path."""
    head = text.strip().split("(", 1)[0].strip().lower()
    return ("(" in text and head in ELEMENTS) or "->" in text


def read_layer_expression(text: str, name: str | None = None, image: Size | None = None) -> Arch:
    """The architecture an expression describes. `image` overrides the size after `@`. Raises ConfigError."""
    flow = Flow(size=image)
    elements = _elements(text, flow)
    if image is not None:
        flow.size = image
    nodes: list[Node] = []
    for element in elements:
        known = len(flow.faults.faults)
        if element is not None:
            nodes.extend(ELEMENTS[element.name](element, flow))
        if element is None or len(flow.faults.faults) > known:
            flow.features = None
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


def read_elements(text: str) -> tuple[list[Element], Size | None]:
    """The elements of an expression as parsed, and the size after `@`. Raises ConfigError."""
    flow = Flow(size=None)
    elements = _elements(text, flow)
    flow.faults.raise_if_any()
    return [element for element in elements if element is not None], flow.size


def _elements(text: str, flow: Flow) -> list[Element | None]:
    """Every element, None where one cannot be read."""
    if len(text) > MAX_TEXT:
        flow.fault(
            "the expression",
            "the expression is too long",
            got=f"{len(text):,} characters",
            expected=f"{MAX_TEXT:,}",
        )
        flow.faults.raise_if_any()
    parts = text.split("->")
    if len(parts) > MAX_ELEMENTS:
        flow.fault("the expression", "too many elements", got=f"{len(parts):,}", expected=f"at most {MAX_ELEMENTS:,}")
        flow.faults.raise_if_any()
    return [_parse(index, part, flow) for index, part in enumerate(parts)]


def _parse(index: int, part: str, flow: Flow) -> Element | None:
    """One element; a fault and None where it cannot be read."""
    body, _, size = part.partition("@")
    body = BARE_WORD.sub(r"\1\2=true", body.lower())
    where = f"element {index + 1}"
    if size.strip():
        _take_size(where, size, flow)
    tree = _tree(body)
    if tree is None:
        got = shown(part.partition("@")[0].strip())
        flow.fault(where, "cannot be read", got=got, expected="name(number, …, option=number)")
        return None
    call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
    if not isinstance(call.func, ast.Name) or call.func.id not in ELEMENTS:
        word = call.func.id if isinstance(call.func, ast.Name) else body.strip()[:100]
        flow.fault(
            where,
            f"unknown layer {shown(word)}",
            expected=", ".join(ELEMENTS),
            nearest=nearest_names(word, ELEMENTS),
        )
        return None
    element = Element(index, call.func.id, (), {})
    return _arguments(element, call, body.strip())


def _tree(body: str) -> ast.expr | None:
    """The syntax of an element; None where there is none."""
    if not LETTERS.fullmatch(body) or RUN_ON.search(body):
        return None
    try:
        return ast.parse(body.strip() or "?", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _take_size(where: str, text: str, flow: Flow) -> None:
    parts = text.strip().lower().split("x")
    if all(part.isdecimal() and 0 < int(part[:10]) <= 10**6 and len(part) < 8 for part in parts) and len(parts) <= 3:
        flow.size = tuple(int(part) for part in parts)
    else:
        flow.fault(where, "the size after @ cannot be read", got=shown(text.strip()), expected="a size like 224x224")


def _arguments(element: Element, call: ast.Call, text: str) -> Element:
    named = [(keyword.arg or "**", _literal(keyword.value, text)) for keyword in call.keywords]
    options = {TORCH_NAMES.get(name, name): value for name, value in named}
    return Element(element.index, element.name, tuple(_literal(node, text) for node in call.args), options)


def _literal(node: ast.expr, text: str) -> Any:
    """A number, true, false, or a tuple of numbers; of anything else its text, which no option takes."""
    if isinstance(node, ast.Name) and node.id in ("true", "false"):
        return node.id == "true"
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_literal(item, text) for item in node.elts)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        value = node.value
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_NUMBER else value
    return (ast.get_source_segment(text, node) or "")[:100]
