"""The section `predictions` of `verify`: every set of published steps as claims and one summary row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import fmean
from typing import Any

from suanli.nouns.claim import PREDICTED, ClaimResult, SourceSummary, Verification
from suanli.plan.predictions import SETS, Judged, PredictionSet, judge

SECTION = "predictions"
_WHY = "the same rows fitted with everything, which is no prediction"


@cache
def _of_all() -> Verification:
    return verify_sets(SETS)


def verify_predictions(sets: Sequence[PredictionSet] | None = None) -> Verification:
    """Predicted step times beside measured ones, held out by fold; all sets where none is given (kept, being slow)."""
    return _of_all() if sets is None else verify_sets(sets)


def verify_sets(sets: Sequence[PredictionSet]) -> Verification:
    """The same, computed."""
    judged = [judge(each) for each in sets]
    claims = tuple(claim for found in judged for claim in _claims(found))
    return Verification(claims, tuple(_summary(found) for found in judged))


def _claims(found: Judged) -> tuple[ClaimResult, ...]:
    rows = zip(found.runs, found.held_out_s, found.fitted_s, found.half_width, strict=True)
    return tuple(
        ClaimResult(
            id=run.id, source=found.name, section=SECTION, expected=run.step_s, got=float(held), unit="s",
            statement=f"{run.model} on {run.gpus:,} × {run.device} {run.dtype}, {run.layouts[0].short}",
            error=float(held) - run.step_s, status=PREDICTED, quantity="step_time",
            why=f"{float(fitted):.4g} s when fitted with it; 80 % interval of ±{float(wide):.1%}",
        )
        for run, held, fitted, wide in rows
    )  # fmt: skip


def _summary(found: Judged) -> SourceSummary:
    import numpy as np  # noqa: PLC0415

    held = np.abs(found.errors(found.held_out_s))
    worst = int(held.argmax())
    keys = np.array([found.set.key(run) for run in found.runs])
    regrets = found.regrets.values()
    return SourceSummary(
        source=found.name, section=SECTION, n=len(held), within=None, failed=0, median_error=None,
        worst=found.runs[worst].id, worst_error=float(found.errors(found.held_out_s)[worst]),
        mape_fitted=_mean(found, found.fitted_s), mape_held_out=float(held.mean()), why_not_fitted=_WHY,
        median_held_out=float(np.median(held)), mape_constant=_mean(found, found.constant_s),
        coverage=float(found.covered.mean()), bar=found.set.bar, fold=found.set.fold,
        regret=fmean(regrets) if regrets else None, worst_regret=max(regrets, default=None),
        folds={str(key): float(held[keys == key].mean()) for key in sorted(set(keys))},
    )  # fmt: skip


def _mean(found: Judged, predicted: Any) -> float:
    import numpy as np  # noqa: PLC0415

    return float(np.abs(found.errors(predicted)).mean())
