"""The step with its pipeline played out: equal to the account where stages are even, later where chunks are not."""

from __future__ import annotations

import pytest

from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import prior_profile
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.plan.refine import (
    best_step,
    best_steps,
    chunk_counts,
    chunk_passes,
    closed_step,
    played_step,
    too_long_to_play,
)
from suanli.plan.step_time import Job, account, features
from suanli.readers.model import read_model

np = pytest.importorskip("numpy")
PROFILE = prior_profile("nemo")


@pytest.fixture(scope="module")
def gpt3():
    return _job("gpt3-175b", 2048)


@pytest.fixture(scope="module")
def llama():
    return _job("llama-3.1-405b", 8192)


def _job(name: str, seq: int) -> Job:
    return Job(arch=read_model(name), seq=seq, dtype="bf16", curves=find_curves(find_device("h100-sxm")),
               fabric=node_fabric("hgx-h100"), traits=PROFILE.traits)  # fmt: skip


def entries(job: Job, layout: Layout, batch: int) -> dict[str, float]:
    found = account(features(job, Grid.of([layout]), float(batch)), PROFILE.numbers)
    return {name: float(np.broadcast_to(value, (1,))[0]) for name, value in found.items()}


@pytest.mark.parametrize("zero", [0, 3])
def test_without_a_pipeline_nothing_is_played(gpt3, zero):
    layout = Layout(tp=8, dp=8, zero=zero, sp=True, recompute="full")
    found = entries(gpt3, layout, 64)
    assert found["bubble"] == pytest.approx(0, abs=1e-9)
    seconds = played_step(gpt3, PROFILE.numbers, layout, 64).seconds
    micro = PROFILE.numbers.micro_s * 8  # host time of a micro-batch is among what is fixed
    assert seconds == pytest.approx(sum(found.values()), rel=1e-6)
    assert found["fixed"] == pytest.approx(PROFILE.numbers.fixed_s + micro)


@pytest.mark.parametrize(("pp", "batch"), [(2, 16), (8, 64), (16, 32)])
def test_one_forward_one_backward_is_close_to_the_closed_form(gpt3, pp, batch):
    """The ends hold embedding and head, so stages are not quite equal; 3 % is what that makes."""
    layout = Layout(tp=8, pp=pp, dp=1, sp=True)
    seconds = played_step(gpt3, PROFILE.numbers, layout, batch).seconds
    assert seconds == pytest.approx(sum(entries(gpt3, layout, batch).values()), rel=0.03)


def test_interleaving_plays_faster_than_not(gpt3):
    plain = played_step(gpt3, PROFILE.numbers, Layout(tp=8, pp=8, sp=True), 16).seconds
    chunked = played_step(gpt3, PROFILE.numbers, Layout(tp=8, pp=8, vpp=4, schedule="interleaved", sp=True), 16).seconds
    assert chunked < plain


@pytest.mark.parametrize("schedule", ["zero-bubble", "dualpipe"])
def test_what_fills_the_bubble_plays_faster(gpt3, schedule):
    plain = played_step(gpt3, PROFILE.numbers, Layout(tp=8, pp=8, sp=True), 16).seconds
    filled = played_step(gpt3, PROFILE.numbers, Layout(tp=8, pp=8, schedule=schedule, sp=True), 16).seconds
    assert filled < plain


def test_uneven_chunks_wait_for_the_longest(llama):
    """126 layers on 16 · 7 chunks of one or two: every turn is as long as its longest chunk, which the closed form,
    in whole ranks, does not see.
    """
    layout = Layout(tp=8, pp=16, dp=128, vpp=7, schedule="interleaved", zero=1, sp=True)
    step = played_step(llama, PROFILE.numbers, layout, 2048)
    assert step.seconds > sum(entries(llama, layout, 2048).values()) == pytest.approx(step.closed_s)
    assert len(step.played.busy_s) == 16


def test_chunks_hold_the_whole_model(llama):
    held, again = chunk_counts(llama, Layout(pp=16, vpp=7, schedule="interleaved"))
    assert len(held) == 112
    assert np.sum(held, axis=0).tolist() == [126, 1, 1]
    assert np.sum(again, axis=0).tolist() == [126, 0, 0]  # embedding and head are kept
    some = chunk_counts(llama, Layout(pp=16, recompute="full", recompute_layers=3))[1]
    assert np.sum(some, axis=0).tolist() == [16 * 3, 0, 0]


def passes(job: Job, **policy):
    layout = Layout(tp=8, pp=2, sp=True, **policy)
    found = features(job, Grid.of([layout]), 16.0)
    return chunk_passes(job, PROFILE.numbers, [layout], found)[0].stages()


