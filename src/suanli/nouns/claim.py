"""A published number, what we get for it, and the summary over many: the nouns of `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.coverage import WRONG, Covered, MappingSummary

VERDICTS = ("ok", "wrong", "unsupported", "rule", "quoted")

# What a claim can come out as. The first two are what `verify` is for; only `fails` makes it exit with 1.
HOLDS, FAILS = "holds", "fails"
ARTICLE_WRONG = "article wrong"  # we get the expected figure, and the article prints another
UNSUPPORTED = "unsupported"  # printed without any source behind it
RULE = "rule of thumb"
QUOTED = "quoted"  # printed with a source, whose inputs are not published
REPRODUCED, DIFFERS = "reproduced", "differs"  # published runs that no claim of ours hangs on
FLAGGED = "flagged"  # a row known to contradict itself or the common conventions
NOT_COUNTED = "not counted yet"
PREDICTED = "predicted"  # a step time or rate got without the run, beside the one measured


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A number somebody published, and how to get it again.

    `quantity` is the id of a registered formula, "" for a statement that has no number to recompute. `key` picks
    one number where the formula gives several.
    """

    id: str
    source: str
    section: str
    statement: str
    quantity: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    key: str = ""
    expected: float | None = None
    tolerance: float = field(default=0, metadata={"doc": "largest |got − expected| that still agrees, absolute"})
    article: float | None = field(default=None, metadata={"doc": "the figure the article prints"})
    article_tolerance: float = field(default=0, metadata={"doc": "half a unit of the article's last digit"})
    verdict: str = field(default="ok", metadata={"doc": ", ".join(VERDICTS)})
    why: str = ""
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim after the check. `error` is got − expected in the claim's unit; fractions are 0..1."""

    id: str
    source: str
    section: str
    statement: str
    expected: float | None
    got: float | None
    error: float | None
    status: str
    article: float | None = None
    why: str = ""
    unit: str = ""
    tolerance: float | None = None
    quantity: str = ""
    convention: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the claim should hold and does not."""
        return self.status == FAILS


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """Agreement with one source. Errors are in the unit of its claims (fractions of peak for runs).

    Where claims are in several units there is no median, and the worst is the one with the largest relative error.
    """

    source: str
    section: str
    n: int = field(metadata={"doc": "numbers recomputed and compared"})
    within: int | None = field(metadata={"doc": "of these within tolerance (runs: within one point)"})
    failed: int = field(metadata={"doc": "claims that should hold and do not"})
    median_error: float | None = field(metadata={"doc": "median |got − expected|"})
    worst: str | None = field(metadata={"doc": "id of the claim furthest off"})
    worst_error: float | None
    mape_fitted: float | None = field(metadata={"doc": "mean |error|/expected over what was fitted; None: nothing is"})
    mape_held_out: float | None = field(metadata={"unit": "fraction", "doc": "the same over what was not fitted"})
    why_not_fitted: str = ""
    not_recomputed: Mapping[str, int] = field(default_factory=dict, hash=False)
    median_held_out: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "median of the errors over what was not fitted"}
    )
    mape_constant: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "the same folds by a constant utilisation per GPU and dtype"}
    )
    coverage: float | None = field(
        default=None,
        metadata={
            "unit": "fraction",
            "doc": "held-out rows inside their interval (80 %; scaling 90 %)",
        },
    )
    ninetieth_held_out: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "nine of ten errors over what was not fitted are below it"}
    )
    median_constant: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "median error of the simplest rule: what was last stays"}
    )
    bar: float | None = field(default=None, metadata={"unit": "fraction", "doc": "largest error aimed at, held out"})
    median_fitted: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "median of the errors over what was fitted"}
    )
    bias_held_out: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "median of got over expected, less 1"}
    )
    judged: str = field(default="", metadata={"doc": "mean or median: the error that the bars are of"})
    bar_fitted: float | None = field(
        default=None, metadata={"unit": "fraction", "doc": "largest error aimed at, fitted"}
    )
    regret: float | None = field(
        default=None,
        metadata={"unit": "fraction", "doc": "time of the layout picked over the best, less 1, mean over groups"},
    )
    worst_regret: float | None = field(default=None, metadata={"unit": "fraction", "doc": "the largest of them"})
    fold: str = field(default="", metadata={"doc": "what is left out together"})
    folds: Mapping[str, float] = field(
        default_factory=dict, hash=False, metadata={"unit": "fraction", "doc": "mean held-out error of each fold"}
    )


@dataclass(frozen=True)
class Verification:
    """Every claim checked, and the agreement by source; formula against trace by model type where asked for."""

    claims: tuple[ClaimResult, ...]
    summary: tuple[SourceSummary, ...]
    coverage: tuple[Covered, ...] = ()
    coverage_summary: tuple[MappingSummary, ...] = ()

    @property
    def failed(self) -> tuple[ClaimResult, ...]:
        """Claims that should hold and do not: any makes `verify` exit with 1."""
        return tuple(claim for claim in self.claims if claim.failed)

    @property
    def holds(self) -> bool:
        """Whether nothing failed, and no formula differs from its trace."""
        return not self.failed and not self.wrong_types

    @property
    def wrong_types(self) -> tuple[Covered, ...]:
        """Model types whose formula and trace differ."""
        return tuple(each for each in self.coverage if each.status == WRONG)

    def by_status(self) -> dict[str, int]:
        """How many claims came out as what."""
        counts: dict[str, int] = {}
        for claim in self.claims:
            counts[claim.status] = counts.get(claim.status, 0) + 1
        return counts
