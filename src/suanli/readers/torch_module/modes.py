"""The two modes a trace runs under: above autograd for what is counted in one piece, below it for all the rest.

Both are torch's own public means; nothing is patched, and leaving the context leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from math import prod
from typing import Any

from suanli.errors import Fault, InputError
from suanli.readers.torch_module import fused, higher_order
from suanli.readers.torch_module.recorder import Recorder, too_slow
from suanli.units import MEGA


@cache
def _dispatch_mode() -> Any:
    import torch  # noqa: PLC0415
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Every operator below autograd."""

        supports_higher_order_operators = True

        def __init__(self, recorder: Recorder) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.recorder = recorder

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if self.recorder.suspended:
                return func(*args, **kwargs)
            if any(_is_subclass(each) for each in types):
                return NotImplemented  # a subclass says what it is made of, and its parts come here
            if not hasattr(func, "_schema"):
                return higher_order.run(self.recorder, func, args, kwargs)
            if _decomposes(func):
                with self:
                    out = func.decompose(*args, **kwargs)
                if out is not NotImplemented:
                    return out
            return _call(self.recorder, func, args, kwargs)

    def _is_subclass(kind: Any) -> bool:
        return kind is not torch.Tensor and kind is not torch.nn.Parameter and not _is_fake(kind)

    return Counting


def _is_fake(kind: Any) -> bool:
    return bool(kind.__name__ in ("FakeTensor", "Parameter", "Buffer"))


def _decomposes(func: Any) -> bool:
    """Whether an operator that arrives whole (in inference mode) is made of others and has no formula of its own."""
    from suanli.readers.torch_module.operators import COSTS  # noqa: PLC0415

    return func._schema.name not in COSTS and func._can_decompose() and not func._schema.name.startswith("prim")


