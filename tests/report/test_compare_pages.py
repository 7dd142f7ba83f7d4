"""The reports of `compare` and `count --like`: every figure there, nothing unexplained hidden."""

from __future__ import annotations

from typing import Any

from suanli.nouns.comparison import Cause, Comparison, Counter, Likeness, Right
from suanli.nouns.result import Result
from suanli.report import document_of
from suanli.report.text import document_text

BIAS = Cause(cause="bias additions charged, 1 FLOP an element", flops=60, places=2, example="layers.0.fc")


def counter(**values: Any) -> Counter:
    given: dict[str, Any] = {
        "name": "tool", "title": "Tool", "version": "1.0", "device": "meta", "phase": "forward", "params": 45,
        "reported": 510, "unit": "MACs", "says": "flops", "flops": 1020, "ratio": 1.0625, "difference": 60,
        "causes": (BIAS,), "unexplained": 0, "explanation": "", "seconds": 0.25, "peak_bytes": 2**20,
    }  # fmt: skip
    return Counter(**{**given, **values})


def page(*counters: Counter, right: Right | None = None) -> str:
    right = right or Right(phase="forward", flops=960, formula=960, trace=960, equal=True)
    found = Comparison(
        model="m", title="M", unit="token", units=12, params=45, right=(right,), counters=counters,
        explained=sum(each.unexplained == 0 for each in counters),
    )  # fmt: skip
    return document_text(document_of(Result(kind="compare", inputs={}, result=found, convention="full")), 140)


def test_a_counter_with_its_cause() -> None:
    shown = page(counter())
    assert shown.startswith("M — 12 tokens: 1 of 1 counters explained to the last FLOP\n")
    for part in ("Tool", "1.0", "meta", "1,020", "1.0625", "250 ms", "1.00 MiB", "+60", "layers.*.fc",
                 "[says 510 flops: doubled]", "equal"):  # fmt: skip
        assert part in shown
    assert "UNEXPLAINED" not in shown


def test_what_is_unexplained_is_printed() -> None:
    shown = page(counter(flops=1027, difference=67, unexplained=7))
    assert "0 of 1 counters explained" in shown
    assert "UNEXPLAINED" in shown
    assert "+7" in shown


def test_small_causes_are_added_up() -> None:
    causes = tuple(Cause(cause=f"cause {i}", flops=i, places=1, example="") for i in range(10, 0, -1))
    shown = page(counter(causes=causes))
    assert "cause 3" in shown
    assert "cause 2" not in shown
    assert "2 smaller causes, in --json" in shown
    assert "+3 " in shown


def test_a_counter_without_a_number_is_a_line() -> None:
    shown = page(
        counter(flops=None, ratio=None, reported=None, difference=None, unexplained=None, reason="no such thing")
    )
    assert "Tool: no such thing; parameters 45" in shown
    assert "0 of 0 counters" in shown


def test_formula_and_trace_that_differ_are_told() -> None:
    shown = page(counter(), right=Right(phase="forward", flops=960, formula=970, trace=960, equal=False, note="fc: 10"))
    assert "NO" in shown
    assert "fc: 10" in shown
    headline = "M — 12 tokens: 1 of 1 counters explained to the last FLOP against the trace, but formula and trace"
    assert " ".join(shown.split()).startswith(f"{headline} differ by 10 FLOPs: fc: 10 Right")


def test_a_difference_without_a_cause_is_told() -> None:
    shown = page(counter(), right=Right(phase="forward", flops=960, formula=950, trace=960, equal=False))
    assert "formula and trace differ by 10 FLOPs: the cause is not known" in " ".join(shown.split())


def test_the_same_number_says_so() -> None:
    assert "the same" in page(counter(causes=(), flops=960, reported=960, difference=0, ratio=1.0))


def test_a_likeness() -> None:
    found = Likeness(
        model="m", title="M", like="Tool", phase="forward", device="meta", reported=510, unit="MACs", says="flops",
        flops=1020, right=960, ratio=1.0625, difference=60, causes=(BIAS,), unexplained=0, explanation="",
    )  # fmt: skip
    shown = document_text(document_of(Result(kind="count", inputs={}, result=found, convention="full")), 140)
    assert shown.startswith("M — as Tool would count it on meta\n")
    for part in ("510  flops", "1,020  MACs doubled", "960  convention full, forward", "1.062500", "+60"):
        assert part in shown
