"""A training step somebody measured, with its layout: a row of measured_runs.csv in base units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str) -> Any:
    return field(metadata={"unit": unit, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """One measured step. None means not published."""

    source: str = _field("", "paper, table or repository")
    id: str = _field("", "name within the source")
    model: str = _field("", "name as printed")
    gpu: str = _field("", "accelerator")
    gpus: int = _field("", "accelerators")
    tp: int = _field("ranks", "tensor parallel")
    pp: int = _field("ranks", "pipeline stages")
    dp: int = _field("ranks", "data parallel")
    cp: int = _field("ranks", "context parallel")
    vpp: int | None = _field("chunks", "virtual stages a rank holds")
    global_batch: int = _field("sequences", "sequences of a step")
    micro_batch: int | None = _field("sequences", "sequences of a micro-batch")
    seq: int = _field("tokens", "positions of a sequence")
    hidden: int = _field("", "width")
    num_layers: int = _field("", "layers")
    heads: int = _field("", "attention heads")
    kv_heads: int = _field("", "key/value heads")
    ffn: int = _field("", "inner width of the MLP")
    vocab: int = _field("", "vocabulary")
    gated: bool = _field("", "whether the MLP has three matrices")
    recompute: str = _field("", "none, selective, full")
    sp: bool = _field("", "sequence parallelism")
    zero: int = _field("", "ZeRO stage")
    dtype: str = _field("", "of the products")
    step_s: float = _field("s", "time of a step")
    note: str = _field("", "what the source leaves open")
