"""Modules and inputs as given become a copy to trace: nothing of the user's own is moved, trained or written to."""

from __future__ import annotations

import copy
import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suanli.errors import Fault, InputError, MissingExtraError, SuanliError, nearest_names, shown
from suanli.readers import gate
from suanli.readers.bounded import is_interruption, stopped_after, time_limit
from suanli.readers.kinds import TORCH, is_module
from suanli.readers.torch_module.masks import MAX_VALUES, VALUES

PREFIX = TORCH
_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SPEC = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>\d+(?:x\d+)*|scalar)(?::(?P<dtype>\w+))?")
DTYPES = {
    "float32": "float32", "fp32": "float32", "float": "float32", "float64": "float64", "fp64": "float64",
    "bfloat16": "bfloat16", "bf16": "bfloat16", "float16": "float16", "fp16": "float16", "half": "float16",
    "int64": "int64", "long": "int64", "int32": "int32", "int8": "int8", "uint8": "uint8", "bool": "bool",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
MAX_RANK, MAX_SIDE = 10, 10**9


def import_torch() -> Any:
    """Torch, or the error that says how to get it."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message="torch is needed to trace a module",
                hint="Install it with: pip install 'suanli[torch]'",
            )
        ) from problem
    return torch


# --- torch:package.module:factory ---------------------------------------------------------------------------------


def load_factory(text: str, where: str = "MODEL") -> tuple[Any, Any]:
    """The module a factory makes, and its inputs where it gives them. Raises InputError.

    The named package is the user's own code and is imported; a config or a checkpoint cannot name one.
    """
    gate.check_run(text, where)
    import_torch()
    name = text.removeprefix(PREFIX)
    if not _FACTORY.fullmatch(name):
        raise _bad_factory(text, where, "not the name of a factory", hint="Write torch:package.module:factory.")
    package, _, attributes = name.partition(":")
    with _here_importable():
        made = _made(_attribute(_imported(package, text, where), attributes, text, where), text, where)
    module, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not is_module(module):
        raise _bad_factory(text, where, "the factory gives no torch module", got=type(module).__name__)
    return module, inputs


@contextmanager
def _here_importable() -> Iterator[None]:
    """The working folder can be imported from, as with `python -m`; afterwards the path is as it was."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def _imported(package: str, text: str, where: str) -> Any:
    try:
        with stopped_after(time_limit(), lambda: _too_slow(text, where)):
            return importlib.import_module(package)
    except SuanliError:
        raise
    except BaseException as problem:
        if is_interruption(problem):
            raise
        raise _bad_factory(
            text, where, f"{package} cannot be imported: {type(problem).__name__}: {shorten(problem)}",
            hint="The package must be importable from the working folder or installed.",
        ) from problem  # fmt: skip


def _attribute(package: Any, attributes: str, text: str, where: str) -> Any:
    found = package
    for part in attributes.split("."):
        if not hasattr(found, part):
            known = [name for name in vars(package) if not name.startswith("_")]
            raise _bad_factory(
                text, where, f"{package.__name__} has no {attributes}", nearest=nearest_names(part, known)
            )
        found = getattr(found, part)
    return found


def _made(factory: Any, text: str, where: str) -> Any:
    """What the factory returns, called under the meta device so that weights take no memory; a module is itself."""
    if is_module(factory):
        return factory
    if not callable(factory):
        raise _bad_factory(text, where, "the name is no factory", got=type(factory).__name__, expected="a callable")
    torch = import_torch()
    try:
        with stopped_after(time_limit(), lambda: _too_slow(text, where)), torch.device("meta"):
            return factory()
    except SuanliError:
        raise
    except BaseException as problem:
        if is_interruption(problem):
            raise
        if not looks_meta(problem):
            raise _failed_factory(text, where, problem) from problem
    try:
        with stopped_after(time_limit(), lambda: _too_slow(text, where)):
            return factory()
    except SuanliError:
        raise
    except BaseException as problem:  # sys.exit among them
        if is_interruption(problem):
            raise
        raise _failed_factory(text, where, problem) from problem


def _too_slow(text: str, where: str) -> InputError:
    return _bad_factory(
        text, where, f"the factory still runs after {time_limit():g} s",
        hint="Give it more time with --time-limit; check for a loop that does not end.",
    )  # fmt: skip


def looks_meta(problem: BaseException) -> bool:
    """Whether an error says that values were asked for where there are only shapes."""
    words = f"{type(problem).__name__} {problem}".lower()
    return any(sign in words for sign in _META_SIGNS)


_META_SIGNS = (
    "meta tensor", "meta device", "datadependent", "data-dependent", "on meta", "'meta'", "same device",
    "data-independent", "_local_scalar_dense", "dynamicoutputshape", "backend: meta", "device meta", "meta' backend",
    "sparse meta", "find the fake impl", "torchscript interpreter", "type for autocast",
)  # fmt: skip


def _failed_factory(text: str, where: str, problem: BaseException) -> InputError:
    return _bad_factory(text, where, f"the factory fails: {type(problem).__name__}: {shorten(problem)}")


def _bad_factory(text: str, where: str, message: str, **parts: Any) -> InputError:
    got = parts.pop("got", shown(text))
    return InputError(Fault(code="bad_factory", message=message, where=where, got=got, **parts))


def shorten(problem: BaseException, limit: int = 300) -> str:
    """The first line of an error's text, cut."""
    lines = str(problem).strip().splitlines() or [""]
    return lines[0] if len(lines[0]) <= limit else f"{lines[0][: limit - 1]}…"


# --- inputs -------------------------------------------------------------------------------------------------------


def read_inputs(inputs: Any, module: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword inputs, from tensors or from a text like `1x3x224x224`. Raises InputError."""
    if isinstance(inputs, str):
        return _from_spec(inputs, module)
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        if len(inputs) == 2 and isinstance(inputs[0], tuple | list) and isinstance(inputs[1], Mapping):
            return tuple(inputs[0]), dict(inputs[1])
        if inputs and all(isinstance(size, int) and not isinstance(size, bool) for size in inputs):
            return _from_spec("x".join(map(str, inputs)), module)
        return tuple(inputs), {}
    if inputs is None:
        raise InputError(
            Fault(
                code="missing_option", message="a module is traced with an input", where="--input",
                expected="a shape like 1x3x224x224", hint="A dtype may follow: 1x128:int64.",
            )
        )  # fmt: skip
    return (inputs,), {}


def _from_spec(text: str, module: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`1x3x224x224`, `1x128:int64`, `input_ids=1x128,attention_mask=1x128:bool`."""
    torch = import_torch()
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for part in text.split(","):
        found = _SPEC.fullmatch(part.strip())
        sizes = [] if not found or found["shape"] == "scalar" else [int(size) for size in found["shape"].split("x")]
        if not found or len(sizes) > MAX_RANK or any(size > MAX_SIDE for size in sizes):
            raise _bad_input(part, "a shape like 1x3x224x224, with :int64 or name= where needed")
        if found["dtype"] is not None and found["dtype"] not in DTYPES:
            raise _bad_input(found["dtype"], "a dtype: " + ", ".join(DTYPES))
        dtype = getattr(torch, DTYPES[found["dtype"]]) if found["dtype"] else _first_dtype(module)
        tensor = torch.zeros(sizes, dtype=dtype, device="meta")
        if found["name"]:
            kwargs[found["name"]] = tensor
        else:
            args.append(tensor)
    return tuple(args), kwargs


def _bad_input(got: str, expected: str) -> InputError:
    return InputError(
        Fault(code="bad_input", message="the input cannot be read", where="--input", got=shown(got), expected=expected)
    )


def _first_dtype(module: Any) -> Any:
    """Whole numbers where the module begins with a table, else the dtype of its weights."""
    torch = import_torch()
    for child in module.modules():
        if isinstance(child, torch.nn.Embedding | torch.nn.EmbeddingBag):
            return torch.int64
        own = list(child.parameters(recurse=False))
        if own and not _holds_token(child):
            return own[0].dtype if own[0].dtype.is_floating_point or own[0].dtype.is_complex else torch.float32
    return torch.float32


def _holds_token(module: Any) -> bool:
    """Whether a module's own parameters stand beside layers, as class tokens do."""
    return next(module.children(), None) is not None


# --- copies -------------------------------------------------------------------------------------------------------


def copied(module: Any, device: str | None) -> Any:
    """A copy on the device; weights are not copied for `meta`. Raises InputError where it cannot be copied."""
    memo: dict[int, Any] = {}
    if device is not None:
        for child in module.modules():
            for tensor in _own_tensors(child):
                memo[id(tensor)] = _moved_leaf(tensor, device)
    for child in module.modules():  # weights that are worked out hold a graph, and a graph cannot be copied
        for name, value in vars(child).items():
            if _is_tensor(value) and id(value) not in memo and not value.is_leaf:
                memo[id(vars(child)[name])] = value.detach()
    try:
        return _uncompiled(copy.deepcopy(module, memo))
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            Fault(
                code="cannot_copy",
                message=f"the module cannot be copied: {type(problem).__name__}: {shorten(problem)}",
                where=type(module).__name__,
                hint="A trace runs on a copy, so that nothing of yours changes; give a factory: torch:pkg.mod:f.",
            )
        ) from problem


def _uncompiled(module: Any) -> Any:
    """A copy with every compiled module replaced by the one it was compiled from: a trace runs what was written."""
    for child in module.modules():
        if getattr(child, "_compiled_call_impl", None) is not None:
            child._compiled_call_impl = None
        for name, inner in list(child._modules.items()):
            if inner is not None and _is_compiled(inner):
                child._modules[name] = inner._orig_mod
    return module._orig_mod if _is_compiled(module) else module


def _is_compiled(module: Any) -> bool:
    return type(module).__name__ == "OptimizedModule" and "_orig_mod" in module._modules


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "layout") and hasattr(value, "is_leaf")


