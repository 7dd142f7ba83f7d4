"""How a type comes out of its checks, and the summary over types: a table of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.nouns.coverage import (
    ALL,
    BY_TRACE,
    DECLARED,
    EXACT,
    NOT_RUN,
    PARTLY,
    WRONG,
    ConfigCheck,
    Covered,
    LengthCheck,
    MemoryCheck,
    ScanCounts,
    status_of,
    summarise_coverage,
)

TERM = "lm_head forward: formula 1, trace 4 (+3)"
GOOD = LengthCheck(seq=24, flops_formula=100, flops_trace=100)
EVEN = ConfigCheck(config="small", params_formula=7, params_torch=7, lengths=(GOOD, replace(GOOD, seq=57)))
DEFAULT = replace(EVEN, config="default")
OFF = replace(EVEN, lengths=(GOOD, replace(GOOD, flops_trace=103)), terms=(TERM,))
SAID = replace(EVEN, lengths=(replace(GOOD, flops_trace=140, declared=40),))
TRACED = (LengthCheck(seq=24, flops_trace=9),)
UNREAD = replace(EVEN, params_formula=None, not_read="unknown model_type", lengths=TRACED)
STUCK = ConfigCheck(config="default", not_run="KeyError: 'x'")

CASES = [
    ((EVEN, DEFAULT), EXACT, ""),
    ((EVEN, STUCK), PARTLY, "default: KeyError: 'x'"),
    ((STUCK, STUCK), NOT_RUN, "KeyError: 'x'"),
    ((SAID, DEFAULT), DECLARED, "known"),
    ((SAID, STUCK), PARTLY, "known; default: KeyError: 'x'"),
    ((UNREAD, DEFAULT), BY_TRACE, "unknown model_type"),
    ((UNREAD, STUCK), BY_TRACE, "unknown model_type"),
    ((OFF, DEFAULT), WRONG, TERM),
    ((replace(EVEN, params_torch=8), DEFAULT), WRONG, "parameters differ"),
    ((OFF, STUCK), WRONG, TERM),
]


@pytest.mark.parametrize(("checks", "status", "why"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_how_a_type_comes_out(checks: tuple[ConfigCheck, ...], status: str, why: str) -> None:
    assert status_of(checks, "known") == (status, why)


def test_scans_are_taken_as_transformers_runs_them() -> None:
    """100 − 30 of recurrences + 50 as run + 4 of padding + 6 solved = 130."""
    scans = ScanCounts(recurrence=30, kernel=40, fallback=50, padding=4, solved=6)
    check = LengthCheck(seq=24, flops_formula=100, flops_trace=131, scans=scans)
    assert (scans.beside, check.expected, check.error) == (30, 130, 1)


def test_nothing_to_compare_is_no_error() -> None:
    assert LengthCheck(seq=24, flops_trace=3).error is None
    assert LengthCheck(seq=24, flops_formula=3).error is None
    assert UNREAD.params_error is None
    assert (EVEN.compared, UNREAD.compared, STUCK.compared) == (True, False, False)


def covered(model_type: str, mapping: str, status: str) -> Covered:
    return Covered(mapping=mapping, model_type=model_type, class_name="X", checks=(), status=status)


def test_a_type_of_two_tasks_counts_once_and_by_the_worse() -> None:
    found = summarise_coverage(
        (covered("bert", "causal-lm", EXACT), covered("bert", "masked-lm", WRONG), covered("gpt2", "causal-lm", EXACT))
    )
    rows = {row.mapping: (row.types, row.exact, row.wrong) for row in found}
    assert rows == {"causal-lm": (2, 2, 0), "masked-lm": (1, 0, 1), ALL: (2, 1, 1)}
    assert summarise_coverage(()) == ()
    assert all(
        row.types == row.exact + row.declared + row.partly + row.by_trace + row.not_run + row.wrong for row in found
    )


def test_terms_of_all_configs_each_once() -> None:
    assert replace(covered("x", "y", WRONG), checks=(OFF, OFF)).terms == OFF.terms
    assert MemoryCheck(seq=24, by_formula=200, by_trace=250).ratio == 1.25
