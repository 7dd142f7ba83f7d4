"""Fits the device curves to measured kernel times and writes `src/suanli/catalog/curves/*.toml`.

    python scripts/fit_curves.py --kernels DIR [--only h100-80gb-sxm] [--dry]
    python scripts/fit_curves.py --kernels own.csv

DIR holds gemm, prefill_attention, moe and nccl as Parquet files in the columns of ai-dynamo/aiconfigurator's tables.
A CSV is what `suanli explain --kernels-csv` writes, of one trace or several with one header: its products, causal
attention (forward) and collectives are fitted and printed, where there are enough; no file is written: it holds more.
Needs the extra `calibrate` (numpy, scipy, pyarrow). The same DIR and date give the same files. Each engine's fit is
printed; what ships is marked `*`: the fastest engine whose held-out error is small enough (7.5 % of products, 12 % of
attention and twice that under windows), else the most accurate one. Held out are whole shapes, a fifth at a time: all
products of an (n, k), all attention of a (heads, kv heads, width), all experts of a (hidden, inner), all collectives of
a size.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from kernel_tables import DTYPES, columns, engines_of, read, read_csv
from measured_machines import MACHINES, Machine, memory_rate, peak_of
from suanli.catalog.devices import find_device
from suanli.formulas import collectives, counting, kernels

FOLDER = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / "curves"
DATA = "ai-dynamo/aiconfigurator @095f58a (Apache-2.0), condensed: newest version of each engine"
FOLDS = 5
ACCURATE = {"matmul": 0.075, "attention": 0.12}
Array = Any
Model = Callable[[Array, Array], Array]  # parameters, mask of rows -> seconds


OPERAND_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625}  # nvfp4: a scale of 8 bits for 16 numbers
GRID = [(m, n, k) for m in (2048, 4096, 8192, 16384) for n in (2048, 4096, 12288) for k in (2048, 4096, 16384)]


# -- fitting -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """Parameters and what they are worth on the rows marked as counting."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    n: int
    fitted: float
    held_out: float
    median: float
    p90: float
    errors: Array  # of the curve as shipped, signed, all rows


