"""Ledgers add, group and close."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import CONVENTIONS
from suanli.count import GROUPINGS, build_ledger, grouped_rows
from suanli.nouns.ledger import Ledger, Op
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model

MODELS = ["gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "t5-small", "resnet-50", "whisper-small"]


def op(path: str, flops: int, params: int = 0) -> Op:
    return Op(path, "linear", "forward", flops, flops + 1, 10, 20, params, 1, "linear_flops")


def test_rows_add() -> None:
    total = op("a", 5, 7) + op("b", 6, 8)
    assert (total.path, total.model_flops, total.hardware_flops, total.read_bytes, total.params) == (
        "a",
        11,
        13,
        20,
        15,
    )


def test_ledgers_of_different_conventions_do_not_add() -> None:
    with pytest.raises(AssertionError, match="different conventions"):
        Ledger((op("a", 1),), "causal") + Ledger((op("a", 1),), "full")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**20)), max_size=20))
def test_groups_close(rows: list[tuple[str, int]]) -> None:
    ledger = Ledger(tuple(op(path, flops) for path, flops in rows), "causal")
    groups = ledger.grouped(lambda row: row.path)
    assert sum(row.model_flops for row in groups.values()) == ledger.model_flops
    assert sum(row.hardware_flops for row in groups.values()) == ledger.hardware_flops


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_of_every_kind_of_model_closes(model: str, by: str) -> None:
    arch = read_model(model)
    ledger = build_ledger(arch, Workload(phase="train", seq=64, recompute="full"), CONVENTIONS["causal"])
    rows = grouped_rows(ledger, by)
    assert sum(row.model_flops for row in rows) == ledger.model_flops
    assert sum(row.hardware_flops for row in rows) == ledger.hardware_flops
    assert sum(row.params for row in rows) == arch.params_total
    assert ledger.model_flops <= ledger.hardware_flops
