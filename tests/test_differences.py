"""Formula against trace: equal term by term, and where they differ the term is named."""

from __future__ import annotations

import pytest

from suanli import count
from suanli.differences import every_copy, term_differences
from suanli.nouns.ledger import Ledger, Op


def ledger(*terms: tuple[str, int]) -> Ledger:
    return Ledger(tuple(Op(path, "linear", "forward", n, n, 0, 0, 0, 1, "linear_flops") for path, n in terms), "full")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a.layers.0-31.mlp", "a.layers.*.mlp"), ("a.0,3,7.b", "a.*.b"), ("a.0-40:2", "a.*"), ("fc1.x", "fc1.x")],
)
def test_copies_are_taken_together(path: str, expected: str) -> None:
    assert every_copy(path) == expected


def test_the_term_that_differs() -> None:
    ours, theirs = ledger(("m.0-1.q", 4), ("m.0-1.k", 2)), ledger(("m.0.q", 2), ("m.1.q", 2), ("m.0-1.k", 5))
    (found,) = term_differences(ours, theirs)
    assert found.sentence == "m.*.k forward: formula 2, trace 5 (+3)"


def test_other_names_below_a_module_are_no_difference() -> None:
    assert term_differences(ledger(("m.attention", 4), ("m.q", 1)), ledger(("m.matmul", 4), ("m.q", 1))) == ()


def test_what_only_one_counts_is_shown_at_the_module_that_both_know() -> None:
    found = term_differences(ledger(("m.a.q", 4)), ledger(("m.a.q", 4), ("m.b", 1)))
    assert [each.sentence for each in found] == ["m forward: formula 4, trace 5 (+1)"]


@pytest.mark.torch
@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize("name", ["llama-2-7b", "mixtral-8x7b", "gpt2", "bert-base", "t5-small", "vit-b16"])
def test_formula_and_trace_agree_on_every_term(name: str, phase: str) -> None:
    pytest.importorskip("transformers")
    by_formula = count(name, seq=32, convention="full", phase=phase).ledger
    by_trace = count(name, seq=32, convention="full", phase=phase, trace=True).ledger
    assert term_differences(by_formula, by_trace) == ()
