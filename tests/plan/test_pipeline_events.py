"""Pipelines played out: small cases worked out by hand, closed forms of equal stages, and laws of any order."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.plan.pipeline_events import StageTimes, closed_form_bubble, play
from suanli.plan.pipeline_orders import BACKWARD, FORWARD, INPUT, WEIGHT, orders

EQUAL = StageTimes(forward_s=1.0, backward_s=2.0, weight_s=1.0)


def stages(*pairs: tuple[float, float]) -> list[StageTimes]:
    return [StageTimes(forward_s=forward, backward_s=backward) for forward, backward in pairs]


# name, stages, options, span, busy of each rank; the clock is written beside
BY_HAND = [
    # F 0-1, B 1-3
    ("one rank", stages((1, 2)), {"pp": 1, "micro_batches": 1}, 3, (3,)),
    ("one rank, three micro-batches", stages((1, 2)), {"pp": 1, "micro_batches": 3}, 9, (9,)),
    # rank 0: F0 0-1, F1 1-2,                    B0 6-8, B1 11-13
    # rank 1:         F0 1-3, B0 3-6, F1 6-8, B1 8-11
    ("uneven stages", stages((1, 2), (2, 3)), {"pp": 2, "micro_batches": 2}, 13, (6, 10)),
    # rank 0: F0 0-1, F1 1-2,                        B0 7-9, B1 12-14
    # rank 1:         F0 1.5-3.5, B0 3.5-6.5, F1 6.5-8.5, B1 8.5-11.5; each way takes 0.5 more
    ("sends", stages((1, 2), (2, 3)), {"pp": 2, "micro_batches": 2, "send_s": 0.5}, 14, (6, 10)),
    # as `uneven stages`: rank 0 ends at 13, rank 1 at 11 and works 4 more
    ("tails", stages((1, 2), (2, 3)), {"pp": 2, "micro_batches": 2, "tails_s": (1, 4)}, 15, (7, 14)),
    # rank 0: F0 0-1, B0 5-7; rank 1: F0 1-2, B0 3-5
    ("one micro-batch", stages((1, 2), (1, 2)), {"pp": 2, "micro_batches": 1}, 6, (3, 3)),
    # two chunks a rank, stages 0 2 on rank 0 and 1 3 on rank 1, as many micro-batches as ranks: all forward first
    # rank 0: F00 0-1, F01 1-2, F20 2-3, F21 3-4;             B20 6-7, B21 7-8, B00 8-9, B01 9-10
    # rank 1:          F10 1-2, F11 2-3, F30 3-4, F31 4-5, B30 5-6, B31 6-7, B10 7-8, B11 8-9
    ("interleaved", stages((1, 1), (1, 1), (1, 1), (1, 1)), {"pp": 2, "micro_batches": 2, "schedule": "interleaved"},
     10, (8, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given_stages", "options", "span", "busy"), BY_HAND, ids=[row[0] for row in BY_HAND])
def test_by_hand(name, given_stages, options, span, busy):
    played = play(given_stages, **{"schedule": "1f1b", **options})
    assert played.span_s == pytest.approx(span)
    assert played.busy_s == pytest.approx(busy)
    assert played.idle_s == pytest.approx([span - each for each in busy])


def test_zero_bubble_by_hand():
    """F, b, W of one second each, two ranks, two micro-batches.

    rank 0: F0 0-1, F1 1-2, b0 3-4, W0 4-5, b1 5-6, W1 6-7
    rank 1:         F0 1-2, b0 2-3, F1 3-4, b1 4-5, W0 5-6, W1 6-7 (rank 1 may hold two: W0 waits)
    """
    played = play([EQUAL, EQUAL], pp=2, micro_batches=2, schedule="zero-bubble")
    assert played.span_s == 7
    assert played.most_held == (2, 2)


SHAPES = [(2, 4), (4, 8), (4, 16), (8, 16), (8, 24), (16, 32)]


@pytest.mark.parametrize(("pp", "micro_batches"), SHAPES)
@pytest.mark.parametrize(("schedule", "vpp"), [("1f1b", 1), ("interleaved", 2), ("interleaved", 5), ("zero-bubble", 1),
                                               ("dualpipe", 1)])  # fmt: skip
def test_equal_stages_wait_as_long_as_the_closed_form_says(schedule, vpp, pp, micro_batches):
    chunk = StageTimes(forward_s=1 / vpp, backward_s=2 / vpp, weight_s=1 / vpp)
    played = play([chunk] * (pp * vpp), pp=pp, micro_batches=micro_batches, schedule=schedule)
    assert played.bubble_s == pytest.approx(closed_form_bubble(schedule, EQUAL, pp, vpp))
    assert played.span_s == pytest.approx(3 * micro_batches + played.bubble_s)


@pytest.mark.parametrize(("forward", "backward", "weight"), [(1, 2, 0.9), (1, 2.2, 0.9), (0.8, 2, 0.7), (1, 3, 1)])
def test_closed_forms_hold_where_passes_are_not_equal(forward, backward, weight):
    stage = StageTimes(forward_s=forward, backward_s=backward, weight_s=weight)
    for schedule in ("1f1b", "zero-bubble"):
        played = play([stage] * 8, pp=8, micro_batches=24, schedule=schedule)
        assert played.bubble_s == pytest.approx(closed_form_bubble(schedule, stage, 8)), schedule


def test_weights_gradients_longer_than_a_forward_pass_do_not_fit_into_the_gaps():
    """Where W > F the closed form is a floor; 1F1B waits longer still."""
    stage = StageTimes(forward_s=0.7, backward_s=2, weight_s=0.8)
    waits = play([stage] * 8, pp=8, micro_batches=24, schedule="zero-bubble").bubble_s
    assert closed_form_bubble("zero-bubble", stage, 8) < waits < closed_form_bubble("1f1b", stage, 8)


# arXiv:2104.04473 §2.2, 2401.10241 Table 1, 2412.19437 Table 2: micro-batches a rank holds at most
@pytest.mark.parametrize(
    ("schedule", "expected"), [("1f1b", (8, 7, 6, 5, 4, 3, 2, 1)), ("zero-bubble", (8,) * 8), ("dualpipe", (9,) * 8)]
)
def test_micro_batches_held(schedule, expected):
    assert play([EQUAL] * 8, pp=8, micro_batches=32, schedule=schedule).most_held == expected


def test_interleaving_holds_more_on_the_first_rank():
    """2 (pp − 1) + (vpp − 1) pp + 1 chunks of a vpp-th of a stage (arXiv:2205.05198 §4.2.3): 14 + 16 + 1 of 3."""
    chunk = StageTimes(forward_s=1 / 3, backward_s=2 / 3)
    assert play([chunk] * 24, pp=8, micro_batches=32, schedule="interleaved").most_held[0] == 31


# --- laws ---------------------------------------------------------------------------------------------------------

CASES = st.sampled_from(
    [("1f1b", 3, 5, 1), ("1f1b", 4, 2, 1), ("interleaved", 3, 6, 2), ("interleaved", 2, 2, 3), ("zero-bubble", 4, 4, 1),
     ("zero-bubble", 3, 7, 1), ("dualpipe", 2, 4, 1), ("dualpipe", 4, 10, 1)]
)  # fmt: skip
TIMES = st.floats(0.1, 9)


@given(case=CASES, data=st.data(), send=st.floats(0, 2))
def test_no_rank_works_longer_than_the_step_and_none_for_nothing(case, data, send):
    """Work is kept whatever the order; the step is no shorter than the busiest rank or one micro-batch's way."""
    schedule, pp, count, vpp = case
    drawn = data.draw(st.lists(st.tuples(TIMES, TIMES, st.floats(0, 1)), min_size=pp * vpp, max_size=pp * vpp))
    each = [StageTimes(forward_s=f, backward_s=b, weight_s=b * part) for f, b, part in drawn]
    played = play(each, pp=pp, micro_batches=count, schedule=schedule, send_s=send)
    assert sum(played.busy_s) == pytest.approx(count * sum(one.forward_s + one.backward_s for one in each))
    assert played.span_s >= max(played.busy_s) - 1e-9
    way = sum(one.forward_s + one.backward_s - one.weight_s for one in each) + 2 * send * (pp * vpp - 1)
    assert played.span_s >= way - 1e-9
    assert all(idle >= -1e-9 for idle in played.idle_s)