def test_recompute_is_in_the_backward_pass(llama):
    for one, other in zip(passes(llama), passes(llama, recompute="full"), strict=True):
        assert other.forward_s == one.forward_s
        assert other.backward_s <= one.backward_s + one.forward_s  # embedding and head are kept
        assert other.backward_s == pytest.approx(one.backward_s + one.forward_s, rel=0.03)
        assert 0 < one.weight_s < one.backward_s / 2


def test_recompute_of_some_layers_costs_their_share(llama):
    """63 layers a stage, 21 of them made again: a third of what all of them cost."""
    plain, third, full = (
        passes(llama),
        passes(llama, recompute="full", recompute_layers=21),
        passes(llama, recompute="full"),
    )
    for none, some, every in zip(plain, third, full, strict=True):
        share = (some.backward_s - none.backward_s) / (every.backward_s - none.backward_s)
        assert share == pytest.approx(1 / 3, rel=1e-3)


# --- the account of what is played --------------------------------------------------------------------------------

ACCOUNTED = [
    Layout(tp=8, dp=8, sp=True, recompute="full"), Layout(tp=8, pp=4, dp=4, zero=1, sp=True),
    Layout(tp=8, pp=16, dp=2, vpp=7, schedule="interleaved", zero=1, sp=True, recompute="full", recompute_layers=1),
    Layout(tp=8, pp=16, dp=2, schedule="dualpipe", sp=True), Layout(tp=8, pp=4, dp=4, schedule="zero-bubble", sp=True),
    Layout(tp=8, pp=4, dp=4, zero=3, sp=True), Layout(tp=8, pp=4, dp=4, zero=2, sp=True, shards=2),
]  # fmt: skip


@pytest.mark.parametrize("layout", ACCOUNTED, ids=lambda layout: layout.short)
def test_the_account_of_the_played_step_closes(llama, layout):
    """Work and exchanges of the rank that works longest, what it waits, and what comes after: nothing else."""
    step = played_step(llama, PROFILE.numbers, layout, 256)
    closed = closed_step(llama, PROFILE.numbers, layout, 256)
    assert sum(step.account.values()) == pytest.approx(step.seconds, rel=1e-12)
    assert set(step.account) == set(closed.account)
    assert all(seconds >= 0 for seconds in step.account.values())
    after = sum(step.account[name] for name in ("data parallel", "optimizer", "fixed"))
    assert step.seconds == pytest.approx(step.played.span_s + after, rel=1e-9)
    assert step.account["bubble"] == pytest.approx(step.played.bubble_s, abs=1e-6 * step.seconds)


def test_the_closed_form_stands_where_playing_is_too_long(gpt3):
    layout = Layout(tp=8, pp=8)
    short, long = best_step(gpt3, PROFILE.numbers, layout, 64), best_step(gpt3, PROFILE.numbers, layout, 2048)
    assert short.played is not None and short.seconds != short.closed_s
    assert long.played is None and long.seconds == long.closed_s


# layout, global batch → micro-batches × stages above 10,000
LONG = [
    (Layout(pp=8), 1250, False), (Layout(pp=8), 1251, True), (Layout(pp=8, dp=2), 2500, False),
    (Layout(pp=8, vpp=4, schedule="interleaved"), 312, False), (Layout(pp=8, vpp=4, schedule="interleaved"), 320, True),
    (Layout(), 10**9, True), (Layout(micro_batch=10**6), 10**9, False),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "batch", "expected"), LONG)
def test_what_is_too_long_to_play(layout, batch, expected):
    assert too_long_to_play(layout, batch) is expected


# --- many layouts -------------------------------------------------------------------------------------------------

# with and without states exchanged beside micro-batches, played and too long to be
TOGETHER = [
    *ACCOUNTED, Layout(tp=8, pp=16, dp=1, sp=True), Layout(tp=8, pp=2, dp=2, zero=3, shards=2, sp=True),
    Layout(tp=8, pp=4, dp=1, cp=2, sp=True, recompute="selective"), Layout(tp=8, pp=126, sp=True),
]  # fmt: skip


def test_layouts_worked_out_together_have_the_numbers_of_each_alone(llama):
    """To the last bit: what an answer says of a layout does not depend on what was looked at beside it."""
    assert {too_long_to_play(layout, 256) for layout in TOGETHER} == {False, True}
    together = best_steps(llama, PROFILE.numbers, TOGETHER, 256)
    for layout, step in zip(TOGETHER, together, strict=True):
        assert step == best_step(llama, PROFILE.numbers, layout, 256), layout.short


def test_no_layouts_have_no_steps(llama):
    assert best_steps(llama, PROFILE.numbers, [], 256) == []


def test_what_a_layout_does_not_exchange_it_does_not_wait_for(llama):
    """Beside others that do: an entry of 0 is 0, no rest of rounding."""
    alone, other = best_steps(llama, PROFILE.numbers, [ACCOUNTED[1], ACCOUNTED[5]], 256)
    assert alone.account["weight gathers"] == alone.account["gradient scatters"] == 0
    assert other.account["weight gathers"] > 0
