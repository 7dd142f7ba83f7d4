"""The account closes, whatever runs beside what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain import account as a
from suanli.explain.account import account_of, closes, entries_s, ideal_of, total_account
from suanli.explain.idle import HOST
from suanli.explain.sweep import Pieces
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import Account
from suanli.nouns.trace import Trace
from suanli.units import GIGA

MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
PEAKS = {"bf16": 1e12, "fp32": 1e11}  # 1000 and 100 FLOPs a nanosecond


def entries(
    trace: Trace, classes: list[int], attribution: Attribution | None, peaks: Mapping[str, float] = PEAKS,
    reason: str | None = None,
) -> tuple[dict[str, float], Mapping[str, str], int]:  # fmt: skip
    """Nanoseconds by entry over the whole window, idle left out; reasons; rows faster than their peak."""
    work = trace.work
    ideal = ideal_of(work, np.array(classes, dtype=np.uint8), attribution, peaks, reason)
    pieces = Pieces(np.arange(len(work)), work.start_ns, work.end_ns, np.zeros(len(work), dtype=np.int64))
    found = entries_s(pieces, ideal, work.end_ns - work.start_ns, 1)
    return {e: float(s[0]) * GIGA for e, s in found.items() if s[0]}, ideal.reasons, ideal.faster


def rows(*spans: tuple[int, int]) -> list[dict[str, int]]:
    return [{"start_ns": start, "end_ns": end} for start, end in spans]


def test_each_product_against_the_peak_of_its_own_dtype(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    # bf16: 50,000 FLOPs / 1000 = 50 ns of 100; fp32: 5,000 / 100 = 50 ns of 100
    trace = make(rows((0, 100), (100, 200)))
    found, _, _ = entries(trace, [0, 0], attribute([0, 0], [50_000, 5_000], ["bf16", "fp32"]))
    assert found == pytest.approx({a.USEFUL: 100, a.INEFFICIENCY: 100})


def test_recompute_is_its_ideal_time_and_its_rest_is_inefficiency(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    trace = make(rows((0, 100), (100, 200)))
    found, _, _ = entries(trace, [0, 0], attribute([0, 0], [60_000, 30_000], ["bf16", "bf16"], recompute=[1]))
    assert found == pytest.approx({a.USEFUL: 60, a.RECOMPUTE: 30, a.INEFFICIENCY: 110})


def test_products_side_by_side_share_their_time_and_close(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    # both run 0..100 and need 40 each: 80 useful, 20 lost, of 100 ns on the device
    trace = make([*rows((0, 100)), {"start_ns": 0, "end_ns": 100, "stream": 8}])
    found, _, _ = entries(trace, [0, 0], attribute([0, 0], [40_000, 40_000], ["bf16", "bf16"]))
    assert found == pytest.approx({a.USEFUL: 80, a.INEFFICIENCY: 20})


def test_unknown_work_beside_known_work_takes_none_of_its_time(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    # known 0..100 needs 80; unknown 50..150 owns what is left: 50
    trace = make([*rows((0, 100)), {"start_ns": 50, "end_ns": 150, "stream": 8}])
    found, _, _ = entries(trace, [0, 0], attribute([0, 0], [80_000, None], ["bf16", None]))
    assert found == pytest.approx({a.USEFUL: 80, a.INEFFICIENCY: 20, a.UNATTRIBUTED: 50})


def test_a_product_faster_than_its_peak_is_not_believed(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    trace = make(rows((0, 100)))
    found, _, faster = entries(trace, [0], attribute([0], [100_001], ["bf16"]))
    assert found == {a.UNATTRIBUTED: 100}
    assert faster == 1


def test_products_that_together_need_more_than_their_time_are_not_split(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    trace = make([*rows((0, 100)), {"start_ns": 0, "end_ns": 100, "stream": 8}])
    found, _, _ = entries(trace, [0, 0], attribute([0, 0], [70_000, 70_000], ["bf16", "bf16"]))
    assert found == {a.UNATTRIBUTED: 100}


def test_a_dtype_without_a_peak_has_its_own_entry(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    trace = make(rows((0, 100), (100, 200)))
    found, reasons, _ = entries(trace, [0, 0], attribute([0, 0], [50_000, 50_000], ["bf16", "fp4"]))
    assert found == pytest.approx({a.USEFUL: 50, a.INEFFICIENCY: 50, a.NO_PEAK: 100})
    assert reasons[a.NO_PEAK] == "the device has no sourced peak of fp4"


def test_without_any_peak_matmul_stays_whole_with_the_reason(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    trace = make(rows((0, 100), (100, 200)))
    found, reasons, _ = entries(trace, [0, 0], attribute([0, 0], [1, None], ["bf16", None]), {}, "unknown device")
    account = account_of({e: ns / GIGA for e, ns in found.items()}, 200 / GIGA, reasons)
    assert [(each.entry, each.fraction) for each in account.entries] == [(a.MATMUL, 1.0)]
    assert account.reasons == {a.MATMUL: "unknown device"}


def test_without_an_attribution_matmul_is_not_attributed(make: Callable[..., Trace]) -> None:
    found, reasons, _ = entries(make(rows((0, 100))), [0], None)
    assert found == {a.UNATTRIBUTED: 100}
    assert reasons == {a.UNATTRIBUTED: "no FLOPs were attributed to kernels"}


def test_the_order_of_owners(make: Callable[..., Trace]) -> None:
    # all end at 100; each class starts 10 later than the one below it: copy 0, peer 10, comm 20, compute 30, matmul 40
    spans = [{"start_ns": 10 * k, "end_ns": 100, "stream": k} for k in range(5)]
    found, _, _ = entries(make(spans), [COPY, PEER, COMM, COMPUTE, MATMUL], None)
    assert found == pytest.approx({a.COPIES: 10, a.PEER: 10, a.COMMUNICATION: 10, a.OTHER: 10, a.UNATTRIBUTED: 60})


EVENTS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(0, 4), st.integers(0, 2), st.floats(0, 1)),
    min_size=1, max_size=14,
)  # fmt: skip


@given(EVENTS, st.randoms(use_true_random=False))
def test_it_closes_and_does_not_depend_on_the_order_of_the_file(
    make: Callable[..., Trace],
    attribute: Callable[..., Attribution],
    events: list[tuple[int, int, int, int, float]],
    random: object,
) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (whole(make, attribute, each) for each in (events, shuffled))
    assert closes(first.entries, first.peak_s)
    for entry in a.ENTRIES:
        assert first.seconds(entry) == pytest.approx(second.seconds(entry), abs=1e-15)


def whole(
    make: Callable[..., Trace], attribute: Callable[..., Attribution], events: list[tuple[int, int, int, int, float]]
) -> Account:
    """The account of events (start, length, class, dtype, part of the peak), idle as the host's."""
    trace = make([{"start_ns": s, "end_ns": s + n, "stream": k} for k, (s, n, *_) in enumerate(events)])
    # rows of one start and end may stand in any order: sort what is known of them alike
    order = sorted(range(len(events)), key=lambda k: (events[k][0], events[k][0] + events[k][1]))
    ordered = [events[k] for k in order]
    dtypes = [("bf16", "fp32", None)[d] for *_, d, _ in ordered]
    flops = [part * n * PEAKS[t] / GIGA if t else None for (_, n, _, _, part), t in zip(ordered, dtypes, strict=True)]
    attribution = attribute([c for _, _, c, *_ in ordered], flops, dtypes)
    found, reasons, _ = entries(trace, [c for _, _, c, *_ in ordered], attribution)
    window = max(s + n for s, n, *_ in events) - min(s for s, *_ in events)
    idle = window - sum(found.values())
    return account_of({e: ns / GIGA for e, ns in found.items()} | {HOST: max(idle, 0.0) / GIGA}, window / GIGA, reasons)


def test_an_account_that_does_not_close_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="does not close"):
        account_of({a.OTHER: 1.0}, 1.1, {})
    with pytest.raises(AssertionError, match="a negative entry"):
        account_of({a.OTHER: 1.5, a.COPIES: -0.5}, 1.0, {})


def test_accounts_add_up() -> None:
    one = account_of({a.OTHER: 1.0, a.COPIES: 1.0}, 2.0, {})
    other = account_of({a.OTHER: 2.0}, 2.0, {})
    found, total = total_account((one, other))
    assert total == 4.0
    assert [(each.entry, each.seconds, each.fraction) for each in found] == [
        (a.COPIES, 1.0, 0.25),
        (a.OTHER, 3.0, 0.75),
    ]
    assert total_account(()) == ((), 0)
    assert one.seconds("nothing of that name") == 0.0
    assert not closes(found, 4.1)
