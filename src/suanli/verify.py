"""`verify`: published numbers got again, and by how much we miss them.

Sections: `articles` (every number of four articles and the papers behind them), `runs` (utilisation of published
training runs), `models` (parameters and forward FLOPs of known models): nothing in these is fitted. `predictions`
(step times of published runs) is fitted, and judged on runs left out of the fit; `scaling` projects the largest size of
published series from the smaller ones; `serving` has check values, and times, throughput and energy on measured points.
`traces` (figures of public traces) needs the files, and is asked for by name alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from suanli.catalog.claims import RunGroup, article_claims, counted_names, expected_counts, run_groups
from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.devices import find_device
from suanli.catalog.presets import Preset, find_preset, presets
from suanli.catalog.runs import published_runs
from suanli.count import build_ledger
from suanli.errors import unknown_name
from suanli.formulas import all_formulas
from suanli.nouns.arch import Arch
from suanli.nouns.claim import (
    ARTICLE_WRONG,
    DIFFERS,
    FAILS,
    FLAGGED,
    HOLDS,
    NOT_COUNTED,
    QUOTED,
    REPRODUCED,
    RULE,
    UNSUPPORTED,
    Claim,
    ClaimResult,
    SourceSummary,
    Verification,
)
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.run import PublishedRun
from suanli.nouns.workload import Workload
from suanli.readers.layer_expr import read_layer_expression
from suanli.readers.preset import read_named_preset, read_preset
from suanli.recount import PERCENT, RULES, Recount, recount

POINT = 0.01  # one point of the peak
SLACK = 1e-9  # rounding of floats, relative, on top of a claim's tolerance
NOTHING_FITTED = "nothing is fitted"
CHOSEN = (
    "no number is fitted; but outside the groups of claims a row's convention is the one found nearest to the printed "
    "figure, so agreement there says that some convention fits, not that the source used it"
)
_UNCHECKED = {"unsupported": UNSUPPORTED, "rule": RULE, "quoted": QUOTED}


def verify(only: Sequence[str] | None = None) -> Verification:
    """Check the sections asked for (all where none is). Raises UnknownNameError for a section nobody knows.

    Of what needs outside data (`verify_samples`) nothing is checked here.
    """
    names = tuple(SECTIONS) if only is None else tuple(only)
    for name in names:
        if name not in (*SECTIONS, TRACES):
            every = (*SECTIONS, TRACES)
            raise unknown_name("section", name, every, where="--only", hint="Sections: " + ", ".join(every))
    parts = [SECTIONS[name]() for name in dict.fromkeys(names) if name != TRACES]
    return Verification(
        tuple(claim for part in parts for claim in part.claims), tuple(row for part in parts for row in part.summary)
    )


def summarise(claims: Iterable[ClaimResult], within: float | None = None) -> tuple[SourceSummary, ...]:
    """Agreement by source, in order of first appearance; `within` counts errors no larger, else claims that hold."""
    groups: dict[tuple[str, str], list[ClaimResult]] = {}
    for claim in claims:
        groups.setdefault((claim.section, claim.source), []).append(claim)
    return tuple(_summary(section, source, found, within) for (section, source), found in groups.items())


def _summary(section: str, source: str, claims: list[ClaimResult], within: float | None) -> SourceSummary:
    compared = [claim for claim in claims if claim.error is not None]
    one_unit = len({claim.unit for claim in compared}) == 1
    errors = [abs(claim.error or 0.0) for claim in compared]
    relative = [_relative(claim) for claim in compared if claim.expected]
    worst = max(compared, key=lambda claim: abs(claim.error or 0.0) if one_unit else _relative(claim), default=None)
    close = sum(error <= within for error in errors) if within is not None else sum(not c.failed for c in compared)
    return SourceSummary(
        source=source, section=section, n=len(compared), within=close, failed=sum(claim.failed for claim in claims),
        median_error=median(errors) if one_unit else None, worst=worst.id if worst else None,
        worst_error=worst.error if worst else None, mape_fitted=None,
        mape_held_out=fmean(relative) if relative else None,
        why_not_fitted=CHOSEN if section == "runs" else NOTHING_FITTED,
    )  # fmt: skip


def _relative(claim: ClaimResult) -> float:
    """|got − expected| over expected; 0 where nothing is expected."""
    return abs(claim.error or 0.0) / abs(claim.expected) if claim.expected else 0.0


# --- articles -----------------------------------------------------------------------------------------------------


def verify_articles(claims: Sequence[Claim] | None = None) -> Verification:
    """Every number of the articles (or the claims given)."""
    results = tuple(check_claim(claim) for claim in (article_claims() if claims is None else claims))
    return Verification(results, summarise(results))


def check_claim(claim: Claim) -> ClaimResult:
    """One claim checked: it holds, it fails, or the article is wrong."""
    got = _figure(claim) if claim.quantity else None
    error = None if got is None or claim.expected is None else got - claim.expected
    return ClaimResult(
        id=claim.id, source=claim.source, section=claim.section, statement=claim.statement, expected=claim.expected,
        got=got, error=error, status=_status(claim, got), article=claim.article, why=claim.why, unit=claim.unit,
        tolerance=claim.tolerance, quantity=claim.quantity,
    )  # fmt: skip


def claim_inputs(claim_id: str) -> dict[str, Any]:
    """The numbers an article's claim starts from, nested quantities worked out. Raises KeyError for no such claim."""
    claim = {each.id: each for each in article_claims()}[claim_id]
    found: dict[str, Any] = {key: _evaluated(value) for key, value in claim.inputs.items()}
    return found


