"""A stack's factors on kernels, fitted to kernels that a trace measured: no step time is needed for them.

The time of products in a step is that of the device's curves times `matmul`; of fused attention, both passes, times
`attention`; of collectives across nodes, times `network`. So the ratio of measured time to the curves', by time, is the
number itself. It is joined with what was believed by their certainties: the spread of the ratios among sizes, and the
prior's. Small products and messages, and short sequences, are shown and not fitted to: their time is launch and
latency, and not what the factors stand for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from suanli.catalog.curves import DeviceCurves, find_curves
from suanli.errors import Fault, InputError, SuanliError
from suanli.formulas import collectives, counting, operators
from suanli.nouns.calibrated import CalibratedKernels, KernelClass, NumberFit
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device
from suanli.nouns.profile import Profile, StackProfile, spreads
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.units import MEBI

FEWEST = 3
LARGE, LARGE_BYTES = 1024, MEBI  # sides, positions, bytes: sizes from which the curves are judged
NOISE = 0.04  # of the logarithm of a kernel's time, at least
OTHER_DEVICE = "kernels of other devices"
NO_CURVE = "kernels that the device has no curve for"
ALONE = "collectives whose time by the curves is not known: no adapters, or no such group"
_LARGE = f"sides ≥ {LARGE:,}"
_INSIDE = "in a node"
_SMALL = f"a side < {LARGE:,}"

_LONG, _SHORT = f"≥ {LARGE:,} positions", f"< {LARGE:,} positions"
_PLANNED = ("bf16", "fp16")  # dtypes of attention in a predicted step

Measured = TypeVar("Measured", MeasuredProduct, MeasuredAttention, MeasuredCollective)


@dataclass(frozen=True)
class _Row:
    """One size: measured and curve's time of all its runs, what it did."""

    what: str
    size: str
    fits: str  # the number of the profile it tells; empty: none
    runs: int
    seconds: float
    curve_s: float
    done: float  # FLOPs, or bytes on the bus, of all runs
    peak_flop_per_s: float | None = None


def calibrate_kernels(
    measured: MeasuredKernels, device: Device, fabric: Fabric | None, stack: StackProfile, name: str = ""
) -> CalibratedKernels:
    """The stack with `matmul`, `attention` and `network` moved to kernels of `device`; none to fewer than three sizes.
    Without `fabric` collectives are left out.

    Raises InputError where fewer than three sizes of products can be set beside the curves of the dtype most used.
    """
    curves = find_curves(device)
    left: dict[str, int] = dict(measured.left_out)
    products = list(_beside(measured.products, device, left, lambda each: _product(each, curves, device)))
    calls = [] if fabric is None else list(
        _beside(measured.collectives, device, left, lambda each: _collective(each, curves, fabric)))  # fmt: skip
    attentions = list(_beside(measured.attentions, device, left, lambda each: _attention(each, curves, device)))
    dtype = _most_used(products)
    told = [row for row in products if row.fits and row.what == f"product {dtype}"]
    _check(told, products, device)
    prior = stack.at(f"{device.short_id} {dtype}")
    rows = {"matmul": told, "attention": [row for row in attentions if row.fits],
            "network": [row for row in calls if row.fits]}  # fmt: skip
    numbers = _numbers(prior, {name: each for name, each in rows.items() if len(each) >= FEWEST or name == "matmul"})
    moved = {each.name: each.after for each in numbers if each.told}
    profile = replace(
        stack, name=name or f"{stack.shipped}-own", base=stack.shipped, labels={}, numbers=replace(prior, **moved),
        devices=(f"{device.short_id} {dtype}",), untold=tuple(each.name for each in numbers if not each.told),
    )  # fmt: skip
    classes = _classes([*products, *attentions, *calls], {id(row) for name in moved for row in rows[name]})
    return CalibratedKernels(
        name=profile.name, base=stack.name, device=f"{device.short_id} {dtype}", numbers=numbers, classes=classes,
        left_out={why: count for why, count in left.items() if count}, half_width=stack.half_width,
        warnings=tuple(_warnings(classes, fabric)), profile=profile,
    )  # fmt: skip