def folds_of(*columns: Array) -> Array:
    """A fold for every row, the same for rows that share all of `columns`."""
    which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.uint64)
    return (which * np.uint64(2654435761) % np.uint64(2**32) // np.uint64(1000) % np.uint64(FOLDS)).astype(int)


def rounded(values: Sequence[float]) -> tuple[float, ...]:
    """Five significant digits, no traces of a bound: a file does not change with the last bit of a solver."""
    return tuple(float(f"{value:.5g}") if abs(value) > 1e-6 else 0.0 for value in values)


def fit(
    model: Model,
    bounds: dict[str, tuple[float, float, float]],
    seconds: Array,
    folds: Array,
    counting_rows: Array,
    weights: Array,
) -> Fitted:
    """Least squares of log errors, large ones damped. `bounds`: low, first guess, high of each parameter."""
    low, start, high = (np.array([bound[at] for bound in bounds.values()]) for at in range(3))

    def solved(rows: Array) -> Array:
        def errors(x: Array) -> Array:
            return np.log(model(x, rows) / seconds[rows]) * weights[rows]

        scale = np.maximum(np.abs(start), 0.1)
        found = least_squares(
            errors, start, bounds=(low, high), loss="soft_l1", f_scale=0.1, x_scale=scale, max_nfev=100
        )
        return np.array(rounded(found.x))

    held = np.empty_like(seconds)
    for fold in range(FOLDS):
        held[folds == fold] = model(solved(folds != fold), folds == fold)
    everything = np.ones(len(seconds), bool)
    x = solved(everything)
    shipped = model(x, everything) / seconds - 1
    out = np.abs(held / seconds - 1)[counting_rows]
    mean_fitted = float(np.abs(shipped[counting_rows]).mean())
    spread = (float(out.mean()), float(np.median(out)), float(np.quantile(out, 0.9)))
    return Fitted(tuple(bounds), tuple(x), int(counting_rows.sum()), mean_fitted, *spread, shipped)


# -- the curves --------------------------------------------------------------------------------------------------------


@dataclass
class Curve:
    """One fitted curve: its place in the file, what else the file says of it, and its speed on common shapes."""

    section: str
    key: str
    engine: str
    on: str
    fitted: Fitted
    fixed: dict[str, float | str] = field(default_factory=dict)
    speed: float = 0.0  # mean log seconds on common shapes
    error: float = 0.0  # what engines are compared by, as a held-out error
    aside: str = ""


PRODUCT = {
    "efficiency": (0.05, 0.8, 1.3),
    "wave_exponent": (0.0, 0.4, 1.0),
    "short_k": (0.0, 1.5, 40.0),  # hundreds
    "small_tile": (0.0, 0.1, 0.5),
    "sharpness": (1.0, 3.0, 8.0),
    "memory_fraction": (0.3, 0.7, 1.2),
    "floor_s": (0.5, 4.0, 60.0),  # microseconds
}
SCALES = {
    "short_k": 100.0,
    "floor_s": 1e-6,
    "base_s": 1e-6,
    "step_s": 1e-6,
    "large_step_s": 1e-6,
    "ramp_bytes": 1e6,
    "edge_pairs": 100.0,
}
SCALES |= {"narrow_head": 100.0, "choice_s": 1e-12}


def in_units(names: Sequence[str], x: Array) -> dict[str, float]:
    """Parameters in SI units, from the units they are fitted in."""
    return {name: float(value) * SCALES.get(name, 1.0) for name, value in zip(names, x, strict=True)}


def product_s(machine: Machine, p: dict[str, float], m: Array, n: Array, k: Array, count: Array = 1) -> Array:
    """`kernels.matmul_s` with a curve's parameters."""
    numbers = (p["efficiency"] * p["peak_flop_per_s"], p["wave_exponent"], p["short_k"], p["small_tile"])
    memory = (p["sharpness"], memory_rate(machine) * p["memory_fraction"], p["floor_s"])
    return kernels.matmul_s(
        m, n, k, count, machine.units, *numbers, *memory, p["operand_bytes"], p["output_bytes"], p["quantise_bytes"]
    )


def fit_matmul(machine: Machine, table: Any, engine: str, version: str, measured: str) -> Curve | None:
    """One engine's products of one dtype; None where too few rows are usable."""
    dtype = DTYPES[measured]
    rows = (table["gpu"] == machine.gpu) & (table["engine"] == engine) & (table["gemm_dtype"] == measured)
    m, n, k, ms = columns(table, rows, "m", "n", "k", "milliseconds")
    use = np.minimum(np.minimum(m, n), k) >= 128
    if measured == "fp8_block" and engine == "vllm" and len(ms):
        use &= ms > 2 * np.quantile(ms, 0.01)  # timed eagerly: the floor is Python's
    m, n, k, seconds = m[use], n[use], k[use], ms[use] * 1e-3
    if machine.gpu == "l40s" and engine == "trtllm":  # above the memory rate: artefacts of the cache
        use = kernels.product_bytes(m, n, k, 1, OPERAND_BYTES[dtype], 2) / seconds <= memory_rate(machine)
        m, n, k, seconds = m[use], n[use], k[use], seconds[use]
    large = np.minimum(np.minimum(m, n), k) >= 1024
    if large.sum() < 200:
        return None
    fixed = {"peak_flop_per_s": peak_of(machine, dtype), "operand_bytes": OPERAND_BYTES[dtype], "output_bytes": 2.0}
    bounds = dict(PRODUCT)
    if dtype == "bf16":
        fixed["quantise_bytes"] = 0.0
    else:
        bounds["quantise_bytes"] = (0.5, 3.0, 12.0)

    def model(x: Array, at: Array) -> Array:
        return product_s(machine, fixed | in_units(list(bounds), x), m[at], n[at], k[at])

    fitted = fit(model, bounds, seconds, folds_of(n, k), large, np.where(large, 1.0, 0.3))
    grid = np.array(GRID, float).T
    speed = np.log(product_s(machine, fixed | in_units(fitted.names, fitted.values), *grid)).mean()
    return Curve(
        "matmul", dtype, f"{engine} {version}", "m, n, k ≥ 1,024", fitted, dict(fixed), float(speed), fitted.held_out
    )


ATTENTION = {
    "efficiency": (0.02, 0.7, 3.0),
    "wave_exponent": (0.0, 0.3, 1.0),
    "edge_pairs": (0.0, 1.0, 20.0),
    "narrow_head": (0.0, 0.3, 9.0),
    "wide_head": (-0.3, 0.1, 5.0),
    "sharpness": (1.0, 2.0, 8.0),
    "memory_fraction": (0.05, 0.6, 1.5),
    "floor_s": (1.0, 8.0, 100.0),
}
# No backward kernels were measured. The published ratios of the two passes' attained rates:
BACKWARD = {
    "FlashAttention-2": (0.863, "A100: forward 73 %, backward 63 % of peak (arXiv:2307.08691 §4.1)"),
    "SimuMax": (0.972, "SimuMax's B200 table: sdpa backward 0.69, forward 0.71 of peak"),
}


def attention_s(machine: Machine, p: dict[str, Any], shape: tuple[Array, ...]) -> Array:
    """`kernels.attention_s` with a curve's parameters; `shape`: batch, length, heads, kv heads, width, window."""
    b, t, h, kv, d, w = shape
    pairs = counting.causal_pairs(t, t, w)
    numbers = (p["efficiency"] * p["peak_flop_per_s"], p["wave_exponent"], p["edge_pairs"], p["narrow_head"])
    memory = (p["sharpness"], memory_rate(machine) * p["memory_fraction"], p["floor_s"], p["operand_bytes"])
    return kernels.attention_s(b, h, kv, t, t, pairs, w, d, d, machine.units, *numbers, p["wide_head"], *memory)


def fit_attention(machine: Machine, table: Any, engine: str, version: str, measured: str) -> Curve | None:
    """One engine's causal attention of one dtype, keys of the same dtype."""
    dtype = DTYPES[measured]
    rows = (table["gpu"] == machine.gpu) & (table["engine"] == engine) & (table["attn_dtype"] == measured)
    rows &= (table["kv_cache_dtype"] == measured) & (table["isl"] >= 128) & (table["head_dim"] <= 256)
    names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "milliseconds")
    b, t, h, kv, d, ms = columns(table, rows, *names)
    (w,) = columns(table, rows, "window_size") if "window_size" in table else (np.zeros(len(ms)),)  # none in a trace's
    if len(ms) < 500:
        return None
    kv, w = np.where(kv > 0, kv, h), np.where(np.nan_to_num(w) > 0, np.minimum(np.nan_to_num(w), t), t)
    shape, full = (b, t, h, kv, d, w), w >= t
    long = (t >= 1024) & full
    blackwell = find_device(machine.device).arch.startswith("Blackwell")
    ratio, source = BACKWARD["SimuMax" if blackwell else "FlashAttention-2"]
    fixed: dict[str, Any] = {"peak_flop_per_s": peak_of(machine, dtype), "operand_bytes": OPERAND_BYTES[dtype]}

    def model(x: Array, at: Array) -> Array:
        return attention_s(machine, fixed | in_units(list(ATTENTION), x), tuple(part[at] for part in shape))

    weights = np.where(long, 1.0, np.where(full, 0.3, 0.2))
    fitted = fit(model, ATTENTION, ms * 1e-3, folds_of(h, kv, d), long, weights)
    grid = tuple(np.array(c, float) for c in zip(*[(2, s, 16, 8, 128, s) for s in (2048, 4096, 8192)], strict=True))
    speed = np.log(attention_s(machine, fixed | in_units(fitted.names, fitted.values), grid)).mean()
    band = (t >= 1024) & ~full
    windowed = float(np.abs(fitted.errors[band]).mean()) if band.sum() >= 50 else 0.0
    aside = f"under windows {windowed:.1%} on {band.sum()}" if windowed else ""
    fixed |= {"backward_rate": ratio, "backward_source": source}
    on = "causal, no window, length ≥ 1,024, heads ≤ 256 wide"
    error = max(fitted.held_out, windowed / 2)
    return Curve("attention", dtype, f"{engine} {version}", on, fitted, fixed, float(speed), error, aside)


