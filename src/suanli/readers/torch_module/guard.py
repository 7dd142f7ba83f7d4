"""What a module changes in torch itself while it runs is put back: modes, defaults, hooks, patched functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from suanli.readers.torch_module.load import import_torch

Getter = Callable[[], Any]
Setter = Callable[[Any], Any]
MAX_HOOKS = 1_000


@dataclass
class Left:
    """What was found changed, in words."""

    changed: list[str] = field(default_factory=list)

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for all of it, or none."""
        return (
            ("the module changed torch itself, put back since: " + ", ".join(dict.fromkeys(self.changed)),)
            if self.changed
            else ()
        )


@contextmanager
def put_back() -> Iterator[Left]:
    """Leave torch as it was, whatever runs inside; random numbers go on as if nothing had been drawn."""
    torch = import_torch()
    left = Left()
    before = [(what, get(), put) for what, get, put in _switches()]
    gets = [get for _, get, _ in _switches()]
    functions = [(space, dict(vars(space))) for space in _namespaces()]
    random = torch.get_rng_state()
    try:
        yield left
    finally:
        for (what, old, put), get in zip(before, gets, strict=True):
            if get() != old:
                left.changed.append(what)
                put(old)
        left.changed.extend(name for space, old in functions for name in _unpatch(space, old))
        torch.set_rng_state(random)


@cache
def _switches() -> tuple[tuple[str, Getter, Setter], ...]:
    """What of torch is one value for a thread or the process: its name, how to read it, how to set it."""
    torch = import_torch()
    from torch.nn.modules import module  # noqa: PLC0415
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # noqa: PLC0415

    hooks = [value for name, value in vars(module).items() if name.startswith("_global_") and isinstance(value, dict)]
    plain: list[tuple[str, Getter, Setter]] = [
        ("a dispatch mode", lambda: tuple(map(id, _get_current_dispatch_mode_stack())), _end_dispatch_modes),
        ("the default device", _default_device, torch.set_default_device),
        ("a function mode", _function_modes, _end_function_modes),
        ("hooks of saved tensors", _saved_hooks, _end_saved_hooks),
        ("grad mode", torch.is_grad_enabled, torch._C._set_grad_enabled),
        ("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
        ("anomaly detection", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        ("the number of threads", torch.get_num_threads, torch.set_num_threads),
        ("deterministic algorithms", torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    ]
    plain.extend(map(_autocast, ("cpu", "cuda")))
    plain.extend(("hooks of all modules", _copy_of(each), _refill(each)) for each in hooks)
    return tuple(plain)


def _autocast(device: str) -> tuple[str, Getter, Setter]:
    torch = import_torch()
    return (
        f"autocast on {device}",
        lambda: torch.is_autocast_enabled(device),
        lambda on: torch.set_autocast_enabled(device, on),
    )


def _copy_of(hooks: dict[Any, Any]) -> Getter:
    return lambda: dict(hooks)


def _refill(hooks: dict[Any, Any]) -> Setter:
    def put(old: dict[Any, Any]) -> None:
        hooks.clear()
        hooks.update(old)

    return put


def _default_device() -> Any:
    """The device asked for with `torch.set_default_device`, None for none."""
    torch = import_torch()
    found = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if found is None else found.device


def _end_dispatch_modes(before: tuple[int, ...]) -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode  # noqa: PLC0415

    while len(_get_current_dispatch_mode_stack()) > len(before):
        _pop_mode()


def _function_modes() -> int:
    torch = import_torch()
    return int(torch._C._len_torch_function_stack())


def _end_function_modes(before: int) -> None:
    torch = import_torch()
    while _function_modes() > before:
        torch._C._pop_torch_function_stack()


def _saved_hooks() -> Any:
    torch = import_torch()
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def _end_saved_hooks(before: Any) -> None:
    torch = import_torch()
    for _ in range(MAX_HOOKS):
        if _saved_hooks() in (before, None):
            return
        torch._C._autograd._pop_saved_tensors_default_hooks()


@cache
def _namespaces() -> tuple[Any, ...]:
    """Where functions of torch stand that code is known to replace: modules, the tensor, and the layers."""
    torch = import_torch()
    layers = [value for value in vars(torch.nn).values() if isinstance(value, type)]
    return (torch, torch.nn.functional, torch.Tensor, torch.autograd, *layers)


def _unpatch(space: Any, before: dict[str, Any]) -> Iterator[str]:
    """Functions that were replaced are as before; what was added is left, as an import adds things too."""
    for name, old in before.items():
        new = vars(space).get(name)
        replaced = new is not old and (callable(old) or isinstance(old, staticmethod | classmethod))
        if replaced and not _by_torch(new):
            setattr(space, name, old)
            yield f"{space.__name__}.{name}"
    for name in [name for name in vars(space) if name not in before and _hides(space, name)]:
        delattr(space, name)
        yield f"{space.__name__}.{name}"


def _hides(space: Any, name: str) -> bool:
    """Whether a new attribute of a class stands before a function that the class inherits."""
    inherited = any(callable(vars(base).get(name)) for base in getattr(space, "__mro__", (space,))[1:])
    return inherited and not name.startswith("__") and not _by_torch(vars(space)[name])


def _by_torch(function: Any) -> bool:
    """Whether a function's code is torch's own, which replaces functions when its compiler is first used."""
    torch = import_torch()
    code = getattr(function, "__code__", None)
    return code is not None and str(code.co_filename).startswith(str(torch.__path__[0]))
