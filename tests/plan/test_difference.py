"""Two layouts entry by entry: the differences add up, an entry only one has counts whole, the largest comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.plans import PlannedLayout
from suanli.nouns.step import Entry
from suanli.plan.difference import difference


def planned(account: dict[str, float], memory: dict[str, int], **more: object) -> PlannedLayout:
    seconds = sum(account.values())
    fields: dict[str, object] = {
        "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "etp": 1, "vpp": 1, "micro_batch": 1, "zero": 0,
        "recompute": "none", "sp": False, "schedule": "1f1b", "gpus": 1, "step_time_s": seconds,
        "step_time_interval_s": (seconds, seconds), "closed_form_step_time_s": seconds, "played": True,
        "mfu": 0.4, "tokens_per_second_per_gpu": 1.0,
        "memory_bytes": {**memory, "total": sum(memory.values())}, "fullest_stage": 0, "largest_term": "weights",
        "margin_bytes": 0, "account": tuple(Entry(name, value) for name, value in account.items()),
    }  # fmt: skip
    return PlannedLayout(**fields | more)


def test_by_hand():
    first = planned({"matmul": 5.0, "bubble": 1.0}, {"weights": 10, "activations": 50})
    second = planned({"matmul": 5.5, "tensor parallel": 0.25, "bubble": 0.0}, {"weights": 20, "activations": 30})
    found = difference(first, second)
    assert [(row.entry, row.first, row.second, row.difference) for row in found.step] == [
        ("bubble", 1.0, 0.0, -1.0), ("matmul", 5.0, 5.5, 0.5), ("tensor parallel", 0, 0.25, 0.25)
    ]  # fmt: skip
    assert [(row.entry, row.difference) for row in found.memory] == [("activations", -20), ("weights", 10)]


def test_a_layout_and_itself():
    one = planned({"matmul": 5.0}, {"weights": 10})
    assert [row.difference for row in difference(one, one).step] == [0]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e3), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e3), min_size=1),
)
def test_differences_add_up_and_change_sign(first, second):
    one, other = planned(first, {"weights": 7}), planned(second, {"weights": 9, "logits": 1})
    there, back = difference(one, other), difference(other, one)
    assert sum(row.difference for row in there.step) == pytest.approx(other.step_time_s - one.step_time_s, abs=1e-6)
    assert {row.entry: row.difference for row in there.step} == {row.entry: -row.difference for row in back.step}


def test_an_account_that_does_not_close_is_caught():
    one = planned({"matmul": 5.0}, {"weights": 10})
    with pytest.raises(AssertionError):
        difference(one, replace(one, step_time_s=6.0))
