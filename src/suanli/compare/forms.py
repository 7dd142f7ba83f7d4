"""The terms of the rules: what a call of a record amounts to, in elements or multiply-adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from suanli.compare.places import first_shape

Call = Mapping[str, Any]
Shape = list[int]


def argument(call: Call, name: str, index: int) -> Any:
    """An argument by name, else by its place: operators have names alone, functions and modules both."""
    args = call["args"]
    if isinstance(args, Mapping):
        return args.get(name)
    if name in call.get("kwargs", {}):
        return call["kwargs"][name]
    return args[index] if index < len(args) else None


def _read(call: Call) -> Shape:
    args = call["args"]
    if not isinstance(args, Mapping):
        return first_shape(argument(call, "input", 0))
    for name in ("input", "self", "query"):
        if name in args:
            return first_shape(args[name])
    return next((shape for value in args.values() if (shape := first_shape(value))), [])


def _written(call: Call) -> Shape:
    return first_shape(call["out"])


def _weight(call: Call) -> Shape:
    """Shape of the weight: an argument, or the module's own."""
    if "params" in call:
        return list(call["params"].get("weight", []))
    index = 3 if call["name"].endswith(("batch_norm", "instance_norm")) else 2 if "norm" in call["name"] else 1
    return first_shape(argument(call, "weight", index))


def _bias(call: Call) -> bool:
    if "params" in call:
        return "bias" in call["params"]
    if call["name"] in ("addmm", "baddbmm"):
        return True
    return bool(first_shape(argument(call, "bias", 2)))


def _second(call: Call) -> tuple[Shape, Shape]:
    """Both factors of a product that is added to something."""
    left = argument(call, "mat1", 1) or argument(call, "batch1", 1)
    right = argument(call, "mat2", 2) or argument(call, "batch2", 2)
    return first_shape(left), first_shape(right)


def _right(call: Call) -> Shape:
    """The right factor of a product of two."""
    return first_shape(argument(call, "other", 1) or argument(call, "mat2", 1))


# --- products, in multiply-adds -----------------------------------------------------------------------------------


def _linear(call: Call) -> int:
    return int(prod(_read(call)) * _weight(call)[0])


def _matmul(call: Call) -> int:
    """All of the left factor by the last axis of the right one, whatever else the right one has."""
    return prod(_read(call)) * _right(call)[-1]


def _second_product(call: Call) -> int:
    left, right = _second(call)
    return prod(left) * right[-1]


def _conv(call: Call) -> int:
    return prod(_written(call)) * prod(_weight(call)[1:])


def _transposed(call: Call) -> int:
    return prod(_read(call)) * prod(_weight(call)[1:])


