"""`scale`: linear speed-up between sizes in its equivalent forms, the law behind it, and what more GPUs would give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from suanli.formulas import articles
from suanli.nouns.scaling import (
    METRICS,
    MIXED,
    STRONG,
    UNKNOWN,
    WEAK,
    CurvePoint,
    Figure,
    Fit,
    Form,
    Pair,
    PlannedSize,
    Planner,
    Projected,
    Scaling,
    Series,
    Size,
    SizeRow,
)
from suanli.plan import laws
from suanli.units import format_percent

SLACK = 1e-9
TOO_FEW = "a law needs three sizes or more"
FIXED_BATCH = (
    "a fixed global batch leaves each GPU less work: fewer micro-batches to fill a pipeline, less to hide "
    "communication behind; a larger batch, if the model bears it, restores it"
)
STRANGE = 10  # a factor between two sizes that is more likely a unit than scaling
WIDTH = 1.645  # of the unit of error, where no published series say otherwise


def kind_of(series: Series) -> str:
    """Strong where the global batch stays, weak where it grows with the GPUs, mixed where neither; unknown without."""
    batches = [size.global_batch for size in series.sizes]
    if any(batch is None for batch in batches):
        return UNKNOWN
    if len(set(batches)) == 1:
        return STRONG
    each = {(batch or 0) / size.gpus for batch, size in zip(batches, series.sizes, strict=True)}
    return WEAK if max(each) <= min(each) * (1 + SLACK) else MIXED


def rate_of(size: Size, name: str, *, per_batch: bool) -> float:
    """What one GPU gets done, in a unit of its own: rates compare, times do not. A step does its global batch."""
    value, form = size.figures[name].value, METRICS[name].form
    if form == "time":
        work = size.global_batch if per_batch and name == "step_time_s" and size.global_batch else 1
        return work / (value * size.gpus)
    return value / size.gpus if form == "throughput" else value


def _usable(planner: Planner, name: str) -> Planner:
    """The planner, with the reason where what is compared is nothing it knows."""
    if name == "minutes" and planner.reason is None:
        return replace(planner, reason="times to train mix convergence in, which no step tells: --metric step_time_s")
    return planner


def planned_rates(planner: Planner, name: str, *, per_batch: bool) -> laws.Planned | None:
    """What one GPU gets done by the planner, in the unit of `rate_of`; None where it cannot be used. A figure of FLOPs
    is held against the planned MFU, to which it is proportional.
    """
    if planner.reason is not None:
        return None
    return {each.gpus: rate_of(_as_size(each, name), name, per_batch=per_batch) for each in planner.sizes}


def _as_size(each: PlannedSize, name: str) -> Size:
    whole = each.tokens_per_second_per_gpu * each.gpus
    known = {
        "step_time_s": each.step_time_s, "tokens_per_s": whole, "samples_per_s": each.global_batch / each.step_time_s,
        "tokens_per_s_per_gpu": each.tokens_per_second_per_gpu,
    }  # fmt: skip
    value = known.get(name, each.mfu)
    return Size(gpus=each.gpus, figures={name: Figure(value=value)}, global_batch=each.global_batch)


def compare(before: Size, after: Size, kind: str) -> tuple[Form, ...]:
    """The linear speed-up ratio by every figure that both sizes have, with what the last digits allow."""
    weak_steps = kind in (WEAK, MIXED)
    found = []
    for name in METRICS:
        if name in before.figures and name in after.figures:
            ends = [
                _ratio(name, b, a, before, after, weak_steps)
                for b in (before.figures[name].value, *before.figures[name].ends)
                for a in (after.figures[name].value, *after.figures[name].ends)
            ]
            found.append(Form(by=name, ratio=ends[0], low=min(ends), high=max(ends)))
    return tuple(found)


def _ratio(name: str, b: float, a: float, before: Size, after: Size, by_batch: bool) -> float:
    form = METRICS[name].form
    if form == "rate":
        return articles.linear_ratio_by_mfu(b, a)  # of any figure of one GPU
    if form == "throughput":
        return articles.linear_ratio_by_rate(b, a, before.gpus, after.gpus)
    ratio = articles.linear_ratio_by_time(b, a, before.gpus, after.gpus)
    grown = by_batch and name == "step_time_s" and before.global_batch and after.global_batch
    return ratio * after.global_batch / before.global_batch if grown else ratio  # type: ignore[operator]


def pair_of(before: Size, after: Size, kind: str, by: str) -> Pair:
    """Two sizes compared by each figure. Times to train are not asked to agree: convergence is in them."""
    forms = compare(before, after, kind)
    alike = [form for form in forms if form.by != "minutes"]
    agree = None if len(alike) < 2 else max(f.low for f in alike) <= min(f.high for f in alike) * (1 + SLACK)
    ratio = next(form.ratio for form in forms if form.by == by)
    return Pair(from_=before.gpus, to=after.gpus, ratio=ratio, by=by, forms=forms, agree=agree)


def analyse(
    series: Series, *, by: str | None, project: Sequence[int] = (), slope: float, width: float = WIDTH,
    planner: Planner | None = None,
) -> Scaling:  # fmt: skip
    """A series taken apart. `slope` is the usual change per doubling, `width` the usual error in units of its own;
    `planner` what the planner of layouts says of the same sizes and of those projected to.
    """
    kind = kind_of(series)
    name = by or _most_exact(series, kind)
    points = [(size.gpus, rate_of(size, name, per_batch=kind in (WEAK, MIXED))) for size in series.sizes]
    pairs = [pair_of(before, after, kind, name) for before, after in pairwise(series.sizes)]
    if len(series.sizes) > 2:
        pairs.append(pair_of(series.sizes[0], series.sizes[-1], kind, name))
    planner = None if planner is None else _usable(planner, name)
    planned = None if planner is None else planned_rates(planner, name, per_batch=kind in (WEAK, MIXED))
    fits = _fits(points, slope, planned) if len(points) > 2 else ()
    reasons = {} if fits else {"fit": TOO_FEW}
    if planner is not None and planner.reason is not None:
        reasons["planner"] = planner.reason
    return Scaling(
        series=series.name, kind=kind, by=name, sizes=tuple(_rows(series, points, name)), pairs=tuple(pairs), fits=fits,
        fit=fits[0] if fits else None,
        projection=tuple(_projected(points, gpus, slope, width, planned) for gpus in project),
        curve=_curve(points, fits, project, slope, planned), planner=planner,
        warnings=tuple(_warnings(series, pairs, kind, name)), advice=tuple(_advice(points, kind, fits)),
        reasons=reasons,
    )  # fmt: skip


def _most_exact(series: Series, kind: str) -> str:
    """The figure with the finest last digit: no time to train where there is another, no times of unknown work."""
    last = ("minutes", "step_time_s") if kind == UNKNOWN else ("minutes",)
    return min(
        series.shared,
        key=lambda name: (name in last, max(s.figures[name].half_digit / s.figures[name].value for s in series.sizes)),
    )


def _rows(series: Series, points: Sequence[laws.Point], name: str) -> Iterator[SizeRow]:
    first = points[0]
    for size, (gpus, rate) in zip(series.sizes, points, strict=True):
        ratio = rate / first[1]
        yield SizeRow(gpus=gpus, value=size.figures[name].value, ratio=ratio, speedup=ratio * gpus / first[0],
                      global_batch=size.global_batch)  # fmt: skip


def _fits(points: Sequence[laws.Point], slope: float, planned: laws.Planned | None) -> tuple[Fit, ...]:
    chosen, errors = laws.choose(points, slope, planned)
    found = [
        laws.as_fit(
            laws.fit_law(law, points, slope, planned), points, slope, error, chosen=law == chosen, planned=planned
        )
        for law, error in errors.items()
    ]
    return tuple(sorted(found, key=lambda fit: not fit.chosen))


CURVE = 24  # points of the chosen law, for a chart


def _curve(
    points: Sequence[laws.Point], fits: Sequence[Fit], more: Sequence[int], slope: float, planned: laws.Planned | None
) -> tuple[CurvePoint, ...]:
    """The chosen law between the smallest and the largest size; the planner's where it was asked."""
    if not fits:
        return ()
    law, (first, rate) = fits[0].law, points[0]
    last = max((points[-1][0], *more))
    even = {round(first * (last / first) ** (place / CURVE)) for place in range(CURVE + 1)}
    sizes = sorted(planned if law == laws.PLANNER and planned is not None else even)
    fitted = laws.fit_law(law, points, slope, planned)
    return tuple(CurvePoint(gpus=n, speedup=fitted.rate(n) / rate * n / first) for n in sizes)


