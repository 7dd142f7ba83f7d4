"""What products of matrices cost, dense, complex, packed or sparse, from the shapes they are called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.formulas import counting, operators

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs of one call: `flops` over every pair, `masked` over the pairs the mask leaves (the same elsewhere).

    `extra` and `extra_masked` are what the kernel executes beyond what the model needs.
    """

    kind: str
    formula: str
    flops: int
    masked: int
    extra: int = 0
    extra_masked: int = 0
    backward: bool = False


def cost(kind: str, formula: Callable[..., int], *values: int, backward: bool = False) -> Cost:
    """The cost of a call whose formula has these arguments."""
    flops = formula(*values)
    return Cost(kind, formula.__name__, flops, flops, backward=backward)


# --- sparse ones --------------------------------------------------------------------------------------------------


def is_sparse(tensor: Any) -> bool:
    """Whether only some of its elements are stored."""
    return "sparse" in str(tensor.layout)


def stored(sparse: Any) -> int:
    """Elements a sparse tensor stores: values, blocks counted whole. On the meta device nobody knows."""
    if sparse.device.type == "meta":
        raise NotImplementedError("a sparse meta tensor does not say how many elements it stores")
    return int(sparse.values().numel()) if "coo" not in str(sparse.layout) else int(sparse._values().numel())


def _meetings(left: Any, right: Any) -> int:
    """Multiply-adds of two sparse matrices: every stored element of a column by those of the row it meets."""
    if "meta" in (left.device.type, right.device.type):
        raise NotImplementedError("a sparse meta tensor does not say which elements it stores")
    counts = [
        tensor.detach().to_sparse_coo()._indices()[axis].bincount(minlength=left.shape[1])
        for tensor, axis in ((left, 1), (right, 0))
    ]
    return int((counts[0] * counts[1]).sum())


def _sparse_product(left: Any, right: Any) -> Cost:
    """Sparse by dense, dense by sparse, sparse by sparse; a vector is one column."""
    if is_sparse(left) and is_sparse(right):
        return cost("sparse", operators.sparse_product_flops, _meetings(left, right), 1)
    sparse, other, side = (left, right, -1) if is_sparse(left) else (right, left, -2)
    columns = other.shape[side] if other.dim() > 1 else 1
    return cost("sparse", operators.sparse_product_flops, stored(sparse), columns)


def sampled(at: Named, _: Any) -> Cost:
    """A dense product of which only the places that a sparse matrix stores are worked out."""
    return cost("sparse", operators.sparse_product_flops, stored(at["self"]), at["mat1"].shape[-1])


def reduced(at: Named, _: Any) -> Cost:
    """A sparse product whose rows are summed, averaged or their greatest taken."""
    return cost("sparse", operators.sparse_product_flops, stored(at["self"]), at["other"].shape[-1])


def reduced_backward(at: Named, _: Any) -> Cost:
    """By the output mask: gradients of the stored elements and of the dense matrix."""
    columns = sum(map(bool, at["output_mask"])) * at["grad_out"].shape[-1]
    return cost("sparse", operators.sparse_product_flops, stored(at["self"]), columns, backward=True)


# --- matrix products ----------------------------------------------------------------------------------------------


def product_cost(left: Any, right: Any, kind: str = "linear") -> Cost:
    """[…, T, I] by […, I, O]: plain, complex or sparse."""
    if is_sparse(left) or is_sparse(right):
        return _sparse_product(left, right)
    columns = right.shape[-1] if right.dim() > 1 else 1
    rows = prod(left.shape[:-1]) if left.dim() > 1 else 1
    formula = operators.complex_linear_flops if left.dtype.is_complex else counting.linear_flops
    return cost(kind, formula, rows, left.shape[-1], columns)


def two(left: str, right: str, kind: str = "linear") -> Callable[[Named, Any], Cost]:
    """The product of two arguments by their names."""
    return lambda at, _: product_cost(at[left], at[right], kind)


