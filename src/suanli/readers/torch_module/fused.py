"""Functions counted in one piece, above autograd: attention and recurrent stacks, so that every backend answers alike.

Below autograd the CPU has one operator where the meta device has twelve or, for a recurrent stack, thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from suanli.formulas import counting, operators
from suanli.readers.torch_module import recurrent
from suanli.readers.torch_module.masks import batch_heads, dense_pairs
from suanli.readers.torch_module.operators import attention_backward_cost, attention_cost
from suanli.readers.torch_module.products import Cost, cost
from suanli.readers.torch_module.recorder import Recorder

Tensors = tuple[Any, ...]


@cache
def fused_function() -> Any:
    """The autograd function: runs `run` unseen, writes its cost down, and again for its gradients."""
    import torch  # noqa: PLC0415

    class Fused(torch.autograd.Function):
        """One call counted in one piece."""

        @staticmethod
        def forward(
            ctx: Any, recorder: Recorder, pass_: str, run: Callable[[], Any],
            costs: tuple[Cost, Callable[[Any], Cost]], saved: Callable[[Any], Tensors], *tensors: Any,
        ) -> Any:  # fmt: skip
            with recorder.silence():
                out = run()
                keep = saved(out) if any(ctx.needs_input_grad) else ()
            _, path = recorder.place()  # of the node that autograd has just made; the pass is not seen from in here
            recorder.add(costs[0], [each for each in tensors if each is not None], out, path, pass_)
            ctx.recorder, ctx.cost, ctx.shapes = recorder, costs[1], [_blank(each) for each in tensors]
            ctx.save_for_backward(*keep)
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            kept = ctx.saved_tensors
            needed = ctx.needs_input_grad[5:]
            given = [grad for grad in grads if grad is not None]
            pass_, path = ctx.recorder.place()
            with ctx.recorder.silence():
                found = [make() if wanted and make else None for make, wanted in zip(ctx.shapes, needed, strict=True)]
            out = [each for each in found if each is not None]
            ctx.recorder.add(ctx.cost(needed), [*kept, *given], out, path, pass_)
            return (None, None, None, None, None, *found)

    return Fused


def _blank(tensor: Any) -> Callable[[], Any] | None:
    """Makes the gradient of a tensor: its values are never looked at, its size and device are."""
    if tensor is None:
        return None
    size, dtype, device = tensor.shape, tensor.dtype, tensor.device
    return lambda: _zeros(size, dtype, device)


def _zeros(size: Any, dtype: Any, device: Any) -> Any:
    import torch  # noqa: PLC0415

    return torch.zeros(size, dtype=dtype, device=device)


# --- attention ----------------------------------------------------------------------------------------------------


def attention(recorder: Recorder, func: Any, args: Tensors, kwargs: Mapping[str, Any], flash: bool) -> Any:
    """`scaled_dot_product_attention` of plain tensors."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    at = {**dict(zip(names, args, strict=False)), **kwargs}
    query, key, value = at["query"], at["key"], at["value"]
    batch, heads = batch_heads(query)
    pairs = dense_pairs(batch, query.shape[-2], key.shape[-2], bool(at.get("is_causal", False)))
    widths = heads, query.shape[-1], value.shape[-1]
    bias = at.get("attn_mask")

    def backward(needed: Any) -> Cost:
        return attention_backward_cost(pairs, *widths, needed=(needed[0], needed[1], needed[2]), fused=flash)

    def saved(out: Any) -> Tensors:
        statistics = out.new_empty(out.shape[:-1], dtype=_float32())  # what a fused kernel keeps of the softmax
        return (query, key, value, out, statistics)

    costs = attention_cost(pairs, *widths), backward

    def run() -> Any:
        if query.device.type == "meta" and _is_regular(at):
            wide = (query.shape[0], query.shape[2], query.shape[1], value.shape[-1])
            return query.new_empty(wide).transpose(1, 2)  # as fused kernels lay it out: heads beside each other
        return func(*args, **kwargs)

    return fused_function().apply(recorder, recorder.place()[0], run, costs, saved, query, key, value, bias)


def _is_regular(at: Mapping[str, Any]) -> bool:
    """Whether torch would take the shapes as they are, nothing broadcast; other calls are left to torch to judge."""
    query, key, value = (at[name].shape for name in ("query", "key", "value"))
    if not len(query) == len(key) == len(value) == 4 or not query[0] == key[0] == value[0]:
        return False
    grouped = bool(at.get("enable_gqa")) and query[1] % key[1] == 0
    heads = key[1] == value[1] and (query[1] == key[1] or grouped)
    return bool(heads and query[3] == key[3] and key[2] == value[2])


def _float32() -> Any:
    import torch  # noqa: PLC0415

    return torch.float32


# --- recurrent stacks ---------------------------------------------------------------------------------------------

_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def recurrent_stack(recorder: Recorder, func: Any, args: Tensors, kwargs: Mapping[str, Any]) -> Any:
    """`lstm`, `gru`, `rnn_tanh`, `rnn_relu`; on meta, where torch would unroll them, only shapes are made."""
    packed = isinstance(args[3], tuple | list)
    at = {**dict(zip(_PACKED if packed else _PADDED, args, strict=False)), **kwargs}
    call = recurrent.stack_call(at, recurrent.GATES[func.__name__])
    flops = recurrent.backward_flops(call)
    backward = Cost("recurrent", operators.recurrent_backward_flops.__name__, flops, flops, backward=True)
    costs = cost("recurrent", counting.recurrent_flops, *recurrent.forward_arguments(call)), lambda _: backward
    x = at["data"] if packed else at["input"]
    states = list(at["hx"]) if isinstance(at["hx"], tuple | list) else [at["hx"]]

    def run() -> Any:
        if x.device.type != "meta":
            return func(*args, **kwargs)
        wide = call.stack[0].out_size * call.directions
        return (x.new_zeros((*x.shape[:-1], wide)), *(state.clone() for state in states))

    def saved(out: Any) -> Tensors:
        gates = out[0].new_empty((call.tokens, sum(_kept(each, call.gates) for each in call.stack)))
        return (x, out[0], gates, *at["params"])

    return fused_function().apply(recorder, recorder.place()[0], run, costs, saved, x, *states, *at["params"])


def _kept(layer: recurrent.Matrices, gates: int) -> int:
    """Elements a position keeps of one direction of a layer: gate values and state."""
    return (gates + 1) * layer.hidden


RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