def _beside(
    measured: Sequence[Measured], device: Device, left: dict[str, int], row: Callable[[Measured], _Row | str]
) -> Iterable[_Row]:
    for each in measured:
        found = row(each) if each.gpu == device.short_id else OTHER_DEVICE
        if isinstance(found, str):
            left[found] = left.get(found, 0) + 1
        else:
            yield found


def _product(each: MeasuredProduct, curves: DeviceCurves, device: Device) -> _Row | str:
    if each.dtype not in curves.matmul_dtypes:
        return NO_CURVE
    large = min(each.m, each.n, each.k) >= LARGE
    once = float(curves.matmul_s(each.m, each.n, each.k, 1, each.dtype))
    return _Row(
        what=f"product {each.dtype}", size=_LARGE if large else _SMALL, fits="matmul" if large else "", runs=each.runs,
        seconds=each.seconds * each.runs, curve_s=once * each.runs,
        done=float(counting.linear_flops(each.m, each.k, each.n)) * each.runs,
        peak_flop_per_s=device.peak_flop_per_s(each.dtype) if each.dtype in device.peaks_flop_per_s else None,
    )  # fmt: skip


def _attention(each: MeasuredAttention, curves: DeviceCurves, device: Device) -> _Row | str:
    shape = (each.batch, each.heads, each.kv_heads, each.queries, each.keys, each.qk_dim, each.v_dim, each.causal)
    try:
        once = float(curves.attention_s(*shape, each.backward, each.dtype))
    except SuanliError:
        return NO_CURVE
    if not once > 0 or (each.causal and each.queries > each.keys):
        return NO_CURVE
    large = min(each.queries, each.keys) >= LARGE
    return _Row(
        what=f"attention {each.dtype}{' backward' if each.backward else ''}", size=_LONG if large else _SHORT,
        fits="attention" if large and each.dtype in _PLANNED else "", runs=each.runs,
        seconds=each.seconds * each.runs, curve_s=once * each.runs, done=_attention_flops(each) * each.runs,
        peak_flop_per_s=device.peak_flop_per_s(each.dtype) if each.dtype in device.peaks_flop_per_s else None,
    )  # fmt: skip


def _attention_flops(each: MeasuredAttention) -> float:
    """Executed: a backward pass computes the scores again."""
    sizes = (each.queries, each.keys)
    pairs = each.batch * (counting.last_aligned_pairs if each.causal else counting.full_pairs)(*sizes)
    if not each.backward:
        return float(counting.attention_flops(pairs, each.heads, each.qk_dim, each.v_dim))
    again = operators.attention_scores_flops(pairs, each.heads, each.qk_dim)
    return float(operators.attention_backward_flops(pairs, each.heads, each.qk_dim, each.v_dim) + again)


def _collective(each: MeasuredCollective, curves: DeviceCurves, fabric: Fabric) -> _Row | str:
    try:
        once = float(curves.collective_s(each.kind, each.bytes, each.ranks, fabric))
    except SuanliError:
        return ALONE
    across, large = each.ranks > fabric.gpus_per_node, each.bytes >= LARGE_BYTES
    passes = 2 if each.kind == "all_reduce" else 1
    place = f"{each.ranks} {'across nodes' if across else _INSIDE}{'' if large else ', < 1 MiB'}"
    return _Row(
        what=each.kind, size=place, fits="network" if across and large else "", runs=each.runs,
        seconds=each.seconds * each.runs, curve_s=once * each.runs,
        done=float(collectives.wire_bytes(each.bytes, each.ranks, passes)) * each.runs,
    )  # fmt: skip


def _most_used(rows: Sequence[_Row]) -> str:
    """The dtype of most of the products' time, among those with large ones."""
    times: dict[str, float] = {}
    for row in rows:
        if row.fits:
            times[row.what] = times.get(row.what, 0.0) + row.seconds
    return max(times, key=lambda what: times[what]).removeprefix("product ") if times else "bf16"


