"""Training steps that were measured, with their layouts: rows of measured_runs.csv and of users' own files."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, kw_only=True)
class OwnRun:
    """A user's own step with its layout: a row of their file. None means not known."""

    line: int = _field("", "of the file")
    id: str = _field("", "name of the run")
    model: str | None = _field("", "preset, config file or name beside a shape")
    shape: Mapping[str, Any] | None = _field("", "hidden, num_layers, heads, kv_heads, ffn, vocab, gated")
    gpu: str | None = _field("", "accelerator")
    fabric: str | None = _field("", "links and network, as --fabric takes them")
    gpus: int = _field("", "accelerators")
    degrees: Mapping[str, int] = _field("ranks", "tp, pp, dp, cp, ep, etp")
    vpp: int | None = _field("chunks", "virtual stages a rank holds")
    micro_batch: int | None = _field("sequences", "sequences of a micro-batch")
    global_batch: int = _field("sequences", "sequences of a step")
    seq: int = _field("tokens", "positions of a sequence")
    recompute: str = _field("", "none, selective, full")
    sp: bool = _field("", "sequence parallelism")
    zero: int = _field("", "ZeRO stage")
    schedule: str | None = _field("", "of the pipeline, where it is not 1f1b or interleaved")
    dtype: str = _field("", "of the products")
    step_s: float = _field("s", "time of a step")


@dataclass(frozen=True, kw_only=True)
class OwnRuns:
    """A file of own steps."""

    runs: tuple[OwnRun, ...] = _field("", "in the file's order")
    assumed: Mapping[str, Any] = _field("", "columns that are not there, and what they are taken to be")
    sha256: str = _field("", "of the file's text")