def _own_tensors(module: Any) -> Iterator[Any]:
    """Parameters, buffers and plain tensors of one module."""
    yield from (value for value in module._parameters.values() if value is not None)
    yield from (value for value in module._buffers.values() if value is not None)
    for value in vars(module).values():
        if _is_tensor(value):
            yield value
        elif isinstance(value, list | tuple | dict):
            items = value.values() if isinstance(value, dict) else value
            yield from (item for item in items if _is_tensor(item))


def _moved_leaf(tensor: Any, device: str) -> Any:
    torch = import_torch()
    if device != "meta" or "strided" not in str(tensor.layout):
        moved = tensor.detach().clone() if tensor.device.type == device else tensor.detach().to(device)
    else:
        moved = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
    return moved.requires_grad_(tensor.requires_grad) if tensor.requires_grad else moved


def moved_inputs(value: Any, device: str) -> Any:
    """Inputs on the device: containers rebuilt, `requires_grad` kept, values only where the device has them."""
    torch = import_torch()
    if isinstance(value, torch.Tensor):
        if value.device.type == device:
            moved = value.detach()
        elif value.device.type == "meta":
            moved = torch.zeros(value.shape, dtype=value.dtype, device=device)
        else:
            moved = value.detach().to(device)
            _remember(moved, value)
        return moved.requires_grad_(True) if value.requires_grad else moved
    if isinstance(value, dict):
        return {key: moved_inputs(item, device) for key, item in value.items()}
    if hasattr(value, "_fields"):
        return _moved_named(value, device)
    if isinstance(value, list | tuple):
        return type(value)(moved_inputs(item, device) for item in value)
    return value


def _remember(moved: Any, value: Any) -> None:
    """A list of whole numbers, as offsets are, is kept beside its meta tensor."""
    whole = not value.dtype.is_floating_point and not value.dtype.is_complex
    short = value.dim() == 1 and value.numel() <= MAX_VALUES
    if moved.device.type == "meta" and whole and short:
        setattr(moved, VALUES, value.tolist())


def _moved_named(value: Any, device: str) -> Any:
    """A named tuple on the device; the lengths of packed sequences stay where they are, being values, not shapes."""
    if type(value).__name__ == "PackedSequence":
        data = moved_inputs(value.data, device)
        return type(value)(data, value.batch_sizes, value.sorted_indices, value.unsorted_indices)
    return type(value)(*(moved_inputs(item, device) for item in value))