@given(case=CASES, slower=st.floats(1, 3))
def test_slower_sends_never_make_a_step_faster(case, slower):
    schedule, pp, count, vpp = case
    spans = [
        play([EQUAL] * (pp * vpp), pp=pp, micro_batches=count, schedule=schedule, send_s=send).span_s
        for send in (0.0, 0.3, 0.3 * slower)
    ]
    assert spans == sorted(spans)


@pytest.mark.parametrize("case", [("1f1b", 4, 9, 1), ("interleaved", 4, 8, 3), ("zero-bubble", 5, 9, 1),
                                  ("dualpipe", 6, 14, 1)])  # fmt: skip
def test_every_pass_runs_once(case):
    """Each micro-batch passes forward and backward through every stage once, in whatever pieces."""
    schedule, pp, count, vpp = case
    seen = [each for own in orders(schedule, pp, count, vpp) for together in own for each in together]
    assert len(seen) == len(set(seen))
    if schedule == "dualpipe":  # half of them in either direction; stage s + pp is stage s from the other end
        expected = {(s, m) for s in chain(range(pp), range(pp, 2 * pp)) for m in range(count // 2)}
    else:
        expected = {(s, m) for s in range(pp * vpp) for m in range(count)}
    assert {(s, m) for kind, s, m in seen if kind == FORWARD} == expected
    assert {(s, m) for kind, s, m in seen if kind in (BACKWARD, INPUT)} == expected
    assert {each[1:] for each in seen if each[0] == WEIGHT} == {each[1:] for each in seen if each[0] == INPUT}
