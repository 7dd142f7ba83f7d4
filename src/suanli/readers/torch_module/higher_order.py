"""Operators that take functions (flex attention, control flow): their names are known, their bodies are run."""

from __future__ import annotations

from typing import Any

from suanli.readers.torch_module.masks import Pairs, batch_heads
from suanli.readers.torch_module.operators import attention_backward_cost, attention_cost
from suanli.readers.torch_module.recorder import Recorder

_BODIES = ("cond", "while_loop", "checkpoint", "invoke_subgraph", "wrap", "map", "scan", "associative_scan")


def run(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """Call a higher-order operator and write it down."""
    name = func.name() if callable(getattr(func, "name", None)) else str(func)
    if name in ("flex_attention", "flex_attention_backward"):
        return _flex(recorder, func, name, args, kwargs)
    tensors = [each for each in args if hasattr(each, "layout")]
    recorder.miss(f"higher_order.{name}", tensors)
    with recorder.silence():
        return func(*args, **kwargs)


def _flex(recorder: Recorder, func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Every pair, and under a mask those of the blocks it keeps."""
    query, key, value = args[:3]
    with recorder.silence():
        out = func(*args, **kwargs)
    batch, heads = batch_heads(query)
    every = batch * query.shape[-2] * key.shape[-2]
    mask = next((each for each in args[3:] if isinstance(each, tuple) and len(each) > 10), None)
    pairs = Pairs(every, block_pairs(mask, batch, heads, query.shape[-2], key.shape[-2]) or every)
    make = attention_cost if name == "flex_attention" else attention_backward_cost
    pass_, path = recorder.place()
    recorder.add(make(pairs, heads, query.shape[-1], value.shape[-1]), [query, key, value], out, path, pass_)
    return out


def block_pairs(mask: Any, batch: int, heads: int, queries: int, keys: int) -> int | None:
    """Pairs in the blocks a block mask keeps, over the batch and averaged over heads; None where it has no values.

    The tuple is (queries, keys, counts of partial blocks, indices, counts of full blocks, …, block sizes).
    """
    if mask is None:
        return None
    counts = [mask[2], mask[4]]
    if any(each is not None and each.device.type == "meta" for each in counts):
        return None
    sizes = [each for each in mask if isinstance(each, int)]
    block_q, block_k = sizes[-2:]
    rows, columns = counts[0].shape[0], counts[0].shape[1]
    kept = sum(int(each.sum()) for each in counts if each is not None)
    over = kept * block_q * block_k * (batch // rows) * (heads // columns) // heads
    return int(min(over, batch * queries * keys))