def linear(at: Named, _: Any) -> Cost:
    """x by the transpose of a weight of [O, I], or of [I]."""
    x, weight = at["input"], at["weight"]
    if is_sparse(weight):
        return cost("sparse", operators.sparse_product_flops, stored(weight), prod(x.shape[:-1]))
    outputs = weight.shape[0] if weight.dim() > 1 else 1
    formula = operators.complex_linear_flops if x.dtype.is_complex else counting.linear_flops
    return cost("linear", formula, prod(x.shape[:-1]), x.shape[-1], outputs)


def by_output(first: str) -> Callable[[Named, Any], Cost]:
    """Packed weights: inputs from the argument, outputs from the result."""

    def found(at: Named, out: Any) -> Cost:
        x, result = at[first], out[0] if isinstance(out, tuple | list) else out
        return cost("linear", counting.linear_flops, prod(x.shape[:-1]), x.shape[-1], result.shape[-1])

    return found


def semi_structured(at: Named, _: Any) -> Cost:
    """Half of a 2:4 sparse matrix is stored, but it stands for the whole; the dense side says how wide it is."""
    x, weight = at.get("input", at.get("mat2")), at.get("weight", at.get("mat1"))
    if "input" in at:
        return cost("linear", counting.linear_flops, prod(x.shape[:-1]), x.shape[-1], weight.shape[0])
    return cost("linear", counting.linear_flops, weight.shape[0], x.shape[-2], x.shape[-1])


def grouped(at: Named, _: Any) -> Cost:
    """Groups of rows by their own matrices (2-D by 3-D), or groups of inner columns summed apart (2-D by 2-D)."""
    left, right = at["self"], at["mat2"]
    if left.dim() == 2 and right.dim() == 3:
        return cost("experts", counting.linear_flops, left.shape[0], left.shape[1], right.shape[2])
    if left.dim() == 3 and right.dim() == 2:
        return cost("experts", counting.linear_flops, left.shape[1], left.shape[2], right.shape[1])
    if left.dim() == 3:
        return cost("experts", counting.linear_flops, left.shape[0] * left.shape[1], left.shape[2], right.shape[2])
    return cost("experts", counting.linear_flops, left.shape[0], left.shape[1], right.shape[1])


def vectors(at: Named, _: Any) -> Cost:
    """Two vectors: one number."""
    x = at["self"]
    formula = operators.complex_linear_flops if x.dtype.is_complex else counting.linear_flops
    return cost("matmul", formula, 1, x.numel(), 1)


def trilinear(at: Named, _: Any) -> Cost:
    """Three tensors, unsqueezed and contracted pairwise; what only the third has is not in the first product."""
    expands = [set(at[f"expand{i}"]) for i in (1, 2, 3)]
    tensors = [at[f"i{i}"] for i in (1, 2, 3)]
    rank = tensors[0].dim() + len(expands[0])
    sizes = [_unsqueezed(tensor.shape, expand, rank) for tensor, expand in zip(tensors, expands, strict=True)]
    summed = set(at["sumdim"])
    early = {dim for dim in summed if dim in expands[2]}
    first = [max(sizes[0][dim], sizes[1][dim]) for dim in range(rank)]
    kept = [1 if dim in early else first[dim] for dim in range(rank)]
    second = [max(kept[dim], sizes[2][dim]) for dim in range(rank)]
    return cost(
        "linear",
        operators.trilinear_flops,
        prod(first) if early else 0,
        prod(second) if summed - early else 0,
    )


def _unsqueezed(shape: Sequence[int], expand: set[int], rank: int) -> list[int]:
    rest = iter(shape)
    return [1 if dim in expand else next(rest) for dim in range(rank)]


def rank_one(at: Named, _: Any) -> Cost:
    """A column by a row, added to a matrix."""
    left, right = at["vec1"], at["vec2"]
    formula = operators.complex_linear_flops if left.dtype.is_complex else counting.linear_flops
    return cost("matmul", formula, left.shape[0], 1, right.shape[0])
