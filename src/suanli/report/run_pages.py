"""The reports of `mfu` and `train`."""

from __future__ import annotations

from suanli.nouns.measures import GIVEN_HOURS, Mfu, Peak, Spread, TrainPlan, Utilisation
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, plural, whole
from suanli.report.document import Document, Facts, Table
from suanli.units import (
    GIGA,
    TERA,
    format_bytes,
    format_count,
    format_flop_per_s,
    format_flops,
    format_percent,
    format_seconds,
    format_usd,
)


def percent(value: float | None, digits: int = 2) -> str:
    """A utilisation, or n/a."""
    return NOT_GIVEN if value is None else format_percent(value, digits)


def peak_words(peak: Peak) -> str:
    """`989.4 dense bf16 h100-sxm`: in TFLOP/s, as printed beside an MFU."""
    return f"{peak.flop_per_s / TERA:,.6g} dense {peak.dtype} {peak.device or 'given'}"


def mfu_headline(found: Mfu) -> str:
    """`MFU 41.6 % [causal, 989.4 dense bf16 h100-sxm] (palm 49.4 %)`."""
    other = "causal" if found.convention == "palm" else "palm"
    beside = found.by_convention.get(other)
    # N times positions says nothing of convolutional nets and pictures
    second = f" ({other} {percent(beside.mfu, 1)})" if beside and found.unit == "token" else ""
    return f"MFU {percent(found.mfu, 1)} [{found.convention}, {peak_words(found.peak)}]{second}"


def mfu_document(result: Result) -> Document:
    """The utilisation, every common convention beside it, and what it was measured from."""
    found: Mfu = result.result
    units = plural(found.unit)
    rows = [
        ("MFU", percent(found.mfu), found.reason or f"model FLOPs, convention {found.convention}"),
        ("HFU", percent(found.hfu), f"recompute {found.recompute}"),
        ("achieved", format_flop_per_s(found.achieved_flop_per_s), "model FLOPs of one GPU"),
        ("peak", format_flop_per_s(found.peak_flop_per_s), found.peak.source),
        (
            f"{units}/s",
            exact(round(found.tokens_per_second, 3)),
            "one GPU" if found.gpus == 1 else f"{found.gpus:,} GPUs together",
        ),
        (f"{units}/s a GPU", exact(round(found.tokens_per_second_per_gpu, 3)), ""),
    ]
    if found.memory_utilisation is not None and found.memory_bytes:
        rows.append(("memory", percent(found.memory_utilisation), f"of {format_bytes(found.memory_bytes)}"))
    return Document(mfu_headline(found), (Facts("Utilisation", tuple(rows)), _conventions(found), *closing(result)))


def _conventions(found: Mfu) -> Table:
    rows = tuple(_convention_row(name, view) for name, view in found.by_convention.items())
    columns = ("convention", f"GFLOP/{found.unit}", "MFU", "HFU")
    return Table("The same run under each convention", columns, rows)


def _convention_row(name: str, view: Utilisation) -> tuple[str, str, str, str]:
    return name, f"{view.flops_per_token / GIGA:,.3f}", percent(view.mfu), percent(view.hfu)


def train_document(result: Result) -> Document:
    """FLOPs, time, money and energy."""
    plan: TrainPlan = result.result
    days = "" if plan.days is None else f": {plan.days:,.2f} days"
    gpus = "" if plan.gpus is None else f" on {plan.gpus:,} GPU{'s' if plan.gpus > 1 else ''}"
    headline = f"{plan.model} on {format_count(plan.tokens)} tokens{gpus}{days}"
    blocks = (_work(plan), _time(plan), _bill(plan), _sure(plan), _programme(plan))
    return Document(headline, (*blocks, *closing(result)))


def _work(plan: TrainPlan) -> Facts:
    rows = [
        ("model FLOPs", format_flops(plan.flops, 5), f"{plan.flops:.5e}"),
        ("hardware FLOPs", format_flops(plan.hardware_flops, 5), f"{plan.hardware_flops:.5e}"),
        ("6N·tokens", format_flops(plan.ideal["6n"], 5), f"{plan.ideal['6n']:.5e}, N = {plan.params:,}"),
        ("8N·tokens", format_flops(plan.ideal["8n"], 5), f"{plan.ideal['8n']:.5e}, full recompute"),
    ]
    return Facts("Work", tuple(rows))


