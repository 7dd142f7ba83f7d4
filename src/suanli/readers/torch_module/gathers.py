"""Bytes of gathers and scatters: rows picked from a table and rows put into one, never the whole table.

A gather reads its indices and the elements they pick, and writes these. A scatter reads its indices and its source,
and writes the elements they name, which one that accumulates reads as well. Out of place, the target is first copied
or filled with zeros: read and written whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

Named = Mapping[str, Any]
Moved = tuple[int, int]  # bytes read and written


def tensor_bytes(tensor: Any) -> int:
    """Bytes a tensor's elements take in memory, those of an expanded tensor once; of sparse ones those stored."""
    if tensor.is_nested:
        return int(tensor.untyped_storage().nbytes()) if "jagged" not in str(tensor.layout) else 0
    if "strided" not in str(tensor.layout):
        return _stored_bytes(tensor)
    held = prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or size == 0)
    return int(held * tensor.element_size())


def _stored_bytes(sparse: Any) -> int:
    """Values and indices; on the meta device a sparse tensor stores none."""
    if "jagged" in str(sparse.layout) or "mkldnn" in str(sparse.layout):
        return int(sparse.numel() * sparse.element_size())
    parts: tuple[Any, ...]
    if "coo" in str(sparse.layout):
        parts = (sparse._values(), sparse._indices())
    elif str(sparse.layout) in ("torch.sparse_csr", "torch.sparse_bsr"):
        parts = (sparse.values(), sparse.crow_indices(), sparse.col_indices())
    else:
        parts = (sparse.values(), sparse.ccol_indices(), sparse.row_indices())
    return sum(int(part.numel() * part.element_size()) for part in parts)


def _size(value: Any) -> int:
    """Bytes of a tensor, or of those in a list; nothing else takes any."""
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return tensor_bytes(value) if hasattr(value, "layout") else 0


def _elements(count: int, like: Any) -> int:
    return int(count * like.element_size())


def _gather(at: Named, out: Any) -> Moved:
    """What is picked stands in the result; every argument but the table says which."""
    picked = _size(out)
    table = at.get("self", at.get("weight"))
    return picked + _size([value for value in at.values() if value is not table]), picked


def _bag(at: Named, out: Any) -> Moved:
    """Rows are read one by one, and summed, averaged or compared as they come."""
    indices, weight = at["indices"], at["weight"]
    rows = _elements(indices.numel() * weight.shape[-1], weight)
    return rows + _size([indices, at["offsets"], at.get("per_sample_weights")]), _size(out)


def _table_gradient(at: Named, out: Any) -> Moved:
    """A table of zeros, to whose rows the gradients of those looked up are added."""
    grad, indices = at.get("grad_output", at.get("grad")), at["indices"]
    rows = _elements(indices.numel() * grad.shape[-1], grad)
    if "sparse" in str(out.layout):
        return _size([grad, indices]), _size(out)
    return _size([grad, indices, at.get("offset2bag")]) + rows, _size(out) + rows


def _touched(at: Named) -> int:
    """Elements a scatter names."""
    target, index = at["self"], at.get("index", at.get("mask"))
    source = at.get("source", at.get("values", at.get("src")))
    base = at["operator"].rstrip("_")
    if base.startswith("scatter"):
        return int(index.numel())
    if base == "index_fill":
        return int(index.numel() * target.numel() // max(target.shape[at["dim"]] if target.dim() else 1, 1))
    return int(source.numel())


def _scatter(at: Named, out: Any) -> Moved:
    name = at["operator"]
    touched = _elements(_touched(at), at["self"])
    source = at.get("source", at.get("values", at.get("src")))
    told = _size([value for key, value in at.items() if value is not at["self"] and value is not source])
    read = told + (touched if hasattr(source, "layout") else 0) + (touched if _accumulates(at) else 0)
    whole = 0 if name.endswith("_") else _size(out)
    return read + (_size(at["self"]) if whole else 0), touched + whole


def _accumulates(at: Named) -> bool:
    """Whether what stands there is used: added to, or compared with."""
    name = at["operator"].rstrip("_")
    named = name in ("index_add", "scatter_add", "index_reduce", "_unsafe_masked_index_put_accumulate")
    return named or bool(at.get("accumulate")) or (name.startswith("scatter") and bool(at.get("reduce")))


_GATHERED = ("embedding", "index", "_unsafe_index", "index_select", "gather", "take", "masked_select")
_SCATTERED = ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_reduce",
              "index_put", "_unsafe_index_put", "_index_put_impl", "put")  # fmt: skip
_GRADIENTS = ("embedding_dense_backward", "embedding_sparse_backward", "_embedding_bag_backward",
              "_embedding_bag_dense_backward")  # fmt: skip
MovedBy = Callable[[Named, Any], Moved]
MOVES: dict[str, MovedBy] = {f"aten::{name}": _gather for name in _GATHERED}
MOVES |= {f"aten::{name}": _scatter for name in _SCATTERED}
MOVES |= {f"aten::{name}": _table_gradient for name in _GRADIENTS}
MOVES |= {f"aten::{name}": _bag for name in ("_embedding_bag", "_embedding_bag_forward_only")}


def moved_by(name: str) -> MovedBy | None:
    """How many bytes an operator moves, where that is not all of its arguments and results."""
    return MOVES.get(name) or MOVES.get(name.rstrip("_"))
