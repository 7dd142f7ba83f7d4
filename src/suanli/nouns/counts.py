"""What `count` answers: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.ledger import Ledger, Uncounted


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class ParamCounts:
    """Parameters of a model."""

    total: int = _doc("parameters", "all, tied weights once")
    active: int = _doc("parameters", "those one token passes through")
    embedding: int = _doc("parameters", "embedding tables")
    trainable: int = _doc("parameters", "those that get a gradient")
    buffers: int = _doc("elements", "checkpointed tensors that are no parameters")


@dataclass(frozen=True, kw_only=True)
class FlopCounts:
    """Operations of one pass over the batch, or of one training step."""

    forward: int = _doc("FLOPs", "forward pass")
    backward: int = _doc("FLOPs", "backward pass; 0 outside training")
    recompute: int = _doc("FLOPs", "forward work done again before backward")
    model: int = _doc("FLOPs", "what the model needs; the numerator of MFU")
    hardware: int = _doc("FLOPs", "what the machine executes; the numerator of HFU")
    scan: int = _doc("FLOPs", "of the model's, those of scans counted as recurrences; model − scan leaves them out")
    hardware_by_recompute: Mapping[str, int] | None = _doc(
        "FLOPs", "the same under every recompute policy; training only"
    )


@dataclass(frozen=True, kw_only=True)
class ByteCounts:
    """Memory a model holds. None where the phase or the model has none; `reasons` says why."""

    weights: int = _doc("bytes", "all parameters in the dtype")
    gradients: int | None = _doc("bytes", "trainable parameters in the dtype")
    optimizer: int | None = _doc("bytes", "optimizer states, an fp32 master copy included")
    activations: int | None = _doc("bytes", "kept for backward under the recompute policy")
    activations_by_recompute: Mapping[str, int] | None = _doc("bytes", "the same under every policy")
    kv_cache: int | None = _doc("bytes", "keys and values of all sequences")
    reasons: Mapping[str, str] = _doc("", "why a figure is not given", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CountRow:
    """Rows of the ledger added up by one name."""

    name: str = _doc("", "module, kind, layer or pass")
    params: int = _doc("parameters", "held there")
    model_flops: int = _doc("FLOPs", "what the model needs")
    hardware_flops: int = _doc("FLOPs", "what the machine executes")
    read_bytes: int = _doc("bytes", "weights and inputs read")
    write_bytes: int = _doc("bytes", "outputs written")
    times: int = _doc("", "equal copies of the first layer added up")
    formulas: tuple[str, ...] = _doc("", "ids of the formulas applied")


@dataclass(frozen=True, kw_only=True)
class PieceText:
    """One polynomial and where it holds."""

    where: str = _doc("", "the lengths it holds for: everywhere, S ≤ 128 …")
    polynomial: str = _doc("", "in batch B, sequence length S and key length K, coefficients exact")


@dataclass(frozen=True, kw_only=True)
class QuantityText:
    """One quantity as polynomials in the lengths."""

    quantity: str = _doc("", "flops, hardware, forward, backward, recompute, read_bytes, write_bytes, kv_cache …")
    unit: str = _doc("", "its unit")
    pieces: tuple[PieceText, ...] = _doc("", "one polynomial for each region of lengths")


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """The same model at other lengths."""

    batch: int = _doc("sequences", "B")
    seq: int = _doc("positions", "S")
    kv_len: int | None = _doc("keys", "K; decoding only")
    model_flops: int = _doc("FLOPs", "what the model needs")
    hardware_flops: int = _doc("FLOPs", "what the machine executes")
    read_bytes: int = _doc("bytes", "weights and inputs read")
    write_bytes: int = _doc("bytes", "outputs written")
    kv_cache: int | None = _doc("bytes", "keys and values; None: the model does not decode")
    activations: int | None = _doc("bytes", "kept for backward; None outside training")


@dataclass(frozen=True, kw_only=True)
class Count:
    """A model's books under one convention."""

    model: str = _doc("", "name")
    title: str = _doc("", "name as people write it")
    unit: str = _doc("", "what one position is: token, patch, image")
    units: int = _doc("positions", "positions the FLOPs are for")
    params: ParamCounts = _doc("", "parameters")
    flops: FlopCounts = _doc("", "operations")
    flops_per_token: float = _doc("FLOPs", "model FLOPs of one position")
    macs: int = _doc("MACs", "model FLOPs over 2")
    ideal_params: int = _doc("parameters", "N of the ideal forms")
    ideal: Mapping[str, int] = _doc("FLOPs", "2N, 6N and 8N times positions")
    ideal_error: Mapping[str, float | None] = _doc("fraction", "ideal over counted, less 1")
    formula_params: int | None = _doc("parameters", "arXiv:2104.04473 eq. 2, for GPT shapes")
    bytes: ByteCounts = _doc("", "memory of the whole model, in one piece")
    by: str = _doc("", "how rows are added up")
    rows: tuple[CountRow, ...] = _doc("", "rows that make the totals")
    lower_bound: bool = _doc("", "an operator of a trace had no formula: the true totals are larger", default=False)
    polynomials: tuple[QuantityText, ...] | None = _doc(
        "", "every quantity as a function of the lengths; with --symbolic", default=None
    )
    sweep: tuple[SweepPoint, ...] | None = _doc("", "the same at other lengths; with --sweep", default=None)
    ledger: Ledger = field(metadata={"hidden": True})

    @property
    def ledger_uncounted(self) -> tuple[Uncounted, ...]:
        """What the ledger leaves out."""
        return self.ledger.uncounted
