"""The section `serving` of `verify`: check values that need no data, and the error on measured points.

With points everything is fitted again, once on all and once without each fold, one architecture on one GPU. Without
them the errors that were found when the presets were fitted are told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from suanli.catalog.claims import ServingValue, serving_values
from suanli.catalog.serving_presets import serving_errors
from suanli.nouns.arch import Arch
from suanli.nouns.claim import FAILS, HOLDS, PREDICTED, ClaimResult, SourceSummary, Verification
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving_error import ServingError
from suanli.plan.serving.accuracy import ServingCheck, check_points
from suanli.plan.serving.points import Kept, keep_points, label_of, prompt_of
from suanli.plan.serving.values import our_value

SECTION = "serving"
VALUES = "check values of serving"
FOLD = "architecture and GPU"
RECORDED = "as found when the presets were fitted; --data DIR computes it again"


def verify_serving(points: Sequence[ServingPoint] | None, read: Callable[[str], Arch]) -> Verification:
    """Check values, and the errors on these points; None: the errors recorded."""
    values = tuple(_value(each, read) for each in serving_values())
    if points is None:
        errors = tuple(_summary(each, RECORDED, {}) for each in serving_errors())
        return Verification(values, (_values_summary(values), *errors))
    kept = keep_points(points, read)
    check = check_points(kept)
    claims = (*values, *_bars(check), *_points(kept, check))
    errors = tuple(_summary(each, "", kept.dropped if place == 0 else {}) for place, each in enumerate(check.errors))
    return Verification(claims, (_values_summary(values), *errors))


def _value(each: ServingValue, read: Callable[[str], Arch]) -> ClaimResult:
    got = our_value(each.what, each.inputs, read)
    error = got - each.expected
    holds = abs(error) <= each.tolerance * (1 + 1e-9)  # rounding of floats
    return ClaimResult(
        id=f"serving-{each.id}", source=VALUES, section=SECTION, statement=each.statement, expected=each.expected,
        got=got, error=error, status=HOLDS if holds else FAILS, unit=each.unit, tolerance=each.tolerance, why=each.why,
        quantity=each.what,
    )  # fmt: skip


def _values_summary(values: Sequence[ClaimResult]) -> SourceSummary:
    return SourceSummary(
        source=VALUES, section=SECTION, n=len(values), within=sum(not each.failed for each in values),
        failed=sum(each.failed for each in values), median_error=None, worst=None, worst_error=None, mape_fitted=None,
        mape_held_out=None, why_not_fitted="nothing is fitted",
    )  # fmt: skip


def _summary(each: ServingError, why: str, dropped: dict[str, int]) -> SourceSummary:
    worst = max(each.folds, key=lambda fold: fold[2], default=None)
    return SourceSummary(
        source=f"{each.quantity}: {each.source}", section=SECTION, n=each.n, within=None, failed=0, median_error=None,
        worst=None if worst is None else worst[0], worst_error=None if worst is None else worst[2],
        mape_fitted=each.mean_fitted, mape_held_out=each.mean_held_out, why_not_fitted=why, not_recomputed=dropped,
        median_fitted=each.median_fitted, median_held_out=each.median_held_out, bias_held_out=each.bias_held_out,
        judged=each.judged, bar_fitted=each.bar_fitted, bar=each.bar_held_out, fold=FOLD,
        folds={f"{name} ({rows})": error for name, rows, error in each.folds},
    )  # fmt: skip


def _bars(check: ServingCheck) -> list[ClaimResult]:
    """A claim for every bar: at most so much error."""
    found = []
    for each in check.errors:
        pairs = {
            "mean": (("fitted", each.mean_fitted, each.bar_fitted),
                     ("held out", each.mean_held_out, each.bar_held_out)),
            "median": (("fitted", each.median_fitted, each.bar_fitted),
                       ("held out", each.median_held_out, each.bar_held_out)),
        }.get(each.judged, ())  # fmt: skip
        for how, got, bar in pairs:
            if got is None or bar is None:
                continue
            found.append(ClaimResult(
                id=f"serving-bar-{each.quantity}-{how}".replace(" ", "-"), source=f"bars: {each.source}",
                section=SECTION, statement=f"{each.judged} |error| of {each.quantity}, {how}: at most", expected=bar,
                got=got, error=got - bar, status=HOLDS if got <= bar else FAILS, unit="fraction", tolerance=0.0,
                quantity=each.quantity,
            ))  # fmt: skip
    return found


def _points(kept: Kept, check: ServingCheck) -> list[ClaimResult]:
    """Every measured time of a token beside what is predicted with its fold left out."""
    found = []
    rows: Any = zip(kept.points, kept.concurrency, check.held_s, strict=True)
    for point, many, seconds in rows:
        if point.kind != "served":
            continue
        assert point.tpot_s is not None, "checked when it was kept"
        degrees = f"tp {point.layout.tp} ep {point.layout.ep}"
        found.append(ClaimResult(
            id=f"serving-row-{point.row}", source=f"{point.fold}, {label_of(point)}", section=SECTION,
            statement=f"time of a token: {point.dtype}, {degrees}, {prompt_of(point):,.0f}/{point.osl:,.0f}, "
                      f"{many:,.0f} users",
            expected=point.tpot_s, got=float(seconds), error=float(seconds) - point.tpot_s, status=PREDICTED, unit="s",
            quantity="tpot_s", why="held out",
        ))  # fmt: skip
    return found
