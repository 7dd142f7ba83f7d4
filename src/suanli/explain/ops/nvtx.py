"""Operators as torch names them for NVTX: `aten::mm, seq = 7, op_id = 12, sizes = [[64, 32], [32, 8]]`.

`torch.autograd.profiler.emit_nvtx(record_shapes=True)` writes the sizes; without it there are none.
"""

from __future__ import annotations

import json
import re
from typing import Any

from suanli.nouns.trace import OpDetail

_NAME = re.compile(r"^(?P<name>[^,]+?)(?:, seq = (?P<seq>\d+))?(?:, op_id = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?"
                   r"(?:, input_op_ids = .*)?$")  # fmt: skip
_MARK = re.compile(r", (?:seq|op_id|sizes) = ")


def is_operator(name: str) -> bool:
    """Whether a range was written by torch's dispatcher."""
    return _MARK.search(name) is not None


def parsed(name: str) -> tuple[str, int, OpDetail | None]:
    """Name, autograd sequence number (-1: none) and sizes of one range; its own name where it is none of torch's."""
    match = _NAME.match(name) if is_operator(name) else None
    if match is None:
        return name, -1, None
    sizes = _sizes(match["sizes"])
    detail = None if sizes is None else OpDetail(dims=sizes)
    return match["name"], int(match["seq"]) if match["seq"] else -1, detail


def _sizes(text: str | None) -> tuple[Any, ...] | None:
    if text is None:
        return None
    try:
        read = json.loads(text)
    except ValueError:  # cut short: NVTX keeps names only up to a length
        return None
    return tuple(map(_tuples, read))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
