"""Ranks of summaries: said, named, or counted; told where twice or missing."""

from __future__ import annotations

import pytest

from suanli.errors import InputError
from suanli.explain.fleet.ranks import missing, rank_all, rank_of_name, spans
from suanli.nouns.fleet import LostRank
from suanli.nouns.summary import RankAbout


def about(path: str, rank: int | None = None, digest: str = "") -> RankAbout:
    return RankAbout(version="1", path=path, format="kineto", rank=rank, digest=digest)


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank3.json", 3), ("job/rank_12.json.gz", 12), ("rank-7.pt.trace.json", 7), ("trace.rank=5.json", 5),
        ("RANK08.json", 8), ("rank=4/trace.json", 4), ("rank1/rank2.json", 2), ("run3_rank0_step9.json", 0),
        ("frank3.json", None), ("trace3.json", None), ("rank.json", None), ("a/b/c.json", None),
    ],
)  # fmt: skip
def test_the_rank_that_a_name_tells(path: str, rank: int | None) -> None:
    assert rank_of_name(path) == rank


def test_what_the_trace_says_stands_above_the_name() -> None:
    found = rank_all([about("rank5.json", rank=1), about("rank0.json")])
    assert (found.places, found.ranks, found.notes) == ((1, 0), (0, 1), ())


def test_ranks_that_nobody_says_are_counted_and_told() -> None:
    found = rank_all([about("a.json"), about("b.json", rank=0), about("c.json"), about("d.json"), about("e.json")])
    assert found.ranks == (0, 1, 2, 3, 4) and found.places == (1, 0, 2, 3, 4)
    assert found.notes == (
        "neither the trace nor the file name says a rank: numbered in the order of names "
        "(a.json, c.json, d.json and 1 more)",
    )


def test_a_trace_and_its_summary_are_one() -> None:
    found = rank_all(
        [about("rank0.json", digest="d"), about("rank0.json", digest="d"), about("rank1.json", digest="e")]
    )
    assert (found.places, found.notes) == ((0, 2), ("summaries of the same trace as another, left out: 1",))


def test_all_ranks_that_come_twice_are_told() -> None:
    with pytest.raises(InputError) as caught:
        rank_all([about("a/rank0.json"), about("b/rank0.json"), about("rank1.json"), about("c.json", rank=1)])
    assert [fault.sentence() for fault in caught.value.faults] == [
        "2 traces are of rank 0 in a/rank0.json; got rank0.json, rank0.json; expected one trace a rank. "
        "Give one job and one window of it at a time.",
        "2 traces are of rank 1 in rank1.json; got rank1.json, c.json; expected one trace a rank. "
        "Give one job and one window of it at a time.",
    ]


def test_missing_ranks() -> None:
    broken = LostRank(path="rank2.json", ranks="2", reason="broken")
    assert missing(6, [0, 1], [broken])[0].ranks == "3–5"
    assert missing(None, [0], []) == () and missing(2, [0, 1], []) == ()


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0–2, 5, 7–8"),
     (list(range(0, 40, 2)), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 …")],
)  # fmt: skip
def test_spans(numbers: list[int], text: str) -> None:
    assert spans(numbers) == text