def _time(plan: TrainPlan) -> Facts:
    reasons = plan.reasons
    rows = [
        ("MFU", percent(plan.mfu), reasons.get("mfu", _origin(plan))),
        ("HFU", percent(plan.hfu), reasons.get("hfu", f"of {peak_words(plan.peak)}" if plan.peak else "")),
        ("GPU-hours", whole(plan.gpu_hours), "productive"),
        ("GPU-days", whole(plan.gpu_days), "productive"),
        ("goodput", format_percent(plan.goodput), "useful part of wall time"),
        ("GPU-hours paid", whole(plan.gpu_hours_paid), _paid(plan)),
        ("GPUs", NOT_GIVEN if plan.gpus is None else exact(plan.gpus), ""),
        ("days", NOT_GIVEN if plan.days is None else f"{plan.days:,.2f}", reasons.get("days", "wall time")),
        ("goodput × MFU", percent(plan.useful_mfu), "of all hours paid"),
        ("tokens/s a GPU", f"{plan.tokens_per_second_per_gpu:,.1f}", "while running"),
    ]
    return Facts("Time", tuple(rows))


def _paid(plan: TrainPlan) -> str:
    return "as given" if plan.reasons.get("gpu_hours_paid_interval") == GIVEN_HOURS else "productive / goodput"


def _sure(plan: TrainPlan) -> Facts:
    """The 90 % intervals, and what they are made of."""
    hours, days, cost = plan.gpu_hours_paid_interval, plan.days_interval, plan.cost_interval_usd
    rows = []
    if hours is not None:
        rows.append(("GPU-hours paid", f"{whole(hours[0])} to {whole(hours[1])}", "of MFU and goodput together"))
    if days is not None:
        rows.append(("days", f"{days[0]:,.2f} to {days[1]:,.2f}", ""))
    if cost is not None:
        rows.append(("cost", f"{format_usd(cost[0])} to {format_usd(cost[1])}", "the price taken as exact"))
    reason = plan.reasons.get("gpu_hours_paid_interval")
    if reason is not None and reason != GIVEN_HOURS:
        rows.append(("GPU-hours paid", NOT_GIVEN, reason))
    elif rows:
        rows += [(each.name.replace("mtti_s", "MTTI").replace("mfu", "MFU"), _ends(each), each.why)
                 for each in plan.spreads]  # fmt: skip
    return Facts("How sure, 90 %", tuple(rows), right=False)


def _ends(each: Spread) -> str:
    if each.low is None or each.high is None:
        return "exact"
    write = format_seconds if each.name == "mtti_s" else percent
    return f"{write(each.low)} to {write(each.high)}"


def _programme(plan: TrainPlan) -> Table:
    """Where the hours are given: what they make under each convention."""
    given = plan.reasons.get("gpu_hours_paid_interval") == GIVEN_HOURS
    found = plan.useful_mfu_by_convention if given else {}
    rows = tuple((name, percent(value)) for name, value in found.items())
    return Table("Whole-programme utilisation under each convention", ("convention", "of all hours paid"), rows)


def _origin(plan: TrainPlan) -> str:
    """Where the utilisation comes from: predicted with its interval, taken from other runs, or given."""
    if plan.mfu_interval is not None:
        low, high = plan.mfu_interval
        return f"predicted, {percent(low, 1)} to {percent(high, 1)}, see Notes"
    if plan.reasons.get("gpu_hours_paid_interval") == GIVEN_HOURS:
        return "told by the GPU-hours"
    return "assumed, see Notes" if any(each.name == "MFU" for each in plan.assumed) else "as given"


def _bill(plan: TrainPlan) -> Facts:
    reasons = plan.reasons
    energy = NOT_GIVEN if plan.energy_kwh is None else f"{whole(plan.energy_kwh)} kWh"
    carbon = NOT_GIVEN if plan.co2_kg is None else f"{whole(plan.co2_kg)} kg"
    rows = (
        ("cost", NOT_GIVEN if plan.cost_usd is None else format_usd(plan.cost_usd), reasons.get("cost_usd", "")),
        ("energy", energy, reasons.get("energy_kwh", "")),
        ("CO₂", carbon, reasons.get("co2_kg", "")),
    )
    return Facts("Bill", rows)