EXPERTS = PRODUCT | {
    "efficiency": (0.03, 0.6, 0.9),  # no faster than the best plain products: the moving of tokens may not pay for it
    "floor_s": (0.5, 20.0, 150.0),
    "routed_bytes": (0.0, 6.0, 40.0),
    "token_bytes": (0.0, 4.0, 40.0),
    "choice_s": (0.0, 10.0, 3000.0),
}


def experts_s(machine: Machine, p: dict[str, float], shape: tuple[Array, ...]) -> Array:
    """One gated mixture on one GPU. `shape`: tokens of the group, width, inner width, choices, experts, routed here."""
    tokens, h, f, k, here, routed = shape
    both = product_s(machine, p, routed / here, 2 * f, h, here) + product_s(machine, p, routed / here, h, f, here)
    moved = p["routed_bytes"] * routed * (h + f) + p["token_bytes"] * tokens * h
    return both + moved / (memory_rate(machine) * p["memory_fraction"]) + p["choice_s"] * tokens * k


def fit_experts(machine: Machine, table: Any, engine: str, version: str, measured: str) -> Curve | None:
    """One engine's mixtures of one dtype: balanced routing, or where none was timed the mildest skew."""
    dtype = DTYPES[measured]
    rows = (table["gpu"] == machine.gpu) & (table["engine"] == engine) & (table["moe_dtype"] == measured)
    # Nemotron's mixtures (22 of 512, and the width 2,688) have no gate: other products than counted here.
    rows &= (table["topk"] != 22) & (table["hidden_size"] != 2688)
    balanced = rows & (table["distribution"] == "balanced")
    how = "balanced" if balanced.sum() else "power_law_1.01"
    rows &= table["distribution"] == how
    names = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    n, h, f, k, e, tp, ep, ms = columns(table, rows, *names, "milliseconds")
    routed, here, f = n * k / ep, e / ep, f / tp
    use = routed / here >= 16
    shape, seconds = tuple(part[use] for part in (n, h, f, k, here, routed)), ms[use] * 1e-3
    large = (shape[5] / shape[4] >= 128) & (shape[2] >= 512)
    if large.sum() < 60:
        return None
    fixed = {"peak_flop_per_s": peak_of(machine, dtype), "operand_bytes": OPERAND_BYTES[dtype], "output_bytes": 2.0}
    fixed["quantise_bytes"] = 0.0  # the moving of tokens has it

    def model(x: Array, at: Array) -> Array:
        return experts_s(machine, fixed | in_units(list(EXPERTS), x), tuple(part[at] for part in shape))

    weights = np.where(large, 1.0, 0.3)
    fitted = fit(model, EXPERTS, seconds, folds_of(shape[1], shape[2]), large, weights)
    on = f"gated, {how}, ≥ 128 tokens an expert, ≥ 512 inner"
    return Curve("experts", dtype, f"{engine} {version}", on, fitted, dict(fixed), error=fitted.held_out)