def project(
    points: Sequence[laws.Point], gpus: int, slope: float, planned: laws.Planned | None = None
) -> tuple[float, float]:
    """Rate of one GPU at a size by the chosen law, and the unit of its log error."""
    law, _ = laws.choose(points, slope, planned)
    return laws.fit_law(law, points, slope, planned).rate(gpus), laws.unit_of_error(points, gpus, slope)


def _projected(
    points: Sequence[laws.Point], gpus: int, slope: float, width: float, planned: laws.Planned | None
) -> Projected:
    rate, unit = project(points, gpus, slope, planned)
    ratio, apart = rate / points[0][1], math.exp(width * unit)
    return Projected(gpus=gpus, ratio=ratio, low=ratio / apart, high=ratio * apart, speedup=ratio * gpus / points[0][0])


# --- what to know of it -------------------------------------------------------------------------------------------


def _warnings(series: Series, pairs: Sequence[Pair], kind: str, by: str) -> Iterator[str]:
    if by == "minutes" or "minutes" in series.shared:
        yield "times to train mix convergence in: a larger batch takes more samples, so they tell more than speed-up"
    if kind == MIXED:
        yield "the global batch changes from size to size: forms by time hold only where the work of a step is the same"
    if kind == WEAK:
        yield "weak scaling: each GPU keeps its work, so ratios are per sample; strong scaling loses more"
    if kind == UNKNOWN and any(METRICS[name].form == "time" for name in series.shared):
        yield "the global batch is not known: times are compared as if a step did the same work at every size"
    for name in dict.fromkeys(name for size in series.sizes for name in size.words):
        values = list(dict.fromkeys(size.words.get(name, "not said") for size in series.sizes))
        if len(values) > 1:
            yield f"{name} differs ({', '.join(values[:4])}): the ratio compares those too"
    for pair in pairs:
        if not 1 / STRANGE < pair.ratio < STRANGE:
            yield (
                f"{pair.from_:,} → {pair.to:,} GPUs: the rate of one GPU changes by a factor of "
                f"{max(pair.ratio, 1 / pair.ratio):,.3g}: is a figure in another unit?"
            )
        if pair.agree is False:
            yield _apart(pair)


