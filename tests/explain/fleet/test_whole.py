"""The report of whole fleets: what was planted is found, and what should change nothing changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.explain.fleet.whole import explain_fleet
from suanli.explain.summary import summary_of
from suanli.nouns.fleet import FleetReport, LostRank
from suanli.nouns.summary import RankSummary
from suanli.readers.traces.front import read_trace

Summaries = Callable[..., list[RankSummary]]
CLOCK_FIGURES = {"clock_offset_s": None}
SLOW = {"ranks": 6, "slow": {4: 1.3}}


def without_clocks(report: FleetReport) -> FleetReport:
    return replace(report, ranks=tuple(replace(row, **CLOCK_FIGURES) for row in report.ranks))


def test_a_planted_straggler_is_found_and_nobody_else(summaries: Summaries) -> None:
    report = explain_fleet(summaries(**SLOW))
    assert {each.rank for each in report.stragglers} == {4}
    step = next(each for each in report.stragglers if each.by == "step")
    assert step.slower_fraction == pytest.approx(0.3, abs=0.02)  # planted: 1.3 times, kernels vary by 1 %
    assert (step.times, step.of, step.beside) == (4, 4, 6)
    assert {each.what for each in report.stragglers if each.by == "kernel"} == {
        "ampere_bf16_s16816gemm_bf16_128x128", "vectorized_elementwise_kernel",
    }  # fmt: skip
    # the others wait for it: 3 layers of 400 + 100 µs, 0.3 longer: 450 µs a step, 4 steps, 5 ranks
    late = max(report.ranks, key=lambda row: row.waited_for_s)
    assert (late.rank, late.last) == (4, 4)
    assert late.waited_for_s == pytest.approx(5 * 4 * 450e-6, rel=0.05)
    assert {(each.waited_for, each.calls) for each in report.waits} == {(4, 4)}
    assert any(each.startswith("rank 4 computes ") for each in report.findings)


def test_no_straggler_where_none_is(summaries: Summaries) -> None:
    report = explain_fleet(summaries(ranks=6))
    assert report.stragglers == ()
    assert not any("computes" in each for each in report.findings)


def test_waiting_and_transfer_of_a_collective(summaries: Summaries) -> None:
    report = explain_fleet(summaries(**SLOW))
    (row,) = report.collectives
    assert (row.collective, row.group, row.group_size, row.ranks, row.calls) == (
        "all-reduce",
        "0 (default_pg)",
        6,
        6,
        4,
    )
    # the shortest kernel of each call is the transfer alone: 500 µs, ends up to 200 ns later
    assert row.transfer_s == pytest.approx(4 * 500e-6, abs=4 * 200e-9)
    assert row.bytes == 4 * 25_000_000 * 2
    # 2·(6−1)/6 of 50 MB in 500 µs
    assert row.busbw_bytes_per_s == pytest.approx(2 * 5 / 6 * 50e6 / 500e-6, rel=1e-3)
    assert row.link_bytes_per_s == 300e9 and row.above_link is False  # A100: NVLink of 600 GB/s both directions
    assert (row.last_rank, row.last_fraction) == (4, 1.0)
    # without the waiting the kernels hold the transfer alone, on each of 6 ranks
    assert row.total_s - row.waiting_s == pytest.approx(6 * row.transfer_s, abs=6 * 4 * 200e-9)


def test_a_transfer_above_the_link_is_flagged(summaries: Summaries) -> None:
    report = explain_fleet(summaries(ranks=4, transfer_ns=100_000))  # 1.5 × 50 MB in 100 µs: 750 GB/s
    assert [each.above_link for each in report.collectives] == [True]
    assert any("above the link of 300.0 GB/s" in each for each in report.findings)


def test_the_account_is_the_sum_of_the_ranks(summaries: Summaries) -> None:
    made = summaries(ranks=4)
    report = explain_fleet(made)
    assert report.peak_s == pytest.approx(sum(each.about.devices[0].account.peak_s for each in made), rel=1e-12)
    assert sum(each.seconds for each in report.account) == pytest.approx(report.peak_s, rel=1e-9)


def test_stages_and_experts(summaries: Summaries) -> None:
    report = explain_fleet(
        summaries(ranks=8, stages=2, stage_layers={1: 4}, received={k: 1000 * (1 + (k == 6)) for k in range(8)})
    )
    # 3 and 4 layers alike: 3 / 3.5 and 4 / 3.5 of the mean
    assert [each.ranks for each in report.stages] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [each.relative for each in report.stages] == pytest.approx([6 / 7, 8 / 7], rel=0.01)
    (group,) = report.experts
    # 4 calls of 1000 elements of 2 bytes, twice that on rank 6: mean 9/8 of it, so 16/9 − 1 above
    assert group.received_bytes == (8000,) * 6 + (16000,) + (8000,)
    assert (group.busiest, group.calls) == (6, 4)
    assert group.imbalance == pytest.approx(16 / 9 - 1)
    assert report.stragglers == ()  # a stage with more layers is no straggler


def test_a_missing_rank_is_told_and_the_rest_goes_on(summaries: Summaries) -> None:
    made = summaries(ranks=5)
    report = explain_fleet([made[0], made[1], made[4]])
    assert report.lost == (LostRank(path=None, ranks="2–3", reason="no trace of 2 of 5 ranks"),)
    assert "ranks 2–3: no trace of 2 of 5 ranks" in report.findings
    assert [row.rank for row in report.ranks] == [0, 1, 4]
    assert report.matched_fraction == 1.0
    assert report.collectives[0].ranks == 3 and report.collectives[0].group_size == 5


def test_a_lost_file_whose_rank_is_known_is_not_missing_too(summaries: Summaries) -> None:
    made = summaries(ranks=3)
    broken = LostRank(path="rank2.json", ranks="2", reason="broken")
    assert explain_fleet(made[:2], [broken]).lost == (broken,)


def test_a_rank_without_device_work_is_told(summaries: Summaries) -> None:
    made = summaries(ranks=3)
    nothing = {name: each[:0] for name, each in made[1].columns.items()}
    idle = replace(made[1], columns=nothing, about=replace(made[1].about, devices=(), steps=(), path="r1"))
    report = explain_fleet([made[0], idle, made[2]])
    assert report.lost == (LostRank(path="r1", ranks="1", reason="the trace has no work of a device"),)
    assert [row.rank for row in report.ranks] == [0, 2]


def test_two_traces_of_one_rank_are_an_error(summaries: Summaries) -> None:
    made = summaries(ranks=2)
    twin = replace(made[1], about=replace(made[1].about, rank=0, path="b/other.json"))
    with pytest.raises(InputError, match=r"^2 traces are of rank 0 in .*rank0\.json; got rank0\.json, other\.json; "
                       r"expected one trace a rank\. Give one job and one window of it at a time\.$"):  # fmt: skip
        explain_fleet([made[0], twin])


def test_without_numbers_calls_are_matched_by_their_order_in_the_step(summaries: Summaries) -> None:
    numbered, not_ = (explain_fleet(summaries(ranks=4, numbered=each, clocks={1: 10**9})) for each in (True, False))
    assert not_.matched_fraction == 1.0
    assert [row.waiting_s for row in not_.ranks] == [row.waiting_s for row in numbered.ranks]
    assert [row.clock_offset_s for row in not_.ranks] == [row.clock_offset_s for row in numbered.ranks]


@settings(max_examples=12)
@given(order=st.permutations(range(6)))
def test_the_order_of_files_changes_nothing(summaries: Summaries, order: list[int]) -> None:
    made = _kept(summaries)
    assert explain_fleet([made[place] for place in order]) == explain_fleet(made)


@settings(max_examples=12)
@given(offsets=st.lists(st.integers(-(10**15), 10**15), min_size=6, max_size=6))
def test_clocks_change_no_figure_but_their_own(
    summaries: Summaries, shift: Callable[[RankSummary, int], RankSummary], offsets: list[int]
) -> None:
    made = _kept(summaries)
    moved = explain_fleet([shift(each, ns) for each, ns in zip(made, offsets, strict=True)])
    plain = explain_fleet(made)
    assert without_clocks(moved) == without_clocks(plain)
    for row, still, ns in zip(moved.ranks, plain.ranks, offsets, strict=True):
        expected = round((still.clock_offset_s or 0) * 1e9) + ns - offsets[0]
        assert row.clock_offset_s == pytest.approx(expected / 1e9, rel=1e-15, abs=1e-15)


_CACHE: dict[int, list[RankSummary]] = {}


def _kept(summaries: Summaries) -> list[RankSummary]:
    return _CACHE.setdefault(0, summaries(**SLOW, steps=3))


def test_nothing_at_all() -> None:
    report = explain_fleet([])
    assert (report.ranks, report.account, report.peak_s, report.findings) == ((), (), 0, ())
    assert report.reasons["matched_fraction"] == "no rank communicates"


def test_random_rows_never_crash_and_never_wait_longer_than_they_last(
    rows_of: Callable[..., list[RankSummary]],
) -> None:
    draw = random.Random(3)
    for _ in range(30):
        ranks = [
            [
                {"start_ns": draw.randrange(10**6), "duration_ns": draw.randrange(10**5), "nth": draw.randrange(2),
                 "group": draw.choice(["a", None]), "sequence": draw.choice([-1, 1, 2]),
                 "collective": draw.choice(["all-reduce", "broadcast", "send and receive"]),
                 "call": draw.choice(["send", "recv"]), "peer": draw.choice([-1, 0, 1, 9])}
                for _ in range(draw.randrange(6))
            ]
            for _ in range(4)
        ]  # fmt: skip
        made = rows_of(*ranks)
        report = explain_fleet(made)
        for row, summary in zip(report.ranks, made, strict=True):
            assert 0 <= row.waiting_s <= summary.columns["duration_ns"].sum() / 1e9 + 1e-12
            assert row.matched <= row.communication == len(summary)
        assert sum(row.waiting_s for row in report.ranks) == pytest.approx(
            sum(row.waited_for_s for row in report.ranks), abs=1e-12
        )


@pytest.mark.shared
def test_two_real_ranks(shared: Path) -> None:
    """HTA's sampled pair: exchanges by send and receive kernels, without group or number, on one clock (± 0.1 ms)."""
    paths = [shared / "traces" / "files" / f"hta_sampled_rank{rank}.json.gz" for rank in (1, 0)]
    report = explain_fleet([summary_of(read_trace(path), digest=str(path)) for path in paths])
    assert [row.rank for row in report.ranks] == [0, 1] and report.world_size == 128
    assert report.lost[0].ranks == "2–127"
    # of ten pairs in the order of the steps four end within 0.4 ms of each other; six cannot be one call
    assert [row.matched for row in report.ranks] == [4, 4]
    assert sum(report.unmatched.values()) == 12
    # ends of these four differ by −55, 332, 8 and −189 µs: the lower median is −55
    assert report.ranks[1].clock_offset_s == pytest.approx(-55e-6)
    assert report.reasons["stragglers"] == "2 devices: a median of others needs 3"


def test_a_report_is_plain_json(summaries: Summaries) -> None:
    from suanli.nouns.result import Result

    text = Result(kind="explain", inputs={}, result=explain_fleet(summaries(**SLOW))).to_json()
    assert '"straggler_rule"' in text