COLLECTIVE = {
    "base_s": (0.1, 5.0, 60.0),
    "step_s": (0.0, 1.0, 20.0),
    "large_step_s": (0.0, 1.0, 40.0),
    "rate_fraction": (0.005, 0.75, 1.5),
    "few_ranks": (-0.8, 0.3, 5.0),
    "ramp_bytes": (0.0, 1.0, 100.0),
    "ramp_exponent": (0.1, 0.6, 0.98),
}


def collective_s(machine: Machine, p: dict[str, float], size: Array, ranks: Array, passes: int) -> Array:
    """One collective inside a node with a curve's parameters."""
    wire = collectives.wire_bytes(size, ranks, passes)
    numbers = (machine.link_bytes_per_s, p["rate_fraction"], p["few_ranks"], p["ramp_bytes"], p["ramp_exponent"])
    moved = collectives.link_transfer_s(wire, ranks, *numbers)
    large = collectives.large_message_s(size, ranks, p["large_step_s"])
    return collectives.inner_latency_s(ranks, p["base_s"], p["step_s"]) + large + moved


def fit_collective(machine: Machine, table: Any, kind: str, fixed: dict[str, float], switched: bool) -> Curve | None:
    """One kind of collective; `switched` takes the rows that the switches added up, else the others."""
    rows = (table["gpu"] == machine.gpu) & (table["op_name"] == {"all_to_all": "alltoall"}.get(kind, kind))
    if machine.gpu == "l40s":
        rows &= table["num_gpus"] == 2  # the host of 4 and 8 is a bad one
    ranks, size, ms = columns(table, rows, "num_gpus", "message_size", "milliseconds")
    half = table["nccl_dtype"][rows] == "half"
    size = size * np.where(half, 2, 1)
    by_switch = half & (ranks == 8) & (kind == "all_reduce") & (machine.switch_from > 0)
    use = by_switch if switched else ~by_switch
    ranks, size, seconds = ranks[use], size[use], ms[use] * 1e-3
    if not len(seconds):
        return None
    bounds = {name: bound for name, bound in COLLECTIVE.items() if name not in fixed}
    passes = 2 if kind == "all_reduce" else 1

    def model(x: Array, at: Array) -> Array:
        return collective_s(machine, fixed | in_units(list(bounds), x), size[at], ranks[at], passes)

    large = size >= 2**20
    fitted = fit(model, bounds, seconds, folds_of(size), large, np.where(large, 1.0, 0.4))
    version = table["engine_version"][rows][0]
    key, extra = (f"{kind}_switch", {"least_ranks": machine.switch_from}) if switched else (kind, {})
    groups = "8" if switched else ", ".join(str(int(count)) for count in np.unique(ranks))
    return Curve("collectives", key, f"nccl {version}", f"≥ 1 MiB, {groups} GPUs", fitted, {**fixed, **extra})


