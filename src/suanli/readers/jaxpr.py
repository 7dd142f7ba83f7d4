"""Walks a jaxpr: products by formula, loops times their length, what runs twice told apart, the rest listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from typing import Any

from suanli.formulas import counting
from suanli.nouns.graph import Missing
from suanli.nouns.ledger import FORWARD, RECOMPUTE_PASS, Op

REMATTED = "rematted_computation"  # the name JAX gives to what jax.checkpoint computes again
COMPLEX_PRODUCTS = 4  # real products in one complex product

# Primitives that multiply and have no formula with one agreed count, or hide what they do.
NO_FORMULA = {
    "cholesky", "cholesky_update", "lu", "qr", "geqrf", "geqp3", "householder_product", "triangular_solve", "svd",
    "eig", "eigh", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve", "fft", "symmetric_product", "ormqr",
}  # fmt: skip
# Beside what jax.extend names: they move or combine elements.
PASSIVE = {
    "stack", "unstack", "tile",
    "broadcast_in_dim", "convert_element_type", "reshape", "transpose", "pjit", "erf_inv", "split", "copy_p",
    "optimization_barrier", "random_wrap", "random_unwrap", "random_clone", "random_gamma_grad", "select_and_scatter",
    "reduce_precision", "clamp", "iota",  "axis_index", "pvary", "psum2", "psum_invariant", "debug_callback", "squeeze",
    "sharding_constraint", "mesh_cast", "reshard", "layout_constraint", "empty", "dce_sink", "argsort", "pcast",
    "reduce_and", "reduce_or", "reduce_xor", "scatter_add", "scatter_mul", "scatter_sub", "scatter-sub", "tan", "mulhi",
    "select_and_gather_add", "stop_gradient", "zeros_like", "create_token", "after_all", "add_jaxvals", "sin", "cos",
    "ragged_all_to_all", "all_gather_reduced", "all_gather_invariant", "reduce_scatter", "pbroadcast", "platform_index",
}  # fmt: skip


@cache
def passive() -> frozenset[str]:
    """Names of JAX's own primitives that multiply no matrices."""
    from jax.extend.core import primitives  # noqa: PLC0415

    own = {getattr(primitives, name).name for name in dir(primitives) if name.endswith("_p")}
    return frozenset((own | PASSIVE) - NO_FORMULA - PRODUCTS.keys())


def _linear(tokens: int, in_features: int, out_features: int) -> tuple[str, int]:
    return "linear_flops", counting.linear_flops(tokens, in_features, out_features)


def _dot(equation: Any) -> tuple[str, int]:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return _linear(prod(equation.outvars[0].aval.shape), prod(left[axis] for axis in contracted), 1)


def _ragged_dot(equation: Any) -> tuple[str, int]:
    """Each row passes one group: whatever the groups' sizes, rows times a matrix."""
    numbers = equation.params["ragged_dot_dimension_numbers"]
    (_, contracted), (_, batch) = numbers.dot_dimension_numbers
    left, right = (each.aval.shape for each in equation.invars[:2])
    inside = {*contracted, *batch, *numbers.rhs_group_dimensions}
    return _linear(prod(left), 1, prod(size for axis, size in enumerate(right) if axis not in inside))


def _conv(equation: Any) -> tuple[str, int]:
    numbers, data, kernel = equation.params["dimension_numbers"], *(each.aval.shape for each in equation.invars[:2])
    out = equation.outvars[0].aval.shape
    size = prod(kernel[axis] for axis in numbers.rhs_spec[2:])
    channels, inner = kernel[numbers.rhs_spec[0]], kernel[numbers.rhs_spec[1]]
    if any(dilation > 1 for dilation in equation.params["lhs_dilation"]):  # transposed: the zeros between are skipped
        positions = prod(data[axis] for axis in numbers.lhs_spec[2:])
    else:
        positions = prod(out[axis] for axis in numbers.out_spec[2:])
    samples = data[numbers.lhs_spec[0]] // equation.params["batch_group_count"]
    return "conv_flops", counting.conv_flops(samples, positions, inner, channels, 1, size)


PRODUCTS: dict[str, Callable[[Any], tuple[str, int]]] = {
    "dot_general": _dot,
    "ragged_dot_general": _ragged_dot,
    "ragged_dot": _ragged_dot,
    "conv_general_dilated": _conv,
}


