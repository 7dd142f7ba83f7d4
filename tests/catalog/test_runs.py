"""The published runs: they load, their rates are what was worked out apart, their groups are not empty."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import fields
from importlib.resources import files

import pytest

from suanli.catalog.claims import run_groups
from suanli.catalog.runs import published_runs, rate_per_gpu
from suanli.nouns.run import PublishedRun
from suanli.recount import RULES, arch_of, flops_per_token, letters_of, rule_of


def test_all_rows_with_unique_ids():
    runs = published_runs()
    assert len({run.id for run in runs}) == len(runs) >= 1498
    assert all(run.flag_reason for run in runs if run.flag)
    assert Counter(run.flag for run in runs)[True] >= 277


def test_columns_are_the_noun_s_fields():
    text = files("suanli.catalog").joinpath("published_runs.csv").read_text(encoding="utf-8")
    assert next(csv.reader(text.splitlines())) == [field.name for field in fields(PublishedRun)]
    assert "calc_mfu" not in text.splitlines()[0]


def test_rates_are_those_worked_out_apart():
    checked = [run for run in published_runs() if run.calc_tok_s_gpu]
    assert len(checked) >= 1204
    for run in checked:
        assert rate_per_gpu(run) == pytest.approx(run.calc_tok_s_gpu, rel=1e-3), run.id


def test_every_convention_named_is_known_or_a_source_s_own():
    unknown = {run.best_convention for run in published_runs() if run.best_convention and rule_of(run) is None}
    assert unknown == {"source's own FLOPs per sequence"}


def test_every_group_of_claims_has_rows_and_a_rule():
    for group in run_groups():
        assert group.rule in RULES
        assert group.low < group.high
        held = [run for run in published_runs() if group.holds(run) and run.published_pct_compared is not None]
        assert len(held) >= 2, group.name


def _run(**wanted):
    return next(run for run in published_runs() if all(getattr(run, key) == value for key, value in wanted.items()))


def test_mpt_parameters_come_out_to_the_last_printed_digit():
    for run in published_runs():
        if run.group == "llm-foundry":
            assert arch_of(letters_of(run)).params_total == pytest.approx(run.params_total_b * 1e9, abs=501), run.id


def test_deepseek_is_read_with_its_latent_attention():
    arch = arch_of(letters_of(_run(model="DeepSeek-V3", group="dgxc")))
    assert arch.params_total == pytest.approx(671.0264e9, rel=1e-6)


def test_windows_are_kept_only_where_the_words_do_not_deny_them():
    windowed = next(r for r in published_runs() if rule_of(r) and rule_of(r).name == "megatron-windows")
    assert flops_per_token(windowed, RULES["megatron-windows"]) < flops_per_token(windowed, RULES["megatron"])


@pytest.mark.parametrize(("more", "less"), [("megatron-full", "megatron"), ("8n", "6n-all"), ("matmuls-6n", "lora-4n")])
def test_rules_in_their_order(more, less):
    run = _run(model="LLAMA3.1-405B", group="dgxc")
    assert flops_per_token(run, RULES[more]) > flops_per_token(run, RULES[less])


def test_a_row_without_a_shape_cannot_be_counted():
    assert flops_per_token(_run(n_layers=None), RULES["palm"]) is None