def _by_output(call: Call) -> int:
    """Kernels used once a result, transposed ones too; input channels as the group sees them."""
    weight, read = _weight(call), _read(call)
    groups = call["said"].get("groups", 1) if "said" in call else argument(call, "groups", 6) or 1
    return int(prod(_written(call)) * (read[1] // groups) * prod(weight[2:]))


def _attention(call: Call) -> int:
    query, key, value = (first_shape(argument(call, name, i)) for i, name in enumerate(("query", "key", "value")))
    return prod(query) * key[-2] + prod(query[:-1]) * key[-2] * value[-1]


def _product(call: Call) -> int:
    return int(sum(each[2] for each in call["products"]) // 2)


def _einsum(call: Call) -> int:
    """FLOPs as numpy's path report prints them: four digits."""
    return int(float(f"{2 * _indices(call):.3e}"))


def _einsum_macs(call: Call) -> int:
    return _einsum(call) // 2


def _indices(call: Call) -> int:
    """Product of the lengths of all letters of an einsum."""
    args = call["args"]
    if isinstance(args, Mapping):
        equation, tensors = args["equation"], args["tensors"]["values"]
    else:
        equation, tensors = args[0], args[1:]
        tensors = tensors[0]["values"] if len(tensors) == 1 and isinstance(tensors[0], Mapping) else tensors
    lengths: dict[str, int] = {}
    for letters, shape in zip(equation.replace(" ", "").split("->")[0].split(","), tensors, strict=False):
        lengths |= dict(zip(letters, first_shape(shape), strict=False))
    return prod(lengths.values())


# --- elements -----------------------------------------------------------------------------------------------------


def _affine(call: Call) -> int:
    return prod(_read(call)) if _weight(call) else 0


def _bias_added(call: Call) -> int:
    if call.get("products") and call["products"][0][1] == "recurrent":
        return _recurrent_biases(call)
    return prod(_written(call)) if _bias(call) else 0


def _shrunk_bias(call: Call) -> int:
    """A transposed convolution's bias on the positions that a plain one of the same options would leave."""
    if not _bias(call):
        return 0
    read, weight = _read(call), _weight(call)
    options = [_sides(argument(call, name, i), len(read) - 2, default)
               for name, i, default in (("stride", 3, 1), ("padding", 4, 0), ("dilation", 7, 1))]  # fmt: skip
    sizes = zip(read[2:], weight[2:], *options, strict=True)
    left = prod((size + 2 * pad - (dilation * (k - 1) + 1)) // stride + 1 for size, k, stride, pad, dilation in sizes)
    return int(read[0] * weight[1] * left)


def _sides(value: Any, count: int, default: int) -> list[int]:
    found = first_shape(value) or (value["values"] if isinstance(value, Mapping) else value)
    if found is None:
        return [default] * count
    return list(found) if isinstance(found, list) else [int(found)] * count


def _leading(call: Call) -> int:
    """Elements where two shapes are laid on one another from the first axis on, not from the last."""
    left, right = argument(call, "input", 0), argument(call, "other", 1)
    shapes = [value for value in (left, right) if isinstance(value, list)]
    if not shapes:
        return 1
    rank = max(map(len, shapes))
    padded = [shape + [1] * (rank - len(shape)) for shape in shapes]
    return prod(max(sizes) for sizes in zip(*padded, strict=True))


def _softmax(call: Call) -> int:
    read, dim = _read(call), call["said"].get("dim")
    rows = prod(read) // (read[dim] if isinstance(dim, int) and read else 1)
    return int(3 * prod(read) - rows)


def _window(call: Call) -> int:
    """Elements an adaptive pool adds up: those of its input, where the sizes divide."""
    read, written = _read(call), _written(call)
    return prod(written) * prod(read[2:]) // prod(written[2:])


def _parameters(call: Call) -> int:
    """Parameters of a leaf by the size of its result, as torchinfo takes them."""
    out, total = _written(call), 0
    for name, shape in call["params"].items():
        if name in ("weight", "bias"):
            axes = prod(out[:1]) * prod(out[2:]) if "Conv" in call["name"] else prod(out[:1])
        else:
            axes = prod(out[:2]) if "weight" in name or "bias" in name else 0
        total += prod(shape) * axes
    return total


# --- recurrent stacks and attention modules -----------------------------------------------------------------------

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_CELL = {"LSTM": 10, "GRU": 7, "RNN": 1}


def _layers(call: Call) -> list[tuple[int, int, bool]]:
    """Elements of the input and state matrices of each layer's first direction, and whether it is biased."""
    params = call["params"]
    return [
        (prod(params[f"weight_ih_l{i}"]), prod(params[f"weight_hh_l{i}"]), f"bias_ih_l{i}" in params)
        for i in range(call["said"]["num_layers"])
    ]


def _steps(call: Call) -> int:
    return prod(_read(call)[:2]) * (2 if call["said"].get("bidirectional") else 1)


def _profiler_recurrent(call: Call) -> int:
    """FLOPs: products less one addition an output, the cell's own arithmetic, biases."""
    hidden = call["said"]["hidden_size"]
    gates = _GATES[call["name"]] * hidden
    per = sum(2 * (w_in + w_state) - 2 * gates + _CELL[call["name"]] * hidden + (2 * gates if biased else 0)
              for w_in, w_state, biased in _layers(call))  # fmt: skip
    return int(per * _steps(call))


def _macs_recurrent(call: Call) -> int:
    hidden = call["said"]["hidden_size"]
    gates = _GATES[call["name"]] * hidden
    per = sum(w_in + w_state + _CELL[call["name"]] * hidden + (2 * gates if biased else 0)
              for w_in, w_state, biased in _layers(call))  # fmt: skip
    return int(per * _steps(call))


def _thop_recurrent(call: Call) -> int:
    """A state as wide as the hidden units, one more addition a gate, biases, the cell's own arithmetic."""
    said, name = call["said"], call["name"]
    hidden, directions = said["hidden_size"], 2 if said.get("bidirectional") else 1
    biased = _layers(call)[0][2]
    widths = [said["input_size"]] + [hidden * directions] * (said["num_layers"] - 1)
    gate = sum(hidden * (width + hidden) + hidden + (2 * hidden if biased else 0) for width in widths)
    cell = {"LSTM": 4, "GRU": 4, "RNN": 0}[name] * hidden * said["num_layers"]
    return int((_GATES[name] * gate + cell) * prod(_read(call)[:2]) * directions)


def _recurrent_biases(call: Call) -> int:
    """Both biases of every layer and direction, at every position."""
    shapes = [first_shape(each) for each in call["args"]["params"]["values"]]
    vectors = sum(shape[0] for shape in shapes if len(shape) == 1)
    return vectors * prod(_read(call)[:2])


def _multihead(call: Call) -> int:
    """torch.nn.MultiheadAttention by its three inputs: scaling, projections, scores, softmax, context, output."""
    query, key, value = (first_shape(each) for each in call["args"][:3])
    axis = 1 if call["said"].get("batch_first") else 0
    batch, hidden = query[1 - axis], query[2]
    tokens, keys = query[axis], key[axis]
    flops = tokens * hidden + tokens * hidden**2 + keys * key[2] ** 2 + value[axis] * value[2] ** 2
    if "in_proj_bias" in call["params"]:
        flops += (tokens + keys + value[axis]) * hidden
    heads = call["said"]["num_heads"]
    flops += heads * tokens * keys * (hidden // heads + 1 + value[2] // heads)
    return int(batch * (flops + tokens * value[2] * (value[2] + 1)))


FORMS: dict[str, Callable[[Call], int]] = {
    "read": lambda call: prod(_read(call)),
    "written": lambda call: prod(_written(call)),
    "linear": _linear,
    "matmul": _matmul,
    "second": _second_product,
    "conv": _conv,
    "transposed": _transposed,
    "by_output": _by_output,
    "attention": _attention,
    "product": _product,
    "einsum": _einsum,
    "einsum_macs": _einsum_macs,
    "affine": _affine,
    "bias": _bias_added,
    "shrunk_bias": _shrunk_bias,
    "leading": _leading,
    "softmax": _softmax,
    "window": _window,
    "parameters": _parameters,
    "profiler_recurrent": _profiler_recurrent,
    "macs_recurrent": _macs_recurrent,
    "thop_recurrent": _thop_recurrent,
    "multihead": _multihead,
}


def amount(rule: str, call: Call) -> int:
    """A rule's terms added up: `2 conv + bias`."""
    total = 0
    for term in filter(None, (part.strip() for part in rule.split("+"))):
        times, _, form = term.rpartition(" ")
        total += int(times or 1) * FORMS[form](call)
    return total