def _check(told: Sequence[_Row], products: Sequence[_Row], device: Device) -> None:
    if len(told) < FEWEST:
        raise InputError(
            Fault(code="too_few_kernels", message=f"too few sizes of products of {device.short_id} to fit to",
                  got=f"{len(told)} with {_LARGE}, {len(products)} in all", expected=f"{FEWEST} or more with {_LARGE}",
                  hint="Give the kernels of a step of a large model, recorded with shapes; or --gpu, where the file "
                  "names another device.")
        )  # fmt: skip


# --- numbers ------------------------------------------------------------------------------------------------------


def _numbers(prior: Profile, rows: dict[str, list[_Row]]) -> tuple[NumberFit, ...]:
    meta = {each.name: each.metadata for each in fields(Profile)}
    found = []
    for name, spread in spreads().items():
        before, told = float(getattr(prior, name)), bool(rows.get(name))
        after, width = _joined(before, spread, rows[name]) if told else (before, spread)
        found.append(NumberFit(name=name, unit=meta[name]["unit"], meaning=meta[name]["doc"], before=before,
                               after=after, spread_before=spread, spread_after=width, told=told))  # fmt: skip
    return tuple(sorted(found, key=lambda row: not row.told))


def _joined(before: float, spread: float, rows: Sequence[_Row]) -> tuple[float, float]:
    """What is believed and what was measured, each by its certainty: the number, and the spread of its logarithm."""
    ratio, among = ratio_of(rows)
    shares = [row.seconds / sum(each.seconds for each in rows) for row in rows]
    many = 1 / sum(share**2 for share in shares)
    measured = (among**2 + NOISE**2) / many
    weights = 1 / spread**2, 1 / measured
    middle = (weights[0] * math.log(before) + weights[1] * math.log(ratio)) / sum(weights)
    return math.exp(middle), sum(weights) ** -0.5


def ratio_of(rows: Sequence[_Row]) -> tuple[float, float]:
    """Measured time over the curves', and the spread of its logarithm among sizes, both by time."""
    seconds, curve = sum(row.seconds for row in rows), sum(row.curve_s for row in rows)
    ratio = seconds / curve
    apart = sum(row.seconds * math.log(row.seconds / row.curve_s / ratio) ** 2 for row in rows) / seconds
    return ratio, math.sqrt(apart)


# --- classes ------------------------------------------------------------------------------------------------------


def _classes(rows: Sequence[_Row], fitted: set[int]) -> tuple[KernelClass, ...]:
    alike: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        alike.setdefault((row.what, row.size), []).append(row)
    found = []
    for (what, size), held in alike.items():
        ratio, spread = ratio_of(held)
        seconds, curve = sum(row.seconds for row in held), sum(row.curve_s for row in held)
        rate, peak = sum(row.done for row in held) / seconds, held[0].peak_flop_per_s
        found.append(KernelClass(
            what=what, size=size, rows=len(held), runs=sum(row.runs for row in held), seconds=seconds, curve_s=curve,
            ratio=ratio, spread=spread, rate=rate, peak_fraction=None if peak is None else rate / peak,
            fitted=any(id(row) in fitted for row in held),
        ))  # fmt: skip
    order = ("product", "attention")
    return tuple(sorted(found, key=lambda each: ([not each.what.startswith(kind) for kind in order], -each.seconds)))


def _warnings(classes: Sequence[KernelClass], fabric: Fabric | None) -> Iterable[str]:
    multiplied = [each for each in classes if each.what.startswith(("product", "attention"))]
    fast = [each for each in multiplied if each.ratio < 0.8 and each.fitted]
    for each in fast:
        name = f"{each.what}s" if each.what.startswith("product") else f"kernels of {each.what}"
        yield (
            f"{name} are {1 - each.ratio:.0%} faster than any that were benchmarked: are the device and dtype as "
            "written?"
        )
    if any(each.size.endswith(_INSIDE) for each in classes):
        yield (
            f"groups of up to {0 if fabric is None else fabric.gpus_per_node} ranks are taken to be inside a node; "
            "their ratios are shown, and no number is fitted to them: a step hides part of their time"
        )
