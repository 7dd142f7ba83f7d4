"""Conventions are data: complete, found by name, and told apart from one another."""

from __future__ import annotations

import pytest

from suanli.catalog.conventions import CONVENTIONS, DEFAULT, common_conventions, find_convention
from suanli.errors import UnknownNameError
from suanli.formulas import all_formulas

REQUIRED = {"causal", "full", "megatron", "megatron-full", "palm", "palm-noemb", "6n", "6n-all", "hardware"}


def test_the_presets_of_the_contract() -> None:
    assert DEFAULT == "causal"
    assert {row.name for row in common_conventions()} == REQUIRED
    assert set(CONVENTIONS) >= REQUIRED


@pytest.mark.parametrize("row", CONVENTIONS.values(), ids=lambda row: row.name)
def test_every_row_says_what_and_where_from(row: object) -> None:
    assert row.doc and row.source
    assert row.basis in ("ops", "params", "closed")
    assert row.pairs in ("mask", "full", "half", "none")
    assert (row.basis == "closed") == (row.closed_form is not None)
    assert row.closed_form is None or row.closed_form in all_formulas()


def test_unknown_convention_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_convention("megatronn")
    assert "unknown convention 'megatronn' in --convention" in str(caught.value)
    assert caught.value.faults[0].nearest[0].startswith("megatron")
