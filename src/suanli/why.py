"""`why`: where a number comes from. A formula by its id, or a quantity of a model with the numbers put in.

The numbers are those of the verb itself: steps are applied again to what the verb counted and must give its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from suanli.count import placed_layers
from suanli.errors import unknown_name
from suanli.formulas import Formula, all_formulas
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.counts import Count
from suanli.nouns.layers import Attention
from suanli.nouns.measures import Mfu, TrainPlan
from suanli.nouns.reason import Step, Why
from suanli.nouns.workload import Workload
from suanli.units import HOUR
from suanli.work import Setting, Work, attended_pairs, layer_work


@dataclass(frozen=True)
class Quantity:
    """A named figure of a verb: the verb that gives it, what it is, and the formula it comes from."""

    id: str
    verb: str
    doc: str
    formula: str
    unit: str


_ROWS = "Σ over the rows of the ledger"
QUANTITIES = {
    quantity.id: quantity
    for quantity in (
        Quantity("params.total", "count", "parameters, tied weights once", "Σ over the layers", "parameters"),
        Quantity("params.active", "count", "parameters one token passes through", "Σ over the layers", "parameters"),
        Quantity("flops.forward", "count", "FLOPs of the forward pass", _ROWS, "FLOPs"),
        Quantity("flops.model", "count", "FLOPs the model needs", _ROWS, "FLOPs"),
        Quantity("flops.hardware", "count", "FLOPs the machine executes", _ROWS, "FLOPs"),
        Quantity("flops_per_token", "count", "model FLOPs of one position", "flops.model / positions", "FLOPs"),
        Quantity("ideal.2n", "count", "the ideal form of inference", "ideal_flops", "FLOPs"),
        Quantity("ideal.6n", "count", "the ideal form of training", "ideal_flops", "FLOPs"),
        Quantity("ideal.8n", "count", "the ideal form with full recompute", "ideal_flops", "FLOPs"),
        Quantity("bytes.weights", "count", "memory of the weights", "weights_bytes", "bytes"),
        Quantity("bytes.kv_cache", "count", "memory of keys and values", "Σ over the attention layers", "bytes"),
        Quantity("mfu", "mfu", "model FLOPs utilisation", "utilisation", "fraction"),
        Quantity("hfu", "mfu", "hardware FLOPs utilisation", "utilisation", "fraction"),
        Quantity("achieved_flop_per_s", "mfu", "achieved rate of one GPU", "achieved_flop_per_s", "FLOP/s"),
        Quantity("gpu_hours", "train", "productive GPU time", "gpu_hours", "GPU-hours"),
        Quantity("days", "train", "calendar days", "wall_days", "days"),
        Quantity("cost_usd", "train", "money for the GPU-hours", "run_cost", "USD"),
        Quantity("energy_kwh", "train", "energy from the grid", "run_energy_kwh", "kWh"),
    )
}


def known_ids() -> tuple[str, ...]:
    """Every id `why` answers: quantities, then formulas."""
    return (*QUANTITIES, *(id_ for id_ in all_formulas() if id_ not in QUANTITIES))


def explain_formula(id_: str) -> Why:
    """A formula by its id, without numbers. Raises UnknownNameError with the nearest ids."""
    formula = all_formulas().get(id_)
    if formula is None:
        raise unknown_name("quantity", id_, known_ids(), where="ID", hint="`suanli why` lists them.")
    return Why(
        id=id_,
        doc=formula.doc,
        formula=formula.expression,
        source=formula.source,
        legend=formula.legend,
        unit=formula.unit,
    )


def _step(formula: Formula, values: Mapping[str, Any], where: str) -> Step:
    """A formula applied once more to the numbers it was given."""
    value = formula.function(**values)
    return Step(
        where=where, formula=formula.id, expression=formula.expression, values=values, value=value, unit=formula.unit
    )


# --- quantities of count ------------------------------------------------------------------------------------------


def explain_count(id_: str, arch: Arch, workload: Workload, convention: Convention, books: Count) -> Why:
    """A quantity of `count` with every row that makes it."""
    quantity = QUANTITIES[id_]
    part, _, name = id_.partition(".")
    value = getattr(books, part) if not name else _member(getattr(books, part), name)
    at = Setting(arch, workload, convention)
    if part == "params":
        steps = _param_steps(arch, active=name == "active")
    elif part == "ideal":
        inputs = {"multiple": int(name[0]), "params": books.ideal_params, "tokens": books.units}
        steps = (_step(all_formulas()["ideal_flops"], inputs, arch.name),)
    elif id_ == "bytes.weights":
        steps = _weight_steps(arch, workload)
    elif id_ == "bytes.kv_cache":
        steps = _cache_steps(at)
    else:
        steps = _flop_steps(at, books, "forward" if name == "forward" else None)
    formulas = [all_formulas()[step.formula] for step in steps if step.formula in all_formulas()]
    used = {each.id: each for each in formulas}
    return Why(
        id=id_,
        doc=quantity.doc,
        formula=used[quantity.formula].expression if quantity.formula in used else quantity.formula,
        source="; ".join(dict.fromkeys([f"convention {convention.name}: {convention.source}", *arch.sources])),
        legend=_legend(used),
        values=_put_in(id_, books, steps),
        value=value,
        unit=quantity.unit,
        model=arch.name,
        steps=steps,
    )


def _put_in(id_: str, books: Count, steps: tuple[Step, ...]) -> dict[str, Any]:
    """The numbers of the last formula: its inputs, or for a sum what is added."""
    if id_ == "flops_per_token":
        return {"flops.model": books.flops.model, "positions": books.units}
    return dict(steps[0].values) if len(steps) == 1 else {step.where: step.value for step in steps}


def _member(section: Any, name: str) -> Any:
    return section[name] if isinstance(section, Mapping) else getattr(section, name)


def _legend(used: Mapping[str, Formula]) -> dict[str, str]:
    legend: dict[str, str] = {}
    for formula in used.values():
        legend |= formula.legend
    return legend


def _param_steps(arch: Arch, *, active: bool) -> tuple[Step, ...]:
    """One row a layer that holds parameters."""
    rows = []
    for placed in arch.leaves():
        held = placed.layer.params_active if active else placed.layer.params
        if held:
            shape = {name: getattr(placed.layer, name) for name in _SHAPE if hasattr(placed.layer, name)}
            rows.append(
                Step(
                    where=placed.path, formula=placed.layer.kind, expression="parameters of one layer × copies",
                    values=shape, value=held * placed.times, unit="parameters", times=placed.times,
                )
            )  # fmt: skip
    return tuple(rows)


_SHAPE = ("in_features", "out_features", "num", "dim", "top_k", "hidden", "ffn", "in_channels", "out_channels",
          "kernel", "input_size", "hidden_size", "num_layers", "shape", "bias", "total", "active")  # fmt: skip


def _flop_steps(at: Setting, books: Count, pass_: str | None) -> tuple[Step, ...]:
    """One row a layer and pass: the formula's forward value, times the copies and the products of the pass."""
    forward = {placed.path: (placed, layer_work(placed, at)) for placed in placed_layers(at.arch)}
    rows = []
    for op in books.ledger.rows:
        if (pass_ and op.pass_ != pass_) or not op.hardware_flops:
            continue
        placed, work = forward.get(op.path, (None, None))
        values = _inputs(work, placed.layer if placed else None, at, placed.stream if placed else "")
        formula = all_formulas().get(op.formula)
        rows.append(
            Step(
                where=f"{op.path} ({op.pass_})", formula=op.formula, expression=formula.expression if formula else "",
                values=values, value=op.hardware_flops if op.pass_ == "recompute" else op.model_flops, unit="FLOPs",
                times=op.times,
            )
        )  # fmt: skip
    return tuple(rows)


