"""The report of `verify`: verdict, summary, which claims are shown and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import suanli
from suanli.cli.run import WIDTH_WITHOUT_TERMINAL
from suanli.nouns.claim import (
    ARTICLE_WRONG,
    DIFFERS,
    FAILS,
    FLAGGED,
    HOLDS,
    NOT_COUNTED,
    PREDICTED,
    REPRODUCED,
    RULE,
    UNSUPPORTED,
    ClaimResult,
    SourceSummary,
    Verification,
)
from suanli.nouns.result import Result
from suanli.report.document import Document, Lines, Table
from suanli.report.text import document_text
from suanli.report.verify_pages import WORST_SHOWN, shown, verify_document

pytestmark = pytest.mark.xdist_group("published steps")  # judged once, being slow


def claim(id: str, section: str, status: str, **more: Any) -> ClaimResult:
    given = {"expected": 2.0, "got": 3.0, "error": 1.0, **more}
    return ClaimResult(id=id, source=f"source of {id}", section=section, statement=f"says {id}", status=status, **given)


def summary(section: str, source: str = "s", **more: Any) -> SourceSummary:
    given: dict[str, Any] = {
        "n": 1234, "within": 1000, "failed": 0, "median_error": 0.00512, "worst": "w-1", "worst_error": -0.0266,
        "mape_fitted": None, "mape_held_out": None, **more,
    }  # fmt: skip
    return SourceSummary(source=source, section=section, **given)


def page(claims: tuple[ClaimResult, ...], summaries: tuple[SourceSummary, ...], every: bool = False) -> Document:
    found = Verification(claims, summaries)
    return verify_document(Result("verify", {"all": every}, found, ok=found.holds))


def table(document: Document, title: str) -> Table:
    return next(block for block in document.blocks if isinstance(block, Table) and block.title == title)


def ids(block: Table) -> list[str]:
    return [row[1].removeprefix("says ") for row in block.rows]


# --- the verdict --------------------------------------------------------------------------------------------------


def test_the_headline_of_what_holds() -> None:
    claims = (claim("a", "articles", HOLDS), claim("b", "articles", HOLDS), claim("c", "articles", RULE))
    assert page(claims, ()).headline == "all claims hold: 2 holds, 1 rule of thumb"


def test_the_headline_of_what_fails() -> None:
    claims = (claim("a", "models", FAILS), claim("b", "articles", FAILS), claim("c", "articles", ARTICLE_WRONG))
    assert page(claims, ()).headline == "2 claims FAIL: 2 fails, 1 article wrong"


# --- the summary --------------------------------------------------------------------------------------------------

# a summary: the cells of its row
SUMMARIES = [
    (summary("models"), ("s", "models", "1,234", "1,000", "", "0.00512", "w-1", "-0.0266")),
    # errors of runs are in points of the peak
    (summary("runs"), ("s", "runs", "1,234", "1,000", "", "0.512", "w-1", "-2.660")),
    (summary("runs", failed=3, within=None), ("s", "runs", "1,234", "", "3", "0.512", "w-1", "-2.660")),
    (
        summary("articles", median_error=None, worst=None, worst_error=None),
        ("s", "articles", "1,234", "1,000", "", "", "", ""),
    ),
    # what is off by nothing is not the worst of anything
    (summary("articles", worst_error=0.0), ("s", "articles", "1,234", "1,000", "", "0.00512", "", "")),
]


@pytest.mark.parametrize(("row", "cells"), SUMMARIES)
def test_rows_of_the_summary(row: SourceSummary, cells: tuple[str, ...]) -> None:
    block = page((), (row,)).blocks[0]
    assert isinstance(block, Table)
    assert block.title == "Agreement by source (nothing is fitted; errors of runs in points of the peak)"
    assert block.columns == ("source", "section", "n", "within", "failed", "median |error|", "worst", "its error")
    assert block.rows == (cells,)


# --- sections -----------------------------------------------------------------------------------------------------


def test_articles_are_shown_in_full_with_what_is_wrong_and_why() -> None:
    claims = (
        claim("a", "articles", HOLDS, article=2.0, why="never said"),
        claim("b", "articles", ARTICLE_WRONG, article=5.0, why="a factor of two"),
        claim("c", "articles", UNSUPPORTED, expected=None, got=None, error=None, why="nobody knows"),
        claim("d", "articles", RULE),
    )
    found = page(claims, (summary("articles"),))
    block = table(found, "Articles, number by number")
    assert block.columns == ("source", "statement", "printed", "right", "ours", "status")
    assert block.rows == (
        ("source of a", "says a", "2", "2", "3", "holds"),
        ("source of b", "says b", "5", "2", "3", "article wrong"),
        ("source of c", "says c", "n/a", "n/a", "n/a", "unsupported"),
        ("source of d", "says d", "n/a", "2", "3", "rule of thumb"),
    )
    lines = {each.title: each.lines for each in found.blocks if isinstance(each, Lines)}
    assert lines["Where the articles are wrong, and why"] == ("source of b: says b: a factor of two",)
    assert lines["Without a number to check"] == ("source of c: says c (unsupported): nobody knows",)


def test_of_runs_the_furthest_are_shown_worst_first() -> None:
    odd = [claim(f"d{n}", "runs", DIFFERS, error=n * (-1) ** n / 100) for n in range(1, 16)]
    quiet = [
        claim("ok", "runs", REPRODUCED, error=0.5),
        claim("holds", "runs", HOLDS, error=0.5),
        claim("unknown", "runs", DIFFERS, error=None),
        claim("flagged", "runs", FLAGGED, error=0.005),
    ]
    found = page((*quiet, *odd), (summary("runs"),))
    block = table(found, "Runs furthest from what was printed (flagged rows contradict themselves)")
    assert ids(block) == [f"d{n}" for n in range(15, 15 - WORST_SHOWN, -1)]
    assert ids(table(found, "Failed")) == []


def test_a_flagged_run_is_among_the_odd_ones() -> None:
    found = page((claim("f", "runs", FLAGGED), claim("x", "runs", FAILS)), (summary("runs"),))
    assert ids(table(found, "Runs furthest from what was printed (flagged rows contradict themselves)")) == ["f"]
    assert ids(table(found, "Failed")) == ["x"]


def test_all_runs_where_all_are_asked_for() -> None:
    claims = tuple(claim(f"r{n}", "runs", REPRODUCED) for n in range(20))
    found = page(claims, (summary("runs"),), every=True)
    assert ids(table(found, "Published runs")) == [f"r{n}" for n in range(20)]


def test_of_other_sections_what_simply_holds_is_silent() -> None:
    claims = tuple(
        claim(status.replace(" ", "-"), "models", status) for status in (HOLDS, REPRODUCED, FAILS, DIFFERS, NOT_COUNTED)
    )
    found = page(claims, (summary("models"),))
    assert ids(table(found, "Failed")) == ["fails"]
    assert ids(table(found, "Models")) == ["differs", "not-counted-yet"]
    every = page(claims, (summary("models"),), every=True)
    assert len(table(every, "Models").rows) == 5


def test_sections_stand_once_in_the_order_of_the_summary() -> None:
    claims = (claim("a", "models", DIFFERS), claim("b", "articles", HOLDS))
    found = page(claims, (summary("models"), summary("models", "t"), summary("articles")))
    titles = [block.title for block in found.blocks if isinstance(block, Table)]
    assert titles[1:] == ["Failed", "Models", "Articles, number by number"]


def test_rows_with_nothing_to_compare() -> None:
    reasons = {"no peak known": 3, "no throughput printed": 5}
    rows = (
        summary("runs", "all", not_recomputed=reasons),
        summary("runs", "other", not_recomputed=reasons),
        summary("models", "all"),
    )
    block = page((), rows).blocks[-1]
    assert block == Lines("Rows with nothing to compare", ("all: 3 no peak known; 5 no throughput printed",))


# --- figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2.0, "2"),
        (1234567, "1,234,567"),
        (0.41618, "0.41618"),
        (1234.56789012, "1,234.5679"),
        (999_999_999_999_999, "999,999,999,999,999"),
        (1e15, "1e+15"),
        (3.15e23, "3.15e+23"),
        (-3.15e23, "-3.15e+23"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
    ],
)
def test_figures(value: float, text: str) -> None:
    assert shown(value) == text


# --- predictions --------------------------------------------------------------------------------------------------

STEP_TIMES = "Step times: mean |error| of predictions on rows fitted, on rows left out, and by a constant utilisation"
FURTHEST = "Step times furthest from what was measured, held out"


def predicted(**more: Any) -> SourceSummary:
    given: dict[str, Any] = {
        "median_error": None, "within": None, "mape_fitted": 0.021, "mape_held_out": 0.0512, "median_held_out": 0.04,
        "mape_constant": 0.25, "coverage": 0.8, "bar": 0.06, "fold": "model", "folds": {"7B": 0.03, "70B": 0.0734},
        **more,
    }  # fmt: skip
    return summary("predictions", "runs of one stack", **given)


# what a set's row says: its summary, the cells after its name
ERRORS = ("1,234", "2.1 %", "5.1 %", "4.0 %", "25.0 %")
ROWS = [
    (predicted(), (*ERRORS, "6.0 %", "80.0 %", "w-1", "-2.7 %")),
    (predicted(bar=0.05), (*ERRORS, "5.0 %, not met", "80.0 %", "w-1", "-2.7 %")),
    (predicted(bar=None, coverage=None), (*ERRORS, "", "", "w-1", "-2.7 %")),
]


@pytest.mark.parametrize(("row", "cells"), ROWS)
def test_a_set_of_predictions(row: SourceSummary, cells: tuple[str, ...]) -> None:
    found = page((), (row,))
    (line,) = table(found, STEP_TIMES).rows
    assert line == ("runs of one stack", *cells)
    assert table(found, "Agreement by source (nothing is fitted; errors of runs in points of the peak)").rows == ()


def lines(document: Document, title: str) -> tuple[str, ...]:
    return next(block.lines for block in document.blocks if isinstance(block, Lines) and block.title == title)


def test_folds_and_regret_are_told() -> None:
    many = predicted(folds={str(place): 0.1 for place in range(13)})
    found = page((), (predicted(regret=0.002, worst_regret=0.0061), many))
    assert lines(found, "Mean |error| of each fold left out") == (
        "runs of one stack, by model: 7B 3.0 %, 70B 7.3 %", "runs of one stack, by model: 13 of them",
    )  # fmt: skip
    picked = "Time of the layout that is picked over the best one measured, where runs differ in layout"
    assert lines(found, picked) == ("runs of one stack: 0.2 % on average, 0.6 % at worst",)


def test_steps_are_ranked_by_their_error_in_proportion() -> None:
    steps = [
        claim("long", "predictions", PREDICTED, expected=100.0, got=110.0, error=10.0),
        claim("short", "predictions", PREDICTED, expected=1.0, got=0.5, error=-0.5),
        *(claim(f"fine{place}", "predictions", PREDICTED, expected=1.0, got=1.01, error=0.01) for place in range(12)),
    ]
    found = page(tuple(steps), (predicted(),))
    assert ids(table(found, FURTHEST))[:2] == ["short", "long"]
    assert len(table(found, FURTHEST).rows) == WORST_SHOWN
    assert len(table(page(tuple(steps), (predicted(),), every=True), "Step times").rows) == 14


def test_without_predictions_nothing_is_said_of_them() -> None:
    found = page((claim("a", "models", HOLDS),), (summary("models"),))
    assert not any(isinstance(block, Table) and block.title == STEP_TIMES for block in found.blocks)


@pytest.mark.parametrize("section", ["predictions", "scaling"])
def test_pages_of_errors_fit_120_columns(section: str) -> None:
    """As they are printed into a pipe."""
    text = document_text(verify_document(suanli.verify(section)), WIDTH_WITHOUT_TERMINAL)
    assert max(map(len, text.splitlines())) <= WIDTH_WITHOUT_TERMINAL


def served_rows(**more: Any) -> tuple[SourceSummary, ...]:
    """Check values, and one quantity with bars."""
    values = summary("serving", "check values of serving", n=27, within=27, worst=None, worst_error=None)
    errors = summary(
        "serving", "throughput: somebody", n=148, within=None, median_error=None, worst="a on b", worst_error=0.5,
        mape_fitted=0.26, mape_held_out=0.31, median_fitted=0.09, median_held_out=0.12, bias_held_out=-0.02,
        judged="median", bar_fitted=0.15, bar=0.20, fold="architecture and GPU", folds={"a on b (3)": 0.5}, **more,
    )  # fmt: skip
    return values, errors


def served_table(**more: Any) -> Table:
    found = Verification((), served_rows(**more))
    document = verify_document(Result(kind="verify", inputs={}, result=found))
    return next(block for block in document.blocks if isinstance(block, Table) and block.title.startswith("Serving"))


def test_serving_is_told_fitted_and_held_out_apart() -> None:
    (row,) = served_table().rows
    assert row == (
        "throughput: somebody", "148", "26.0 %", "31.0 %", "9.0 %", "12.0 %", "-2.0 %", "median 15 % / 20 %: met",
        "a on b", "50.0 %",
    )  # fmt: skip


def test_recorded_errors_say_so() -> None:
    assert served_table(why_not_fitted="as found").title.endswith("by architecture and GPU (as found)")


def test_check_values_stand_among_the_sources() -> None:
    document = verify_document(Result(kind="verify", inputs={}, result=Verification((), served_rows())))
    sources = next(block for block in document.blocks if isinstance(block, Table))
    assert [row[0] for row in sources.rows] == ["check values of serving"]


def test_a_bar_that_is_missed_is_said() -> None:
    missed = [replace(row, median_held_out=0.21) for row in served_rows()]
    document = verify_document(Result(kind="verify", inputs={}, result=Verification((), tuple(missed))))
    table = next(block for block in document.blocks if isinstance(block, Table) and block.title.startswith("Serving"))
    assert table.rows[0][7] == "median 15 % / 20 %: not met"


def test_of_the_points_the_worst_are_shown_and_values_and_bars_whole() -> None:
    values = [claim(f"v{at}", "serving", HOLDS) for at in range(2)]
    points = [claim(f"p{at}", "serving", PREDICTED, error=at / 10) for at in range(20)]
    values = [replace(each, source="check values of serving") for each in values]
    bars = [replace(claim("b", "serving", HOLDS), source="bars: somebody")]
    found = Verification((*values, *bars, *points), served_rows())
    for every, shown_points in ((False, WORST_SHOWN), (True, 20)):
        document = verify_document(Result(kind="verify", inputs={"all": every}, result=found))
        tables = {block.title: len(block.rows) for block in document.blocks if isinstance(block, Table)}
        assert (tables["Bars"], tables["Check values"]) == (1, 2)
        assert next(n for title, n in tables.items() if title.startswith("Points")) == shown_points