def inner_jaxprs(equation: Any) -> Iterator[tuple[str, Any]]:
    """Jaxprs among the parameters of an equation, by the parameter's name."""
    for name, value in equation.params.items():
        for each in value if isinstance(value, tuple | list) else (value,):
            found = getattr(each, "jaxpr", each)
            if hasattr(found, "eqns"):
                yield name, found


class Walk:
    """Rows, primitives without a formula, and remarks, gathered from a jaxpr and all inside it."""

    def __init__(self) -> None:
        self.rows: list[Op] = []
        self.missing = Missing()
        self.notes: dict[str, None] = {}

    def jaxpr(self, jaxpr: Any, path: str, times: int, again: bool) -> None:
        """Every equation of a jaxpr that runs `times` times; `again` where it is computed a second time."""
        for equation in jaxpr.eqns:
            stack = str(equation.source_info.name_stack)
            self._equation(equation, path, times, again or REMATTED in stack)

    def _equation(self, equation: Any, path: str, times: int, again: bool) -> None:
        name = equation.primitive.name
        if name in PRODUCTS:
            self._product(equation, path, times, again)
        elif name == "scan":
            length = equation.params["length"]
            self.jaxpr(equation.params["jaxpr"].jaxpr, f"{path}scan.", times * length, again)
        elif name == "while":
            self._while(equation, path, times, again)
        elif name == "cond":
            self._cond(equation, path, times, again)
        elif name == "pallas_call" or name in NO_FORMULA:
            self.missing.add(name, _shapes(equation), times)
        elif name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_linear_solve"):
            self._custom(equation, name, path, times, again)
        else:
            self._other(equation, name, path, times, again)

    def _product(self, equation: Any, path: str, times: int, again: bool) -> None:
        name = equation.primitive.name
        formula, flops = PRODUCTS[name](equation)
        if equation.outvars[0].aval.dtype.kind == "c":
            flops *= COMPLEX_PRODUCTS
        reads, writes = (
            sum(each.aval.size * each.aval.dtype.itemsize for each in values) * times
            for values in (equation.invars, equation.outvars)
        )
        pass_, model = (RECOMPUTE_PASS, 0) if again else (FORWARD, flops * times)
        where = f"{path}{name} {_shapes(equation)}"
        self.rows.append(Op(where, name, pass_, model, flops * times, reads, writes, 0, times, formula))

    def _while(self, equation: Any, path: str, times: int, again: bool) -> None:
        self.missing.add(
            "while", _shapes(equation), times, "the number of trips is not known; its body is counted once"
        )
        for part in ("cond_jaxpr", "body_jaxpr"):
            self.jaxpr(equation.params[part].jaxpr, f"{path}while.", times, again)

    def _cond(self, equation: Any, path: str, times: int, again: bool) -> None:
        best: list[Op] = []
        for branch in equation.params["branches"]:
            apart = Walk()
            apart.missing, apart.notes = self.missing, self.notes
            apart.jaxpr(branch.jaxpr, f"{path}cond.", times, again)
            if sum(row.hardware_flops for row in apart.rows) >= sum(row.hardware_flops for row in best):
                best = apart.rows
        if best:
            self.notes["of the branches of cond the one with most FLOPs is counted"] = None
        self.rows.extend(best)

    def _custom(self, equation: Any, name: str, path: str, times: int, again: bool) -> None:
        """The function itself; the rules of its derivatives are no work until they are called."""
        if name == "custom_linear_solve":
            self.missing.add(name, _shapes(equation), times)
            return
        wanted = ("call_jaxpr", "fun_jaxpr")
        for key, inner in inner_jaxprs(equation):
            if key in wanted:
                self.jaxpr(inner, path, times, again)

    def _other(self, equation: Any, name: str, path: str, times: int, again: bool) -> None:
        inner = list(inner_jaxprs(equation))
        label = equation.params.get("name")
        here = f"{path}{label}." if isinstance(label, str) and inner else path
        if name.startswith(("reduce", "scatter", "select_and", "sort", "cum", "argm")):
            return  # their jaxpr combines two elements
        for _, jaxpr in inner:
            self.jaxpr(jaxpr, here, times, again)
        if not inner and name not in passive():
            self.missing.add(name, _shapes(equation), times)


def _shapes(equation: Any) -> str:
    """Shapes of the inputs: `[32, 16], [8, 16, 4]`."""
    shapes = [str(list(getattr(each.aval, "shape", ()))) for each in equation.invars[:4]]
    return ", ".join(shapes)
