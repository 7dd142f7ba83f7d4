"""FLOPs and bytes as polynomials in batch B, sequence length S and key length K, exact and piecewise.

The polynomials are not fitted: symbols are passed through the same functions that count with numbers, so that a
window's edge becomes a border between two pieces and nothing is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from suanli.count import build_ledger
from suanli.errors import Fault, InputError
from suanli.footprint import activations, cache_product
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.counts import PieceText, QuantityText, SweepPoint
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger
from suanli.nouns.polynomial import Bounds, Polynomial, Region, bounds_text, regions, united
from suanli.nouns.workload import Workload
from suanli.work import Setting

BATCH, SEQ, KEYS = "B", "S", "K"


@dataclass(frozen=True, kw_only=True)
class _Lengths:
    """A workload whose lengths are symbols; the other fields are the template's."""

    batch: Polynomial
    seq: Polynomial
    kv_len: Polynomial
    phase: str
    dtype: str
    kv_dtype: str | None
    recompute: str
    optimizer: str

    @property
    def keys(self) -> Polynomial:
        """Keys a decoded token sees."""
        return self.kv_len


@dataclass(frozen=True)
class Piecewise:
    """One quantity: a polynomial for each region."""

    unit: str
    pieces: tuple[tuple[Region, Polynomial], ...]

    def at(self, batch: Any = 1, seq: Any = 1, kv_len: Any = None) -> Any:
        """The value at these lengths: an exact int for ints, float64 for numpy arrays (which broadcast)."""
        values = {BATCH: batch, SEQ: seq, KEYS: seq if kv_len is None else kv_len}
        if all(isinstance(value, int) for value in values.values()):
            return next(piece.at(values) for region, piece in self.pieces if region.holds(values))
        return sum(piece.at(values) * region.holds(values) for region, piece in self.pieces)

    @property
    def texts(self) -> tuple[PieceText, ...]:
        """Each different polynomial with where it holds."""
        places: dict[str, list[Bounds]] = {}
        for region, piece in self.pieces:
            places.setdefault(str(piece), []).append(region.bounds)
        if len(places) == 1:
            return (PieceText(where="everywhere", polynomial=next(iter(places))),)
        return tuple(
            PieceText(where=" or ".join(map(bounds_text, united(where))), polynomial=text)
            for text, where in places.items()
        )

    def __str__(self) -> str:
        if len(self.texts) == 1:
            return self.texts[0].polynomial
        return "\n".join(f"{piece.polynomial}   [{piece.where}]" for piece in self.texts)


@dataclass(frozen=True, kw_only=True)
class Polynomials:
    """What a pass computes, reads, writes and keeps, as functions of the lengths. Parameters do not depend on them."""

    flops: Piecewise = field(metadata={"unit": "FLOPs", "doc": "what the model needs"})
    hardware: Piecewise = field(metadata={"unit": "FLOPs", "doc": "what the machine executes"})
    forward: Piecewise = field(metadata={"unit": "FLOPs", "doc": "forward pass"})
    backward: Piecewise = field(metadata={"unit": "FLOPs", "doc": "backward pass"})
    recompute: Piecewise = field(metadata={"unit": "FLOPs", "doc": "forward work done again"})
    read_bytes: Piecewise = field(metadata={"unit": "bytes", "doc": "weights and inputs read"})
    write_bytes: Piecewise = field(metadata={"unit": "bytes", "doc": "outputs written"})
    kv_cache: Piecewise | None = field(metadata={"unit": "bytes", "doc": "keys and values; None: does not decode"})
    activations: Piecewise | None = field(metadata={"unit": "bytes", "doc": "kept for backward; None: no training"})
    params: int = field(metadata={"unit": "parameters", "doc": "tied weights once"})

    def at(self, batch: Any = 1, seq: Any = 1, kv_len: Any = None) -> dict[str, Any]:
        """Every quantity at these lengths (ints or arrays); None where it does not exist."""
        return {
            name: value.at(batch, seq, kv_len) if isinstance(value, Piecewise) else value
            for name, value in vars(self).items()
        }

    @property
    def texts(self) -> tuple[QuantityText, ...]:
        """Every quantity that exists, as text."""
        found = ((name, value) for name, value in vars(self).items() if isinstance(value, Piecewise))
        return tuple(QuantityText(quantity=name, unit=value.unit, pieces=value.texts) for name, value in found)

    def point(self, batch: int, seq: int, kv_len: int | None = None) -> SweepPoint:
        """What a sweep shows of these lengths; exact."""
        keys = seq if kv_len is None else kv_len
        kept = {name: value and value.at(batch, seq, keys) for name, value in vars(self).items() if name in _SWEPT}
        return SweepPoint(
            batch=batch, seq=seq, kv_len=kv_len, model_flops=kept.pop("flops"), hardware_flops=kept.pop("hardware"),
            **kept,
        )  # fmt: skip


