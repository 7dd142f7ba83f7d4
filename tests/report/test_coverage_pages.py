"""The report of formula against trace: what stands in it, and what is left to --all."""

from __future__ import annotations

from dataclasses import replace

from suanli.nouns.claim import Verification
from suanli.nouns.coverage import (
    BY_TRACE,
    DECLARED,
    EXACT,
    WRONG,
    ConfigCheck,
    Covered,
    LengthCheck,
    MemoryCheck,
    ScanCounts,
    summarise_coverage,
)
from suanli.report.coverage_pages import REASONS_SHOWN, coverage_blocks, cut, error_text, flops_error_text
from suanli.report.document import Lines, Table

SCANS = ScanCounts(recurrence=30, kernel=40, fallback=50, padding=4, solved=6)
LENGTH = LengthCheck(seq=57, flops_formula=1000, flops_trace=1030, scans=SCANS)
CHECK = ConfigCheck(config="small", params_formula=7, params_torch=7, lengths=(LENGTH,))
GOOD = Covered(
    mapping="causal-lm", model_type="lama", class_name="LamaForCausalLM", checks=(CHECK,), status=EXACT,
    memory=MemoryCheck(seq=24, by_formula=2000, by_trace=2500),
)  # fmt: skip
BAD = replace(
    GOOD, model_type="alpaca", status=WRONG, why="lm_head", memory=None,
    checks=(replace(CHECK, terms=("lm_head forward: formula 1, trace 4 (+3)",)),),
)  # fmt: skip


def found(*types: Covered) -> Verification:
    return Verification((), (), types, summarise_coverage(types))


def texts(*types: Covered, every: bool = False) -> dict[str, object]:
    return {
        block.title: block.rows if isinstance(block, Table) else block.lines
        for block in coverage_blocks(found(*types), every)
        if isinstance(block, Table | Lines)
    }


def test_nothing_where_nothing_was_compared() -> None:
    assert coverage_blocks(Verification((), ()), True) == []


def test_the_summary_scans_memory_and_what_differs() -> None:
    shown = texts(GOOD, BAD)
    titles = list(shown)
    assert shown[titles[0]] == (
        ("causal-lm", "2", "1", "0", "0", "0", "0", "1"),
        ("all, each type once", "2", "1", "0", "0", "0", "0", "1"),
    )
    assert shown[titles[1]][0] == ("lama", "causal-lm", "57", "30", "40", "50", "6", "4", "0")  # type: ignore[index]
    assert shown[titles[2]] == (("lama", "causal-lm", "24", "2,000", "2,500", "1.250"),)
    assert shown["Wrong: formula and trace differ"] == (
        "alpaca (causal-lm): lm_head forward: formula 1, trace 4 (+3)",
    )  # fmt: skip
    assert "Every type" not in shown


def test_reasons_are_cut_short_unless_all_are_asked_for() -> None:
    traced = [replace(GOOD, model_type=f"type{i}", status=BY_TRACE, why="no formula") for i in range(REASONS_SHOWN + 3)]
    short, whole = texts(*traced)["By trace only"], texts(*traced, every=True)["By trace only"]
    assert short[0] == "type0 (causal-lm): no formula"  # type: ignore[index]
    assert short[-1] == "… and 3 more (--all, or --json)"  # type: ignore[index]
    assert len(whole) == REASONS_SHOWN + 3  # type: ignore[arg-type]


def test_a_declared_difference_is_always_said() -> None:
    said = replace(GOOD, status=DECLARED, why="every expert is run")
    assert texts(said)["Declared differences"] == ("lama (causal-lm): every expert is run",)


def test_every_type_has_a_row_a_config() -> None:
    assert texts(GOOD, every=True)["Every type"] == (
        ("lama", "causal-lm", "small", "7", "0", "1,030", "0", "exact"),
    )  # fmt: skip


def test_errors_in_words() -> None:
    assert [error_text(each) for each in (None, 0, 1234, -5)] == ["–", "0", "+1,234", "-5"]
    longer = replace(CHECK, lengths=(LENGTH, replace(LENGTH, flops_trace=1000)))
    assert flops_error_text(longer) == "-30"
    assert flops_error_text(replace(CHECK, lengths=())) == "–"
    assert cut("a\n b" + "c" * 200).startswith("a bccc")
    assert len(cut("c" * 200)) == 110
