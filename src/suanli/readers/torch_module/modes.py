"""The two modes a trace runs under: above autograd for what is counted in one piece, below it for all the rest.

Both are torch's own public means; nothing is patched, and leaving the context leaves nothing behind.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from suanli.readers.bounded import stopped_after
from suanli.readers.torch_module import fused, higher_order
from suanli.readers.torch_module.memory import refuse_huge
from suanli.readers.torch_module.recorder import Recorder, too_slow


@cache
def warm_up() -> None:
    """What torch loads with its first operator on the meta device, a second's work, is loaded before the clock runs."""
    import torch  # noqa: PLC0415

    torch.addmm(*(torch.empty(1, 1, device="meta") for _ in range(3)))


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
            if _decomposes(func) and not any(each.is_nested for each in _tensors(args)):
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
    from suanli.readers.torch_module.operators import cost_of  # noqa: PLC0415

    return cost_of(func._schema.name) is None and func._can_decompose() and not func._schema.name.startswith("prim")


def _call(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(_tensors(args)) + list(_tensors(tuple(kwargs.values())))
    held = recorder.held
    if held is not None:
        refuse_huge(recorder, func, args, tensors)
    if recorder.answers is not None and func._schema.name == "aten::_local_scalar_dense":
        return recorder.answers.answer(func, args)
    out = func(*args, **kwargs)
    if recorder.answers is not None:
        recorder.answers.watch(func, args, out)
    if held is not None:
        held.add(out, recorder)
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
        stack.enter_context(_eager())
        stack.enter_context(stopped_after(recorder.limits.seconds, lambda: too_slow(recorder)))  # left first
        yield


@contextmanager
def _eager() -> Iterator[None]:
    """Compiled functions run as they are written: torch's own switch, where its compiler is loaded."""
    import torch  # noqa: PLC0415

    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
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