def _inputs(work: Work | None, layer: Any, at: Setting, stream: str) -> dict[str, Any]:
    """Numbers put into a forward formula; for attention also how its pairs were found."""
    if work is None:
        return {}
    values = dict(work.product.inputs)
    if isinstance(layer, Attention) and at.queries(stream):
        keys = at.keys(layer.key_stream or stream)
        pairs = attended_pairs(layer, at.queries(stream), keys, at.convention.pairs)
        values["pairs_of"] = f"{pairs.formula}({', '.join(f'{k}={v:,}' for k, v in pairs.inputs.items())})"
    return values


def _weight_steps(arch: Arch, workload: Workload) -> tuple[Step, ...]:
    from suanli.nouns.workload import DTYPE_BITS  # noqa: PLC0415

    inputs = {"params": arch.params_total, "bits": DTYPE_BITS[workload.dtype]}
    return (_step(all_formulas()["weights_bytes"], inputs, arch.name),)


def _cache_steps(at: Setting) -> tuple[Step, ...]:
    from suanli.footprint import cache_product  # noqa: PLC0415

    rows = []
    for placed in at.arch.leaves():
        found = cache_product(placed, at)
        if found is not None:
            formula = all_formulas()[found.formula]
            rows.append(
                Step(
                    where=placed.path, formula=found.formula, expression=formula.expression, values=found.inputs,
                    value=found.value * placed.times, unit="bytes", times=placed.times,
                )
            )  # fmt: skip
    return tuple(rows)