def fit_memory(machine: Machine, table: Any) -> Curve:
    """Products that stream a large matrix past up to 16 rows; the floor from the smallest ones."""
    rows = (table["gpu"] == machine.gpu) & (table["gemm_dtype"] == "bfloat16") & (table["engine"] == "vllm")
    m, n, k, ms = columns(table, rows & (table["m"] <= 16), "m", "n", "k", "milliseconds")
    moved, seconds = kernels.product_bytes(m, n, k, 1, 2, 2), ms * 1e-3
    floor = float(f"{np.median(seconds[moved <= 2**19]):.5g}")
    use = moved >= 2**27  # beyond the cache
    moved, seconds, n, k = moved[use], seconds[use], n[use], k[use]

    def model(x: Array, at: Array) -> Array:
        return kernels.memory_pass_s(moved[at], memory_rate(machine) * x[0], floor)

    everything = np.ones(len(seconds), bool)
    fitted = fit(model, {"fraction": (0.2, 0.85, 1.1)}, seconds, folds_of(n, k), everything, everything * 1.0)
    version = table["engine_version"][rows][0]
    on = "m ≤ 16, 128 MiB and more; floor: 512 KiB and less"
    return Curve("memory", "", f"vllm {version}", on, fitted, {"floor_s": floor})


# -- files -------------------------------------------------------------------------------------------------------------


def chosen(curves: Sequence[Curve]) -> Curve | None:
    """The fastest curve that is accurate enough, else the most accurate; experts' always the most accurate."""
    accurate = [curve for curve in curves if curve.error <= ACCURATE.get(curve.section, 0)]
    if accurate:
        return min(accurate, key=lambda curve: curve.speed)
    return min(curves, key=lambda curve: curve.error, default=None)


def line(machine: Machine, curve: Curve, ships: bool) -> str:
    """One row of the printed table; errors in per cent."""
    place = f"{curve.section} {curve.key}".strip()
    f = curve.fitted
    errors = f"{f.fitted * 100:6.1f} {f.held_out * 100:6.1f} {f.median * 100:6.1f} {f.p90 * 100:6.1f}"
    mark = "*" if ships else " "
    return f"{machine.device:30} {place:30} {curve.engine:18} {f.n:6d} {errors} {mark} {curve.aside}".rstrip()


def toml_of(machine: Machine, curves: Sequence[Curve], date: str) -> str:
    """The file of one device."""
    head = {
        "device": machine.device,
        "units": machine.units,
        "memory_bytes_per_s": memory_rate(machine),
        "data": DATA,
        "command": "python scripts/fit_curves.py --kernels DIR",
        "date": date,
    }
    lines = ["# Written by scripts/fit_curves.py: fit again instead of editing.", *map(_assigned, head.items())]
    stands_for = {"fp16": "bf16"}
    blackwell = find_device(machine.device).arch.startswith("Blackwell")
    if blackwell and any(curve.section == "matmul" and curve.key == "fp8_block" for curve in curves):
        stands_for["mxfp8"] = "fp8_block"  # no mxfp8 products were timed; block scales of 8 bits are the nearest
    lines += ["", "[stands_for]", *map(_assigned, stands_for.items())]
    for curve in curves:
        place = f"{curve.section}.{curve.key}".rstrip(".")
        numbers = in_units(curve.fitted.names, curve.fitted.values)
        lines += ["", f"[{place}]", *map(_assigned, {**curve.fixed, **numbers}.items())]
        f = curve.fitted
        errors = {"mape_fitted": f.fitted, "mape_held_out": f.held_out, "median_held_out": f.median}
        short = {name: round(value, 4) for name, value in (errors | {"p90_held_out": f.p90}).items()}
        record = {"engine": curve.engine, "n": f.n, "on": curve.on, **short}
        record |= {"aside": curve.aside} if curve.aside else {}
        lines += ["", f"[{place}.fit]", *map(_assigned, record.items())]
    return "\n".join(lines) + "\n"


