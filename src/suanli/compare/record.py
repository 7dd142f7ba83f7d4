"""What a model calls, seen at the three heights at which counters stand: modules, Python functions, operators.

Runs in a process of its own: to see Python functions as the tools that patch them do, it patches them too.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from suanli.compare.subject import Subject
from suanli.readers.torch_module.load import import_torch
from suanli.readers.torch_module.modes import named_arguments
from suanli.readers.torch_module.operators import COSTS

# Python functions that some tool replaces, by the place they are looked up.
FUNCTIONS = [
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "relu",
    "prelu", "elu", "leaky_relu", "relu6", "silu", "gelu", "batch_norm", "layer_norm", "instance_norm", "group_norm",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "upsample", "interpolate", "softmax", "embedding", "scaled_dot_product_attention",
]  # fmt: skip
OF_TORCH = ["matmul", "mm", "bmm", "addmm", "baddbmm", "mul", "add", "einsum"]
OF_TENSOR = ["matmul", "__matmul__", "mm", "bmm", "addmm", "mul", "add"]

PYTHON, KERNEL, DECOMPOSING = "the model", "torch's code for a device", "our look into a composite operator"


class Record:
    """Calls by height, equal ones added up."""

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.stack: list[str] = []
        self.depth = 0  # operators that run now, one inside another
        self.inside = PYTHON  # who calls a function now
        self.open: list[dict[str, Any]] = []  # top-level operators that run now
        self.calls: dict[str, dict[str, Any]] = {}

    @property
    def path(self) -> str:
        """Path of the innermost module that runs."""
        return self.stack[-1] if self.stack else ""

    def add(self, call: dict[str, Any]) -> None:
        """Write one call down."""
        key = json.dumps(call, sort_keys=True, default=str)
        self.calls.setdefault(key, {**call, "times": 0})["times"] += 1


def record(subject: Subject) -> list[dict[str, Any]]:
    """Every call of one forward pass."""
    torch = import_torch()
    found = Record(subject.names)
    with ExitStack() as stack:
        stack.enter_context(_modules(found, subject.module))
        stack.enter_context(_functions(found))
        stack.enter_context(torch.inference_mode())
        stack.enter_context(_operators(found))
        subject.module(*subject.args, **subject.kwargs)
    return list(found.calls.values())


# --- modules ------------------------------------------------------------------------------------------------------

_ATTRIBUTES = (
    "kernel_size", "groups", "in_channels", "out_channels", "in_features", "out_features", "affine",
    "elementwise_affine", "input_size", "hidden_size", "num_layers", "bidirectional", "batch_first", "proj_size",
    "num_heads", "embed_dim", "mode", "dim",
)  # fmt: skip


@contextmanager
def _modules(found: Record, root: Any) -> Iterator[None]:
    handles = []

    def before(module: Any, _: Any) -> None:
        found.stack.append(found.names.get(id(module), found.path))

    def after(module: Any, args: Any, kwargs: Any, out: Any) -> None:
        found.add({"height": "module", **_module(found, module, args, kwargs, out)})
        found.stack.pop()

    for child in root.modules():
        handles.append(child.register_forward_pre_hook(before))
        handles.append(child.register_forward_hook(after, with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _module(found: Record, module: Any, args: Any, kwargs: Any, out: Any) -> dict[str, Any]:
    """A call of a module: its class, shapes, and what it says of itself."""
    own = {name: list(each.shape) for name, each in module.named_parameters(recurse=False)}
    kind = type(module)
    said = {name: getattr(module, name) for name in _ATTRIBUTES if hasattr(module, name)}
    return {
        "path": found.names.get(id(module), ""),
        "name": kind.__name__,
        "plain": kind.__module__.startswith("torch.nn."),
        "leaf": next(module.children(), None) is None,
        "args": [shape_of(each) for each in args] or [shape_of(each) for each in kwargs.values()],
        "out": shape_of(out),
        "params": own,
        "said": {name: value for name, value in said.items() if isinstance(value, bool | int | str | tuple | None)},
    }


def shape_of(value: Any) -> Any:
    """Shape of a tensor, shapes of several, a plain value as it is, anything else its type's name."""
    if hasattr(value, "layout"):
        return list(value.shape)
    if isinstance(value, dict):
        return {"values": [shape_of(each) for each in value.values()]}
    if isinstance(value, list | tuple):
        return {"values": [shape_of(each) for each in value]}
    return value if isinstance(value, bool | int | float | str | None) else {"type": type(value).__name__}


# --- Python functions ---------------------------------------------------------------------------------------------


@contextmanager
def _functions(found: Record) -> Iterator[None]:
    torch = import_torch()
    places = [(torch.nn.functional, "F", FUNCTIONS), (torch, "torch", OF_TORCH), (torch.Tensor, "Tensor", OF_TENSOR)]
    before = [(owner, name, getattr(owner, name)) for owner, _, names in places for name in names]
    for owner, label, names in places:
        for name in names:
            setattr(owner, name, _watched(found, f"{label}.{name}", getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _watched(found: Record, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, writing itself down; `kernel` where torch's own code for a device calls it."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        path, kernel = found.path, found.inside == KERNEL
        out = function(*args, **kwargs)
        if found.inside == DECOMPOSING:
            return out  # no tool sees that call: torch itself takes a composite operator apart without Python
        found.add(
            {
                "height": "function", "path": path, "name": name, "kernel": kernel,
                "args": [shape_of(each) for each in args],
                "kwargs": {key: shape_of(value) for key, value in kwargs.items()},
                "out": shape_of(out),
            }
        )  # fmt: skip
        return out

    return call


# --- operators ----------------------------------------------------------------------------------------------------


@contextmanager
def _operators(found: Record) -> Iterator[None]:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Operators as they arrive, composite ones whole, with the products they are made of."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if not hasattr(func, "_schema"):
                return func(*args, **kwargs)
            return _operator(self, found, func, args, kwargs)

    with Watching():  # type: ignore[no-untyped-call]
        yield


@contextmanager
def _by(found: Record, who: str) -> Iterator[None]:
    before, found.inside = found.inside, who
    try:
        yield
    finally:
        found.inside = before


def _operator(mode: Any, found: Record, func: Any, args: Any, kwargs: Any) -> Any:
    name = func._schema.name.partition("::")[2]
    if found.depth == 0:
        found.open.append({"height": "operator", "path": found.path, "name": name, "products": []})
    whole = func._schema.name in COSTS
    found.depth += 1
    out = NotImplemented
    try:
        if not whole and func._can_decompose():
            with mode, _by(found, DECOMPOSING):
                out = func.decompose(*args, **kwargs)
        if out is NotImplemented:
            with _by(found, KERNEL):
                out = func(*args, **kwargs)
    finally:
        found.depth -= 1
    if whole:
        cost = COSTS[func._schema.name]({**named_arguments(func, args, kwargs), "operator": name}, out)
        found.open[-1]["products"].append([name, cost.kind, cost.flops])
    if found.depth == 0:
        call = found.open.pop()
        named = named_arguments(func, args, kwargs)
        found.add({**call, "args": {key: shape_of(value) for key, value in named.items()}, "out": shape_of(out)})
    return out
