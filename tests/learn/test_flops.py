"""The lesson on FLOPs: the rule of thumb, the closed form, where the rule fails, and the verbs' own numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suanli
from suanli.learn import teach
from suanli.learn.flops import MODELS, SEQ, missed
from suanli.nouns.lesson import Grid, Lesson, Plot


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("flops", "en")


def table(found: Lesson, place: int) -> Grid:
    return [block for block in found.blocks if isinstance(block, Grid)][place]


def test_one_product(taught: Lesson) -> None:
    assert taught.blocks[0].values == {"m": 4, "n": 3, "p": 5, "flops": 2 * 4 * 3 * 5, "macs": 4 * 3 * 5}


def test_the_rule_of_thumb(taught: Lesson) -> None:
    """GPT-3: 175e9 parameters on 300e9 tokens."""
    assert taught.values["2n"] == 2 * 175 * 10**9 * 300 * 10**9
    assert taught.values["6n"] == 315 * 10**21  # the article's 3.15e23
    assert taught.values["8n"] == 4 * taught.values["2n"]


def test_the_closed_form_of_gpt3(taught: Lesson) -> None:
    """L = 96, h = 12288, s = 2048, V = 51200; golden values of the source facts §2."""
    assert float(taught.values["gpt3_model_flops"]) == pytest.approx(2.204555173429e15, rel=1e-12)
    assert taught.values["attention_over_first"] == pytest.approx(2048 / (6 * 12288))  # s/6h
    assert taught.values["head_over_first"] == pytest.approx(51200 / (12 * 96 * 12288))  # V/12Lh
    rows = {row[0]: row[1] for row in table(taught, 1).rows}
    assert rows["layers' matrices, 72BLsh²"] == 72 * 96 * 2048 * 12288**2
    assert sum(rows.values()) == 2 * rows["total"]


@pytest.mark.parametrize("over", [1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 64.0])
def test_what_the_rule_misses(over: float) -> None:
    """s/6h of the first term, over all of it: r/(1 + r) with r = 1/(6·h/s)."""
    r = 1 / (6 * over)
    assert missed(over, causal=False) == pytest.approx(r / (1 + r))
    half = r / 2  # and a half pair a position, which is next to nothing
    assert missed(over, causal=True) == pytest.approx(half / (1 + half), rel=2e-2)


@given(st.floats(1 / 64, 64))
def test_a_mask_halves_what_is_missed_at_most(over: float) -> None:
    every, causal = missed(over, causal=False), missed(over, causal=True)
    assert 0 < every / 2 < causal < every < 1


def test_the_curve_is_drawn_over_h_over_s(taught: Lesson) -> None:
    plot = next(block for block in taught.blocks if isinstance(block, Plot))
    assert plot.x_name == "h/s" and not plot.log_y and len(plot.series) == 2
    for series in plot.series:
        assert [y for _, y in series.points] == sorted((y for _, y in series.points), reverse=True)


@pytest.mark.parametrize("place", range(len(MODELS)))
def test_models_are_counted_by_count(taught: Lesson, place: int) -> None:
    name, kind = MODELS[place]
    found = suanli.count(name, seq=SEQ, phase="train")
    cache = suanli.count(name, phase="decode", kv_len=1, seq=1).bytes.kv_cache
    assert table(taught, 2).rows[place] == (
        name, kind, found.params.total, found.params.active, found.flops_per_token, found.ideal_error["6n"], cache,
    )  # fmt: skip


def test_what_gqa_and_mla_save(taught: Lesson) -> None:
    """Bytes of cache a token: 2·layers·width in bf16; K/H of it with grouped queries; 576 a layer with MLA."""
    cache = {row[0]: row[-1] for row in table(taught, 2).rows}
    assert cache["gpt3-175b"] == 2 * 96 * 12288 * 2
    assert cache["llama-3-8b"] == 2 * 32 * (8 * 128) * 2
    assert cache["deepseek-v3"] == 61 * (512 + 64) * 2