_SWEPT = ("flops", "hardware", "read_bytes", "write_bytes", "kv_cache", "activations")
_UNITS = {name: f.metadata["unit"] for name, f in Polynomials.__dataclass_fields__.items() if name != "params"}


def polynomials(
    arch: Arch,
    phase: str,
    convention: Convention,
    *,
    dtype: str = "bf16",
    kv_dtype: str | None = None,
    recompute: str = "none",
) -> Polynomials:
    """The polynomials of a model in a phase. Raises InputError where the phase or convention cannot be, or where the
    count takes lengths apart in a way that has no closed form.
    """
    template = Workload(phase=phase, dtype=dtype, kv_dtype=kv_dtype, recompute=recompute)
    try:
        found = list(regions(lambda region: _quantities(arch, template, convention, region)))
    except (TypeError, OverflowError) as problem:
        raise _no_closed_form(arch, problem) from problem
    pieces: dict[str, Piecewise | None] = {}
    for name, unit in _UNITS.items():
        values = tuple((region, quantities[name]) for region, quantities in found)
        pieces[name] = None if values[0][1] is None else Piecewise(unit, values)
    return Polynomials(params=arch.params_total, **cast("dict[str, Any]", pieces))


def _no_closed_form(arch: Arch, problem: Exception) -> InputError:
    return InputError(
        Fault(
            code="no_closed_form",
            message=f"the count of {arch.name} has no closed form in its lengths",
            where="MODEL",
            got=str(problem)[:100],
            hint="Count it at each length.",
        )
    )


def _quantities(arch: Arch, template: Workload, convention: Convention, region: Region) -> dict[str, Any]:
    """Every quantity as a polynomial of this region (None where it does not exist)."""
    lengths = _Lengths(
        batch=region.symbol(BATCH),
        seq=region.symbol(SEQ),
        kv_len=region.symbol(KEYS if template.phase == "decode" else SEQ),
        phase=template.phase,
        dtype=template.dtype,
        kv_dtype=template.kv_dtype,
        recompute=template.recompute,
        optimizer=template.optimizer,
    )
    workload = cast("Workload", lengths)
    ledger = build_ledger(arch, workload, convention)
    cache = _kv_cache(Setting(arch, workload, convention)) if arch.decodes else None
    kept = activations(arch, workload)[template.recompute] if template.phase == "train" else None
    zero = region.symbol(BATCH) * 0
    found = {**_of_ledger(ledger), "kv_cache": cache, "activations": kept}
    return {name: None if value is None else value + zero for name, value in found.items()}


def _of_ledger(ledger: Ledger) -> dict[str, Any]:
    return {
        "flops": ledger.model_flops,
        "hardware": ledger.hardware_flops,
        "forward": ledger.flops(FORWARD),
        "backward": ledger.flops(BACKWARD),
        "recompute": ledger.flops(RECOMPUTE_PASS, "hardware_flops"),
        "read_bytes": ledger.flops(column="read_bytes"),
        "write_bytes": ledger.flops(column="write_bytes"),
    }


def _kv_cache(at: Setting) -> Any:
    """As `footprint.kv_cache`, which wants whole numbers."""
    products = ((placed.times, cache_product(placed, at)) for placed in at.arch.leaves())
    return sum(times * found.value for times, found in products if found is not None)
