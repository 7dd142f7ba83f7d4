"""Text of NVTX ranges that PyTorch writes (torch.autograd.profiler.emit_nvtx): name, sequence, op id, input shapes.

`aten::mm, seq = 12, op_id = 345, sizes = [[64, 32], [32, 8]], input_op_ids = [(344, 0)]`; each part but the name may
be absent. Without shapes there is no `sizes`; an input that is no tensor is `[]`, as a scalar tensor is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_TEXT = re.compile(
    r"(?P<name>.*?)(?:, seq = (?P<seq>\d{1,18}))?(?:, op_id = (?P<op>\d{1,18}))?"
    r"(?:, sizes = (?P<sizes>\[[\d\[\], -]*\]))?(?:, input_op_ids = \[[\d(), -]*\])?",
    re.DOTALL,
)
_OPERATOR = re.compile(r"\w+(?:::[\w.]+)+")
_ENGINE = "autograd::engine::"
_MAX_TEXT = 100_000  # longer ones are taken as they are
_MAX_NESTING = 3  # of shapes: an argument that is a list of tensors


@dataclass(frozen=True)
class NvtxText:
    """What a text says. sequence -1: none; dims None: not recorded."""

    name: str
    sequence: int = -1
    dims: tuple[Any, ...] | None = None
    operator: bool = False


def nvtx_text(text: str) -> NvtxText:
    """The parts of a range's text; whatever is not PyTorch's is a name as a whole."""
    if len(text) > _MAX_TEXT or ", " not in text:
        return NvtxText(text)
    match = _TEXT.fullmatch(text)
    assert match is not None, "the name alone matches everything"
    name, sequence, number, sizes = match.group("name", "seq", "op", "sizes")
    dims = _dims(sizes) if sizes else None
    if sizes and dims is None:
        return NvtxText(text)
    written = sequence is not None or number is not None or dims is not None
    # record_function is written alike; an operator has a sequence, shapes, or a name with a namespace and no blank
    operator = written and (sequence is not None or dims is not None or _is_operator(name))
    return NvtxText(name, int(sequence) if sequence else -1, dims, operator)


def _is_operator(name: str) -> bool:
    return _OPERATOR.fullmatch(name) is not None or name.startswith(_ENGINE)


@lru_cache(maxsize=10_000)  # a model has few shapes, and a trace millions of calls
def _dims(sizes: str) -> tuple[Any, ...] | None:
    """Shapes as nested tuples; None where the text is no list of lists of numbers."""
    if _deepest(sizes) > _MAX_NESTING:
        return None
    try:
        found = json.loads(sizes)
    except ValueError:
        return None
    if not all(isinstance(each, list) for each in found):
        return None
    dims: tuple[Any, ...] = _tuples(found)
    return dims


def _deepest(sizes: str) -> int:
    depth = deepest = 0
    for each in sizes:
        depth += (each == "[") - (each == "]")
        deepest = max(deepest, depth)
    return deepest


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
