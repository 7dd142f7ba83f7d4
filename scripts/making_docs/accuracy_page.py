"""docs/accuracy.md: what `suanli verify` finds, and what was found when the presets of serving were fitted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import suanli
from making_docs.markdown import MADE, Rows, table
from suanli.catalog.serving_presets import serving_errors
from suanli.nouns.claim import (
    ARTICLE_WRONG,
    DIFFERS,
    FLAGGED,
    HOLDS,
    QUOTED,
    REPRODUCED,
    RULE,
    UNSUPPORTED,
    ClaimResult,
    Verification,
)
from suanli.report.verify_pages import shown
from suanli.units import format_percent
from suanli.verify import POINT


@cache
def verified() -> Verification:
    """Everything that `suanli verify` compares; kept, for it is slow and several blocks show parts of it."""
    found: Verification = suanli.verify().result
    return found


def accuracy_page() -> str:
    """docs/accuracy.md."""
    found = verified()
    sources: Rows = []
    for row in found.summary:
        error = _error(row.median_error, row.section)
        mape = "" if row.mape_held_out is None else f"{row.mape_held_out:.2g}"
        if row.n and row.section != "predictions" and (row.section != "serving" or row.within is not None):
            sources.append((row.source, row.section, f"{row.n:,}", f"{row.within:,}", error, mape))
    wrong: Rows = [
        (each.source, each.statement, _figure(each.article), _figure(each.expected), each.unit, each.why)
        for each in found.claims if each.status == ARTICLE_WRONG
    ]  # fmt: skip
    open_: Rows = [
        (each.source, each.statement, each.status, each.why)
        for each in found.claims if each.status in (UNSUPPORTED, RULE, QUOTED)
    ]  # fmt: skip
    return MADE + "\n".join((
        "# Accuracy\n",
        "What `suanli verify` prints, kept here so that it can be read without running it. The sources S0, S1, S2 and "
        "S4 are articles in Chinese on compute platforms, utilisation and the cost of large models, every number of "
        "which is recomputed; the others are papers, logs and repositories, as they are named.\n",
        accuracy(),
        "\n## Step times\n\n" + STEP_TIMES + "\n",
        step_times(),
        "\n## Serving\n\nTimes, throughput and energy of served models as they were when the presets were fitted; a "
        "fold is one architecture on one GPU. [How long serving takes](serving.md) has the model.\n",
        serving_shown(),
        "\n## By source\n\n`within`: claims that hold; for runs, those within one point of the peak. `relative` is "
        "the mean of |error| over the expected figure.\n",
        table(("source", "section", "compared", "within", "median error", "relative"), sources, "--rrrr"),
        f"\n## Where an article is wrong\n\n{len(wrong)} figures or words of the articles do not come out.\n",
        table(("source", "statement", "printed", "right", "unit", "why"), wrong, "--rr"),
        "\n## Without a number to check\n",
        table(("source", "statement", "what it is", "why"), open_),
        "",
    ))  # fmt: skip


def _figure(value: float | None) -> str:
    return "" if value is None else shown(value)


def _error(value: float | None, section: str) -> str:
    """An error of a section; runs are off by points of the peak."""
    return "" if value is None else f"{value * 100:.3f} points" if section == "runs" else f"{value:.3g}"


def accuracy() -> str:
    """Agreement by section, in one table and one sentence."""
    found = verified()
    rows: Rows = []
    for what, section, chosen in SECTIONS:
        claims = [each for each in found.claims if each.section == section and each.error is not None and chosen(each)]
        close = [each for each in claims if each.status == HOLDS or abs(each.error or 0) <= POINT]
        worst = max(abs(claim.error or 0) for claim in claims)
        one_unit = len({claim.unit for claim in claims}) == 1 or not worst
        error = _error(worst, section) if one_unit else "each within its tolerance"
        agree = len([each for each in claims if not each.failed]) if section != "runs" else len(close)
        rows.append((what, f"{len(claims):,}", f"{agree:,}", error))
    note = next(row.why_not_fitted for row in found.summary if row.section == "runs")
    heading = ("what is recomputed", "numbers", "agree", "largest error")
    return table(heading, rows, "-rrr") + f"\n\nOf the runs: {note}. See [accuracy]({{docs}}accuracy.md)."


STEP_TIMES = (
    "Training steps predicted from model, layout, device and stack, beside measured ones (`suanli verify --only "
    "predictions`). A stack's few numbers are fitted to runs; *held out* is the mean |error| on the runs of a fold "
    "that was left out, *fitted* the same when nothing is. *Constant utilisation* is the simplest rule on these folds: "
    "the "
    "median utilisation of the other folds on the same GPU and dtype, FLOPs counted in the way that serves it best. "
    "What is believed before any run is seen (`nouns/profile.py`, `catalog/stack_time.toml`) was written with these "
    "sets in sight; no held-out row enters a fit."
)


def step_times() -> str:
    """The planner's error by set, fitted and held out apart."""
    found = verified()
    rows: Rows = [
        (row.source, f"{row.n:,}", row.fold, *map(_percent, (row.mape_fitted, row.mape_held_out, row.mape_constant)),
         _percent(row.coverage), _percent(row.bar))
        for row in found.summary if row.section == "predictions"
    ]  # fmt: skip
    heading = (
        "steps of", "runs", "left out together", "fitted", "held out", "constant utilisation",
        "inside the 80 % interval", "aim",
    )  # fmt: skip
    return table(heading, rows, "-r-rrrrr")


def _percent(value: float | None) -> str:
    return "" if value is None else format_percent(value, 1)


SECTIONS: tuple[tuple[str, str, Callable[[ClaimResult], bool]], ...] = (
    ("every number of four articles and of the papers behind them", "articles", lambda each: bool(each.id)),
    ("published runs that must come out (`holds`), each to its own bound", "runs", lambda claim: claim.status == HOLDS),
    ("other published runs, to one point of the peak", "runs", lambda claim: claim.status in (REPRODUCED, DIFFERS)),
    (
        "runs whose source contradicts itself or names no convention, to one point",
        "runs",
        lambda claim: claim.status == FLAGGED,
    ),
    ("parameters of known models, to the last digit", "models", lambda claim: claim.unit == "parameters"),
    ("forward FLOPs of known models, to the last digit", "models", lambda claim: claim.unit == "FLOPs"),
    ("caches, weights and waits of serving, to the digits given", "serving", lambda each: bool(each.id)),
)


def serving_shown() -> str:
    """Errors recorded when the presets were fitted."""
    rows: Rows = []
    for each in serving_errors():
        mean, middle = ((each.mean_fitted, each.mean_held_out), (each.median_fitted, each.median_held_out))
        bars = " / ".join(format_percent(bar, 0) for bar in (each.bar_fitted, each.bar_held_out) if bar is not None)
        aim = f"{each.judged} {bars}" if each.judged else ""
        rows.append(
            (each.quantity, each.source, f"{each.n:,}", *map(_percent, (*mean, *middle, each.bias_held_out)), aim)
        )
    heading = (
        "quantity",
        "points",
        "n",
        "mean fitted",
        "mean held out",
        "median fitted",
        "median held out",
        "bias",
        "aim",
    )
    return table(heading, rows, "--rrrrrr-")