# --- quantities of mfu and train ----------------------------------------------------------------------------------


def explain_mfu(id_: str, arch: Arch, found: Mfu) -> Why:
    """A quantity of `mfu`."""
    rate, hardware = found.tokens_per_second, id_ == "hfu"
    mine = found.by_convention[found.convention]
    per_token = mine.hardware_flops_per_token if hardware else mine.flops_per_token
    inputs = {"flops_per_token": per_token, "tokens_per_s": rate, "gpus": found.gpus}
    achieved = _step(all_formulas()["achieved_flop_per_s"], inputs, "achieved")
    over = {"flop_per_s": achieved.value, "peak_flop_per_s": found.peak_flop_per_s}
    steps = (achieved,) if id_ == "achieved_flop_per_s" else (
        achieved, _step(all_formulas()["utilisation"], over, f"against {found.peak.device or found.peak.source}"),
    )  # fmt: skip
    return _explained(id_, arch.name, getattr(found, id_), steps)


def explain_train(id_: str, plan: TrainPlan, inputs: Mapping[str, float | None]) -> Why:
    """A quantity of `train`. `inputs` holds price, power and PUE of the plan."""
    seconds = plan.gpu_hours * HOUR
    rate = plan.flops / seconds if plan.mfu is None else None
    hours = {
        "flops": plan.flops,
        "peak_flop_per_s": plan.peak.flop_per_s if plan.peak else rate,
        "mfu": plan.mfu if plan.mfu is not None else 1,
    }
    table: dict[str, tuple[str, dict[str, Any]]] = {
        "gpu_hours": ("gpu_hours", hours),
        "days": ("wall_days", {"hours": plan.gpu_hours, "gpus": plan.gpus, "goodput": plan.goodput}),
        "cost_usd": ("run_cost", {"hours": plan.gpu_hours, "price": inputs["price"], "goodput": plan.goodput}),
        "energy_kwh": (
            "run_energy_kwh",
            {"hours": plan.gpu_hours, "watts": inputs["power"], "pue": inputs["pue"], "goodput": plan.goodput},
        ),
    }
    name, values = table[id_]
    value = getattr(plan, id_)
    steps = () if value is None else (_step(all_formulas()[name], values, plan.model),)
    return _explained(id_, plan.model, value, steps)


def _explained(id_: str, model: str, value: Any, steps: tuple[Step, ...]) -> Why:
    quantity = QUANTITIES[id_]
    used = {step.formula: all_formulas()[step.formula] for step in steps}
    main = all_formulas()[quantity.formula]
    return Why(
        id=id_,
        doc=quantity.doc,
        formula=main.expression,
        source=main.source,
        legend=_legend(used) or dict(main.legend),
        values=dict(steps[-1].values) if steps else {},
        value=value,
        unit=quantity.unit,
        model=model,
        steps=steps,
    )


EXPLAINERS: dict[str, Callable[..., Why]] = {"count": explain_count, "mfu": explain_mfu, "train": explain_train}
