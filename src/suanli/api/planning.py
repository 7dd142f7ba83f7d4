"""`suanli.layout`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.nouns.result import Result


@keeps_request
def layout(
    model: Any,
    *,
    gpu: str | None = None,
    gpus: Any = None,
    global_batch: Any = None,
    seq: Any = None,
    pin: str | Mapping[str, Any] | None = None,
    dtype: str | None = None,
    stack: str | None = None,
    fabric: str | None = None,
    top: Any = None,
    memory_limit: Any = None,
    why: Any = None,
    emit: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Every legal parallel layout of a training run with its memory and step time, ranked.

    Raises InputError listing every fault, or saying which pin cannot be, by how much nothing fits and what would.
    `why` is two places in the ranking or two pins; `progress` is called with the part of the search that is done.

    >>> plan = layout("llama-3.1-8b", gpu="h100-sxm", gpus=8, global_batch=64, seq=8192, pin={"tp": 1})
    >>> [plan.layouts[0].tp, plan.layouts[0].gpus]
    [1, 8]
    """
    from suanli.api.layouts import plan_layouts  # noqa: PLC0415  the planner comes with the first layout

    return plan_layouts(
        model, gpu=gpu, gpus=gpus, global_batch=global_batch, seq=seq, pin=pin, dtype=dtype, stack=stack,
        fabric=fabric, top=top, memory_limit=memory_limit, why=why, emit=emit, progress=progress,
    )  # fmt: skip