def _call(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(_tensors(args)) + list(_tensors(tuple(kwargs.values())))
    if recorder.limits.tensor_bytes is not None:
        refuse_huge(recorder, func, args, tensors)
    if recorder.answers is not None and func._schema.name == "aten::_local_scalar_dense":
        return recorder.answers.answer(func, args)
    out = func(*args, **kwargs)
    if recorder.answers is not None:
        recorder.answers.watch(func, args, out)
    recorder.record(func, lambda: named_arguments(func, args, kwargs), tensors, out)
    return out


def _tensors(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _tensors(value)
        elif hasattr(value, "layout"):
            yield value


def named_arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments of a call by the names of its schema, defaults filled in."""
    schema = func._schema.arguments
    found = {each.name: each.default_value for each in schema if each.has_default_value()}
    return found | {each.name: value for each, value in zip(schema, args, strict=False)} | dict(kwargs)


def refuse_huge(recorder: Recorder, func: Any, args: Any, tensors: list[Any]) -> None:
    """Raise before a tensor is made that passes the bound: of a given size, broadcast, or expanded and copied."""
    name = func._schema.name.partition("::")[2]
    if name in ("expand", "view", "as_strided", "broadcast_to", "_unsafe_view", "permute", "transpose", "detach"):
        return
    widths = [tensor.element_size() for tensor in tensors] or [4]
    elements = max((tensor.numel() for tensor in tensors), default=0)
    sizes = [value for value in args if isinstance(value, list | tuple) and value and isinstance(value[0], int)]
    if name.startswith(("empty", "zeros", "ones", "full", "rand", "new_", "randn")) and sizes:
        elements = max(elements, prod(sizes[0]))
    if name == "repeat" and sizes:
        elements = max(elements, tensors[0].numel() * prod(sizes[0]))
    if _is_pointwise(func) and len(tensors) > 1:
        elements = max(elements, _broadcast(tensors))
    if name in ("bmm", "mm") and len(tensors) > 1:
        elements = max(elements, prod(tensors[0].shape[:-1]) * tensors[1].shape[-1])
    bound = recorder.limits.tensor_bytes or 0
    if elements * max(widths) > bound:
        raise too_large(elements * max(widths), bound, recorder.path)


def _is_pointwise(func: Any) -> bool:
    return any("pointwise" in str(tag) for tag in func.tags)


def _broadcast(tensors: list[Any]) -> int:
    rank = max(tensor.dim() for tensor in tensors)
    shapes = [(1,) * (rank - tensor.dim()) + tuple(tensor.shape) for tensor in tensors]
    return prod(max(sizes) for sizes in zip(*shapes, strict=True)) if rank else 1


def too_large(size: int, bound: int, path: str) -> InputError:
    """The error of memory that would pass the bound."""
    return InputError(
        Fault(
            code="too_large",
            message="the module asks for too much memory",
            where=f"module {path or '(root)'}",
            got=f"{size // MEGA:,} MB",
            expected=f"at most {bound // MEGA:,} MB outside the meta device",
            hint="Trace it on the meta device (device='meta'), where memory costs nothing.",
        )
    )


@cache
def _function_mode() -> Any:
    import torch  # noqa: PLC0415
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415

    attention = torch.nn.functional.scaled_dot_product_attention
    stacks = {getattr(torch._VF, name) for name in fused.RECURRENT} | {getattr(torch, n) for n in fused.RECURRENT}

    composed = (
        torch.nn.functional.multi_head_attention_forward, torch.autograd.backward, torch.autograd.grad,
        torch.Tensor.backward,
    )  # fmt: skip
    bodies = {func: _unguarded(func) for func in composed}

    class Fusing(TorchFunctionMode):
        """Attention and recurrent stacks, above autograd."""

        def __init__(self, recorder: Recorder, flash: bool) -> None:
            super().__init__()
            self.recorder, self.flash = recorder, flash

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in bodies and not self.recorder.suspended:
                with self:
                    return bodies[func](*args, **kwargs)
            if self.recorder.suspended or not (func is attention or func in stacks) or not _plain(args, kwargs):
                return func(*args, **kwargs)
            if func is attention:
                return fused.attention(self.recorder, func, args, kwargs, self.flash)
            return fused.recurrent_stack(self.recorder, func, args, kwargs)

    def _plain(args: Any, kwargs: Any) -> bool:
        """Whether all tensors are torch's own, and no function transform (vmap, grad) is at work."""
        kinds = {type(each) for each in _tensors((*args, *kwargs.values()))}
        return kinds <= {torch.Tensor, torch.nn.Parameter} and torch._C._functorch.peek_interpreter_stack() is None

    return Fusing


def _unguarded(func: Any) -> Any:
    """A twin of a Python function of torch that runs its body at once: torch's own hands itself to a mode whole,
    and what the body calls (attention; in a backward pass, forwards run again) would not be seen.
    """
    checks = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    body = {**func.__globals__, **dict.fromkeys(checks, lambda *_: False)}
    twin = types.FunctionType(func.__code__, body, func.__name__, func.__defaults__, func.__closure__)
    twin.__kwdefaults__ = func.__kwdefaults__
    return twin


@contextmanager
def counting(recorder: Recorder, flash: bool = False) -> Iterator[None]:
    """Everything torch does on this thread inside is written down. Reentrant; hooks and modes end with the context."""
    from torch.nn.modules.module import (  # noqa: PLC0415
        register_module_forward_hook,
        register_module_forward_pre_hook,
    )

    here = threading.get_ident()
    open_: list[Any] = []

    def enter(module: Any, inputs: Any) -> None:
        if threading.get_ident() == here:
            recorder.enter(module, inputs)
            open_.append(module)

    def leave(module: Any, _inputs: Any, _output: Any) -> None:
        if threading.get_ident() == here and open_ and open_[-1] is module:
            open_.pop()
            recorder.leave(sys.exc_info()[0] is not None)

    with ExitStack() as stack:
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        stack.enter_context(_dispatch_mode()(recorder))
        stack.enter_context(_function_mode()(recorder, flash))
        stack.enter_context(_flex_whole())
        stack.enter_context(_stopped_after(recorder))
        yield


@contextmanager
def _flex_whole() -> Iterator[None]:
    """Flex attention as one operator: torch's own switch for running it uncompiled, put back afterwards."""
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    before = getattr(flex, _FLEX_SWITCH, None)
    if flex is None or before is None:
        yield
        return
    setattr(flex, _FLEX_SWITCH, True)
    try:
        yield
    finally:
        setattr(flex, _FLEX_SWITCH, before)


_FLEX_SWITCH = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"


# --- a bound on time ----------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """Thrown into a thread that passes its bound; no `except Exception` of the module can swallow it."""


@contextmanager
def _stopped_after(recorder: Recorder) -> Iterator[None]:
    """Stop this thread's Python code when the time is over, even in a loop that calls nothing of torch."""
    thread, lock, running = threading.get_ident(), threading.Lock(), [True]

    def stop() -> None:
        with lock:
            if running[0]:
                _throw(thread, _Stopped)

    timer = threading.Timer(recorder.limits.seconds + GRACE, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except _Stopped:
        raise too_slow(recorder.limits.seconds, recorder.path) from None
    finally:
        with lock:
            running[0] = False
        timer.cancel()


GRACE = 0.25  # seconds in which the checks at every operator come first


def _throw(thread: int, error: type[BaseException]) -> None:
    set_error: Callable[..., int] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread), ctypes.py_object(error))