def _assigned(item: tuple[str, Any]) -> str:
    key, value = item
    if isinstance(value, str):
        return f'{key} = "{value}"'
    return f"{key} = {value}" if isinstance(value, int) else f"{key} = {float(f'{value:.6g}')!r}"


def fit_own(machine: Machine, tables: dict[str, dict[str, Any]], out: Callable[[str], None]) -> list[Curve]:
    """Curves of products, attention and collectives of a CSV, each printed; kinds with too few rows give none."""
    found = [
        fit_matmul(machine, tables["gemm"], *each) for each in engines_of(tables["gemm"], machine, "gemm_dtype")
    ]  # fmt: skip
    attention = tables["prefill_attention"]
    if "attn_dtype" in attention:  # a CSV of products and collectives alone may lack the columns
        found += [fit_attention(machine, attention, *each) for each in engines_of(attention, machine, "attn_dtype")]
    if machine.link_bytes_per_s:
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            rows = tables["nccl"]["gpu"] == machine.gpu
            rows &= tables["nccl"]["op_name"] == {"all_to_all": "alltoall"}.get(kind, kind)
            if len(np.unique(tables["nccl"]["message_size"][rows])) >= 2 * len(COLLECTIVE):
                found.append(fit_collective(machine, tables["nccl"], kind, {}, False))
    for curve in filter(None, found):
        out(line(machine, curve, False))
    return [curve for curve in found if curve is not None]


def fit_machine(machine: Machine, tables: dict[str, dict[str, Any]], out: Callable[[str], None]) -> list[Curve]:
    """The curves that ship of one machine; every engine's are printed."""
    ships: list[Curve] = []
    fitters = (
        (fit_matmul, "gemm", "gemm_dtype"),
        (fit_attention, "prefill_attention", "attn_dtype"),
        (fit_experts, "moe", "moe_dtype"),
    )
    for fitter, name, column in fitters:
        found = [fitter(machine, tables[name], *each) for each in engines_of(tables[name], machine, column)]
        usable = [curve for curve in found if curve is not None]
        for key in dict.fromkeys(DTYPES.values()):
            alike = [curve for curve in usable if curve.key == key]
            best = chosen(alike)
            for curve in alike:
                out(line(machine, curve, curve is best))
            ships += [best] if best else []
    rest: list[Curve | None] = [fit_memory(machine, tables["gemm"])]
    if machine.link_bytes_per_s:
        one = partial(fit_collective, machine, tables["nccl"])
        fixed = {"few_ranks": 0.0} if machine.gpu == "l40s" else {}
        kinds = [one(kind, fixed, False) for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")]
        rest += kinds
        if machine.switch_from and kinds[0]:
            plain = in_units(kinds[0].fitted.names, kinds[0].fitted.values)
            rest.append(one("all_reduce", {"few_ranks": 0.0, "step_s": plain["step_s"], "large_step_s": 0.0}, True))
    for curve in filter(None, rest):
        out(line(machine, curve, True))
        ships.append(curve)
    return ships


def main(arguments: Sequence[str]) -> None:
    """Fit, print the table, write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=Path, required=True, help="folder of the Parquet files, or a CSV")
    parser.add_argument("--only", help="id of one device")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="date to write into the files")
    parser.add_argument("--dry", action="store_true", help="print the table, write nothing")
    options = parser.parse_args(arguments)
    own = options.kernels.suffix.lower() == ".csv"
    parts = ("gemm", "prefill_attention", "moe", "nccl")
    tables = read_csv(options.kernels) if own else {name: read(options.kernels, name) for name in parts}
    head = f"{'fitted':>6} {'held':>6} {'median':>6} {'p90':>6}"
    print(f"{'device':30} {'curve':30} {'engine':18} {'n':>6} {head}   mean absolute error, %")
    for machine in MACHINES:
        if options.only not in (None, machine.device):
            continue
        if own:
            fit_own(machine, tables, partial(print, flush=True))
            continue
        curves = fit_machine(machine, tables, partial(print, flush=True))
        if not options.dry:
            path = FOLDER / f"{machine.device}.toml"
            draft = path.with_suffix(".tmp")
            draft.write_text(toml_of(machine, curves, options.date), encoding="utf-8")
            draft.replace(path)


if __name__ == "__main__":
    main(sys.argv[1:])
