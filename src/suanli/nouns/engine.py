"""A serving engine as its rules of memory: the pages of its cache, and how much of a GPU it takes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WINDOW_RULES = ("exact", "block", "chunk")
HYBRID_RULES = ("exact", "pools", "grouped", "unified")
BUDGET_RULES = ("of_total", "of_free", "static")


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What an engine's memory manager does. `sources` names where each field was read."""

    name: str = _field("", "as options spell it")
    title: str = _field("", "what it is")
    block_tokens: int = _field("tokens", "positions of a page")
    chunk_tokens: int = _field("tokens", "of one step: prefill is cut into such chunks")
    window_rule: str = _field(
        "",
        "of a sliding window a sequence holds: exact, the window; block, one page more; chunk, a chunk and a page more",
    )
    hybrid_rule: str = _field(
        "",
        "kinds of layers side by side: exact; pools, one for each kind; grouped, groups of equal size over one pool; "
        "unified, the same and windows hold every position",
    )
    budget_rule: str = _field("", "the cache gets a fraction of_total memory, of_free memory, or static with weights")
    memory_fraction: float = _field("fraction", "that fraction unless given")
    reserve_bytes: float = _field("B", "context, graphs and buffers beside activations")
    comm_bytes: float = _field("B", "buffers of collectives where a replica has several GPUs")
    flash: bool = _field("", "attention stores no scores")
    sources: Mapping[str, str] = _field("", "where each field was read", default_factory=dict, hash=False)
