"""The right books by module: what each multiplies, and the sizes of everything else it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from suanli.nouns.ledger import FORWARD, Ledger, Op

Call = Mapping[str, Any]


@dataclass
class Product:
    """Matrix products of one operator at one place, calls added up."""

    operator: str
    kind: str
    flops: int = 0
    bias: int = 0  # elements a bias is added to
    bias_itself: int = 0  # elements of the bias
    first_axis: int = 0  # FLOPs if only the first axis of the result were rows
    first_axis_bias: int = 0
    by_output: int = 0  # FLOPs if kernels of a transposed convolution were used per output
    broadcast: int = 0  # FLOPs if the axes that only the right factor has were dropped


@dataclass
class Sizes:
    """Elements an operator reads and writes, and rows of its last axis, calls added up."""

    read: int = 0
    written: int = 0
    rows: int = 0


@dataclass
class Place:
    """One module: products, sizes of what else it does, and the module itself."""

    path: str
    products: dict[str, Product] = field(default_factory=dict)
    sizes: dict[str, Sizes] = field(default_factory=dict)
    tables: int = 0  # FLOPs if lookups were products with one-hot rows
    tables_first_axis: int = 0
    weighted: int = 0  # elements of weight and bias times the first axis of the result
    weighted_twice: int = 0  # elements of other weights and biases times the first two axes
    as_conv: int = 0  # parameters times every axis of the result but the second, as of a convolution
    hidden: int = 0  # hidden units times positions of a recurrent stack

    @property
    def flops(self) -> int:
        """All products."""
        return sum(each.flops for each in self.products.values())


def places_of(calls: Iterable[Call]) -> dict[str, Place]:
    """Places by path, from a record of one forward pass."""
    found: dict[str, Place] = {}
    for call in calls:
        if call["height"] == "function":
            continue
        place = found.setdefault(call["path"], Place(call["path"]))
        if call["height"] == "operator":
            _add_operator(place, call)
        else:
            _add_module(place, call)
    return found


def as_ledger(places: Mapping[str, Place]) -> Ledger:
    """The products as rows, to be held against a formula's."""
    rows = [
        Op(place.path or product.kind, product.kind, FORWARD, product.flops, product.flops, 0, 0, 0, 1, "")
        for place in places.values()
        for product in place.products.values()
    ]
    return Ledger(tuple(rows), "full")


def first_shape(value: Any) -> list[int]:
    """Shape of a tensor, or of the first of several; an empty one where there is none."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        return next((found for each in value.get("values", ()) if (found := first_shape(each))), [])
    return []


def plain_name(name: str) -> str:
    """`Conv2d`, `conv2d` and `_convolution` by one name; in-place operators as their plain form."""
    flat = name.strip("_").replace("_", "").lower()
    for start, plain in _PLAIN.items():
        if flat.startswith(start):
            return plain
    return re.sub(r"(?<=[a-z])[123]d$", "", flat)


_PLAIN = {
    "convtranspose": "conv", "conv": "conv", "slowconv": "conv", "nativelayernorm": "layernorm",
    "nativebatchnorm": "batchnorm", "nativegroupnorm": "groupnorm", "scaleddotproduct": "attention",
    "gelu": "gelu", "silu": "silu", "upsample": "upsample", "interpolate": "upsample",
}  # fmt: skip


def _add_operator(place: Place, call: Call) -> None:
    times, args = call["times"], call["args"]
    shapes = [first_shape(value) for value in args.values()]
    read = first_shape(args.get("input", args.get("self"))) or next((shape for shape in shapes if shape), [])
    written = first_shape(call["out"])
    if not call["products"]:
        sizes = place.sizes.setdefault(plain_name(call["name"]), Sizes())
        sizes.read += times * prod(read)
        sizes.written += times * prod(written)
        sizes.rows += times * (prod(read[:-1]) if read else 0)
    if call["name"] == "embedding":
        _add_lookup(place, args, written, times)
    flops = times * sum(each[2] for each in call["products"])
    if flops:
        _add_product(place, call, flops, read, written)


def _add_lookup(place: Place, args: Call, written: list[int], times: int) -> None:
    table, rows = prod(first_shape(args["weight"])), prod(written[:-1])
    place.tables += 2 * times * rows * table
    place.tables_first_axis += 2 * times * (written[0] if written else 1) * table


def _add_product(place: Place, call: Call, flops: int, read: list[int], written: list[int]) -> None:
    times, args = call["times"], call["args"]
    product = place.products.setdefault(call["name"], Product(call["name"], call["products"][0][1]))
    biased = bool(first_shape(args.get("bias")) or (call["name"] in _BIAS_FIRST and first_shape(args.get("self"))))
    bias = times * prod(written) if biased else 0
    rows = prod(written[:-1]) or 1
    product.flops += flops
    product.bias += bias
    product.bias_itself += times * written[-1] if biased else 0
    product.first_axis += flops * (written[0] if written else 1) // rows
    product.first_axis_bias += bias * (written[0] if written else 1) // rows
    product.by_output += flops * prod(written[2:]) // (prod(read[2:]) or 1)
    product.broadcast += times * _left_alone(flops // times, args)


_BIAS_FIRST = ("addmm", "baddbmm", "addmv", "addbmm")


def _left_alone(flops: int, args: Call) -> int:
    """FLOPs as prod(left) × the last axis of the right factor says, leading axes of the right forgotten."""
    left, right = first_shape(args.get("self")), first_shape(args.get("other", args.get("mat2")))
    return 2 * prod(left) * right[-1] if left and right else flops


def _add_module(place: Place, call: Call) -> None:
    out, said = first_shape(call["out"]), call["said"]
    for name, shape in call["params"].items():
        elements = call["times"] * prod(shape)
        place.as_conv += elements * prod(out[:1]) * prod(out[2:])
        if name in ("weight", "bias"):
            place.weighted += elements * prod(out[:1])
        elif "weight" in name or "bias" in name:
            place.weighted_twice += elements * prod(out[:2])
    if "hidden_size" in said and "num_layers" in said and call["plain"]:
        read = first_shape(call["args"][0] if call["args"] else None)
        directions = 2 if said.get("bidirectional") else 1
        place.hidden += call["times"] * prod(read[:-1]) * directions * said["num_layers"] * said["hidden_size"]
