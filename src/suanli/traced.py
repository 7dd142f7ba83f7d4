"""A trace as the answer of `count`: the same figures and rows as a count by formula, and what had no formula."""

from __future__ import annotations

from dataclasses import replace

from suanli.count import grouped_rows
from suanli.errors import Fault, InputError
from suanli.footprint import optimizer_states
from suanli.formulas import counting
from suanli.kept import FP32_BYTES
from suanli.nouns.convention import Convention
from suanli.nouns.counts import ByteCounts, Count, FlopCounts
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger
from suanli.nouns.workload import Workload
from suanli.readers.torch_module import Traced
from suanli.units import FLOPS_PER_MAC


def check_convention(convention: Convention) -> None:
    """Raise InputError for a convention that a trace cannot be put under: it sees operators, not a model's letters."""
    plain = convention.router and not convention.embedding_as_matmul and not convention.recompute_blocks
    if convention.basis == "ops" and convention.pairs in ("mask", "full") and plain:
        return
    raise InputError(
        Fault(
            code="convention_impossible",
            message="a trace cannot be counted under this convention",
            where="--convention",
            got=convention.name,
            expected="causal or full",
            hint="Conventions made of a model's letters need a config, a preset or a layer expression.",
        )
    )


def count_traced(traced: Traced, workload: Workload, convention: Convention, *, by: str = "module") -> Count:
    """The books of a traced module. Raises InputError for a convention or grouping that cannot be."""
    check_convention(convention)
    ledger = traced.ledger_under(convention.pairs, convention.name)
    flops = _flop_counts(ledger)
    n = traced.params.active
    ideal = {f"{k}n": counting.ideal_flops(k, n, traced.units) for k in (2, 6, 8)}
    counted = {"2n": flops.forward, "6n": flops.model if flops.backward else None, "8n": None}
    return Count(
        model=traced.name,
        title=traced.name,
        unit=traced.unit,
        units=traced.units,
        params=traced.params,
        flops=flops,
        flops_per_token=flops.model / traced.units,
        macs=flops.model // FLOPS_PER_MAC,
        ideal_params=n,
        ideal=ideal,
        ideal_error={name: ideal[name] / of - 1 if of else None for name, of in counted.items()},
        formula_params=None,
        bytes=_bytes(traced, workload),
        by=by,
        rows=grouped_rows(ledger, by),
        ledger=ledger,
        lower_bound=ledger.lower_bound,
    )


def _flop_counts(ledger: Ledger) -> FlopCounts:
    return FlopCounts(
        forward=ledger.flops(FORWARD),
        backward=ledger.flops(BACKWARD),
        recompute=ledger.flops(RECOMPUTE_PASS, "hardware_flops"),
        model=ledger.model_flops,
        hardware=ledger.hardware_flops,
        scan=ledger.scan_flops,
        hardware_by_recompute=None,
    )


def _own_dtype(traced: Traced, workload: Workload) -> Workload:
    """The workload in the dtype the weights have: full-precision ones need no master copy."""
    wide = traced.weights_bytes >= FP32_BYTES * traced.params.total
    return replace(workload, dtype="fp32") if wide else workload


def _bytes(traced: Traced, workload: Workload) -> ByteCounts:
    """Weights in their own dtypes; activations as autograd kept them in the run."""
    reasons = {"kv_cache": "a trace runs no decoding"}
    if not traced.train:
        reasons |= dict.fromkeys(("gradients", "optimizer", "activations"), "held only in training (--phase train)")
    return ByteCounts(
        weights=traced.weights_bytes,
        gradients=traced.gradients_bytes if traced.train else None,
        optimizer=optimizer_states(traced.params.trainable, _own_dtype(traced, workload)) if traced.train else None,
        activations=traced.activation_bytes if traced.train else None,
        activations_by_recompute=None,
        kv_cache=None,
        reasons=reasons,
    )