def _apart(pair: Pair) -> str:
    alike = [form for form in pair.forms if form.by != "minutes"]
    low, high = min(alike, key=lambda form: form.ratio), max(alike, key=lambda form: form.ratio)
    return (
        f"{pair.from_:,} → {pair.to:,} GPUs: {low.by} says {format_percent(low.ratio, 4)}, {high.by} "
        f"{format_percent(high.ratio, 4)}, further apart than their last digits allow: not the same work, or a mistake"
    )


def _advice(points: Sequence[laws.Point], kind: str, fits: Sequence[Fit]) -> Iterator[str]:
    first, last = points[0], points[-1]
    ratio = last[1] / first[1]
    worst = min(pairwise(points), key=_per_doubling)
    drop = 1 - math.exp(_per_doubling(worst))
    if ratio >= 0.95:
        yield f"{format_percent(ratio)} of linear from {first[0]:,} to {last[0]:,} GPUs: little is lost so far"
    elif drop > 0:
        yield f"most is lost from {worst[0][0]:,} to {worst[1][0]:,} GPUs: {format_percent(drop)} for each doubling"
    if kind == STRONG and ratio < 0.95:
        yield FIXED_BATCH
    peak = next((fit.peak_gpus for fit in fits if fit.chosen and fit.peak_gpus), None)
    if peak is not None:
        yield f"by the fitted law more than {peak:,.0f} GPUs make the whole slower"


def _per_doubling(pair: tuple[laws.Point, laws.Point]) -> float:
    before, after = pair
    return math.log(after[1] / before[1]) / math.log2(after[0] / before[0])