def _status(claim: Claim, got: float | None) -> str:
    if claim.verdict in _UNCHECKED:
        return _UNCHECKED[claim.verdict]
    if got is None:  # a mistake of wording, no number to recompute
        return ARTICLE_WRONG if claim.verdict == "wrong" else FAILS
    if claim.expected is None or not _near(got, claim.expected, claim.tolerance):
        return FAILS
    agrees = claim.article is None or _near(got, claim.article, claim.article_tolerance)
    if claim.verdict == "wrong":
        return FAILS if claim.article is None or agrees else ARTICLE_WRONG
    return HOLDS if agrees else FAILS


def _near(got: float, wanted: float, tolerance: float) -> bool:
    return abs(got - wanted) <= tolerance * (1 + SLACK)


def _figure(claim: Claim) -> float:
    """The claim's number by its formula."""
    value = _evaluated({"quantity": claim.quantity, **claim.inputs})
    number = value[claim.key] if claim.key else value
    assert isinstance(number, int | float), f"claim {claim.id}: not a number: {number!r}"
    return number


def _evaluated(value: Any) -> Any:
    """Inputs of a formula: nested quantities, devices' peaks, presets' fields and counted models become numbers."""
    if isinstance(value, list):
        return [_evaluated(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "quantity" in value:
        inputs = {key: _evaluated(item) for key, item in value.items() if key != "quantity"}
        return all_formulas()[value["quantity"]].function(**inputs)
    if "device" in value:
        return find_device(value["device"]).peak_flop_per_s(value["dtype"])
    if "preset" in value:
        return find_preset(value["preset"]).config[value["field"]]
    return forward_flops(read_preset(find_preset(value["model"])), 1, "full")


# --- models -------------------------------------------------------------------------------------------------------


def forward_flops(arch: Arch, seq: int, convention: str, *, scans: bool = True) -> int:
    """Forward FLOPs of one sequence (or image), with or without those of scans."""
    ledger = build_ledger(arch, Workload(seq=seq), CONVENTIONS[convention])
    return ledger.model_flops - (0 if scans else ledger.scan_flops)


def verify_models() -> Verification:
    """Parameters of every preset whose class was counted, and forward FLOPs of the models of `expected_counts`."""
    results = (*_preset_params(), *_expected_flops())
    return Verification(results, summarise(results))


def _exact(**parts: Any) -> ClaimResult:
    """A count that must agree to the last digit."""
    expected, got = parts["expected"], parts["got"]
    status = HOLDS if got == expected else FAILS
    return ClaimResult(section="models", error=got - expected, status=status, tolerance=0, **parts)


def _preset_params() -> tuple[ClaimResult, ...]:
    return tuple(
        _exact(
            id=f"params-{preset.name}", source=_params_source(preset), statement=f"parameters of {preset.title}",
            expected=preset.params, got=read_preset(preset).params_total, unit="parameters",
        )
        for preset in presets().values()
        if preset.params is not None
    )  # fmt: skip


def _params_source(preset: Preset) -> str:
    """Counts of classes prove something; closed-form counts of papers' shapes only that nothing moved."""
    if preset.format in ("hf", "diffusers", "expression"):
        return "parameters of PyTorch classes"
    return "closed-form parameters of papers' shapes"


def _expected_flops() -> tuple[ClaimResult, ...]:
    columns = {"full": "fwd_flops_full_attention", "causal": "fwd_flops_causal_or_windowed"}
    names, found = counted_names(), []
    for row in expected_counts():
        meaning = names.get(row["model"], {"preset": row["model"]})
        for convention, column in columns.items():
            if row[column]:
                found.append(_expected_one(row, meaning, convention, int(row[column])))
        if "skip" not in meaning:
            found.append(_expected_params(row, meaning))
    return tuple(found)


def _expected_one(row: Mapping[str, str], meaning: Mapping[str, str], convention: str, flops: int) -> ClaimResult:
    seq = int(row["seq"] or 1)
    parts = {
        "id": f"flops-{row['model']}-{row['seq'] or 'image'}-{convention}", "source": "forward FLOPs",
        "statement": f"forward FLOPs of {row['model']}, {row['seq'] or 'one image'}, convention {convention}",
        "expected": flops, "unit": "FLOPs", "convention": convention,
    }  # fmt: skip
    if "skip" in meaning:
        why = f"not counted yet: {meaning['skip']}"
        return ClaimResult(section="models", got=None, error=None, status=NOT_COUNTED, why=why, **parts)  # type: ignore[arg-type]
    scans = meaning.get("scans") != "left out"
    return _exact(got=forward_flops(_meant(meaning), seq, convention, scans=scans), **parts)


def _expected_params(row: Mapping[str, str], meaning: Mapping[str, str]) -> ClaimResult:
    return _exact(
        id=f"params-at-{row['model']}-{row['seq'] or 'image'}", source="parameters of counted models",
        statement=f"parameters of {row['model']}", expected=int(row["params"]), got=_meant(meaning).params_total,
        unit="parameters",
    )  # fmt: skip


def _meant(meaning: Mapping[str, str]) -> Arch:
    if "expression" in meaning:
        return read_layer_expression(meaning["expression"])
    return read_preset(find_preset(meaning["preset"]))


# --- runs ---------------------------------------------------------------------------------------------------------


def verify_runs(runs: Sequence[PublishedRun] | None = None, groups: Sequence[RunGroup] | None = None) -> Verification:
    """Utilisation of the published runs; rows in a group that must come out hold or fail, others are shown."""
    groups = run_groups() if groups is None else groups
    results, left_out = [], Counter[tuple[str, str]]()
    for run in published_runs() if runs is None else runs:
        group = next((group for group in groups if group.holds(run)), None)
        result = _run_result(run, group)
        if result.got is None and not result.failed:
            left_out[run.group, result.why] += 1
        else:
            results.append(result)
    return Verification(tuple(results), _run_summary(results, left_out))


def _run_result(run: PublishedRun, group: RunGroup | None) -> ClaimResult:
    printed = run.published_pct_compared
    if printed is None:
        found = Recount(None, "", f"no utilisation printed ({run.check_status})")
    else:
        found = recount(run, RULES[group.rule] if group else None)
    expected = None if printed is None else printed * PERCENT
    if printed is None:
        group = None  # nothing to come out
    error = None if found.got is None or expected is None else found.got - expected
    return ClaimResult(
        id=run.id, source=run.group, section="runs", statement=f"{run.model} on {run.gpu_count} × {run.gpu}",
        expected=expected, got=found.got, error=error, status=_run_status(run, group, error), unit="fraction",
        why=_run_why(run, group, found), quantity="utilisation", convention=found.rule,
        tolerance=None if group is None else max(-group.low, group.high) * POINT,
    )  # fmt: skip


def _run_status(run: PublishedRun, group: RunGroup | None, error: float | None) -> str:
    if group is not None:
        return HOLDS if error is not None and group.low * POINT <= error <= group.high * POINT else FAILS
    if run.flag:
        return FLAGGED
    return REPRODUCED if error is not None and abs(error) <= POINT else DIFFERS


def _run_why(run: PublishedRun, group: RunGroup | None, found: Recount) -> str:
    return found.why or (group.why if group else "") or run.flag_reason or ""


def _run_summary(results: list[ClaimResult], left_out: Counter[tuple[str, str]]) -> tuple[SourceSummary, ...]:
    """Agreement by source with the rows that could not be recomputed counted by reason; and all sources together."""
    rows = {row.source: row for row in summarise(results, POINT)}
    for source, _ in left_out:
        rows.setdefault(source, _summary("runs", source, [], POINT))
    every = _summary("runs", "all", results, POINT)
    found = [replace(row, not_recomputed=_reasons(left_out, source)) for source, row in rows.items()]
    return (*found, replace(every, not_recomputed=_reasons(left_out, None)))


def _reasons(left_out: Counter[tuple[str, str]], source: str | None) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for (group, why), count in left_out.items():
        if source in (None, group):
            reasons[why] += count
    return dict(reasons)


def verify_step_times() -> Verification:
    """Predicted step times; the planner is loaded for it only."""
    from suanli.plan.verdicts import verify_predictions  # noqa: PLC0415

    return verify_predictions()


def verify_projections() -> Verification:
    """Largest sizes of published scaling series, projected from their smaller ones."""
    from suanli.plan.scale_verdict import verify_scaling  # noqa: PLC0415

    return verify_scaling()


def verify_served(points: Sequence[ServingPoint] | None = None) -> Verification:
    """Check values of serving, and errors on measured points; None: the errors recorded when presets were fitted."""
    from suanli.plan.serving.verdict import verify_serving  # noqa: PLC0415

    return verify_serving(points, cache(read_named_preset))


def verify_samples(data: Path, progress: Callable[[int, int, str], None] | None) -> Verification:
    """Figures of the public traces in a folder; the readers are loaded for it only."""
    from suanli.explain.verdicts import verify_traces  # noqa: PLC0415

    return verify_traces(data, progress)


TRACES = "traces"
SECTIONS: dict[str, Callable[[], Verification]] = {
    "articles": verify_articles,
    "runs": verify_runs,
    "models": verify_models,
    "predictions": verify_step_times,
    "scaling": verify_projections,
    "serving": verify_served,
}
