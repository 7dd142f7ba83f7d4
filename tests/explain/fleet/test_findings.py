"""Findings in their own words, each from figures that are made for it; and none where nothing stands out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suanli.explain.fleet.findings import findings
from suanli.nouns.fleet import ExpertGroup, FleetCollective, FleetReport, LostRank, RankRow, Stage, Straggler


def rank(number: int, **said: Any) -> RankRow:
    plain: dict[str, Any] = {
        "device": 0, "name": None, "host": None, "path": "p", "steps": 1, "step_s": 1.0, "compute_s": 0.5,
        "exposed_communication_s": 0.0, "idle_s": 0.0, "window_s": 1.0, "waiting_s": 0.0, "waited_for_s": 0.0,
        "last": 0, "matched": 10, "communication": 10, "clock": 0, "clock_offset_s": 0.0, "clock_residual_s": 0.0,
        "attributed_fraction": None, "account": (), "step_times_s": (), "step_computes_s": (),
    }  # fmt: skip
    return RankRow(rank=number, **(plain | said))


def straggler(number: int, by: str, **said: Any) -> Straggler:
    plain: dict[str, Any] = {
        "device": 0, "by": by, "what": "gemm", "seconds": 0.013, "median_s": 0.010, "mad_s": 0.0, "threshold_s": 0.0105,
        "slower_fraction": 0.3, "times": 4, "of": 5, "beside": 8,
    }  # fmt: skip
    return Straggler(rank=number, **(plain | said))


def collective(**said: Any) -> FleetCollective:
    plain: dict[str, Any] = {
        "collective": "all-reduce", "group": "0", "group_size": 4, "ranks": 4, "calls": 2, "total_s": 1.0,
        "waiting_s": 0.0, "skew_median_s": 0.0, "skew_max_s": 0.0, "transfer_s": 1.0, "last_rank": 0,
        "last_fraction": 0.5, "bytes": 1, "algbw_bytes_per_s": 4e11, "busbw_bytes_per_s": 6e11, "formula": "f",
        "link_bytes_per_s": 4.5e11, "above_link": True,
    }  # fmt: skip
    return FleetCollective(**(plain | said))


QUIET = FleetReport(
    account=(), peak_s=4.0, attributed_fraction=None, ranks=tuple(rank(k) for k in range(4)), world_size=4,
    step_names=(),
    steps=(), kernels=(), collectives=(), matched_fraction=1.0, waits=(), stragglers=(), straggler_rule="",
    stages=(), experts=(), lost=(), findings=(), warnings=(),
)  # fmt: skip


def said(**parts: Any) -> list[str]:
    return list(findings(replace(QUIET, **parts)).findings)


def stage(place: int, relative: float | None) -> Stage:
    return Stage(stage=place, ranks=(place,), compute_s=1.0, idle_s=0, exposed_communication_s=0, relative=relative)


def experts(imbalance: float | None) -> ExpertGroup:
    return ExpertGroup(group="9", ranks=(0, 1, 2), calls=3, received_bytes=(1, 2, 3), mean_bytes=2.0, busiest=2,
                       imbalance=imbalance)  # fmt: skip


def test_nothing_stands_out() -> None:
    assert said() == []


@pytest.mark.parametrize(
    ("parts", "sentences"),
    [
        # 0.2 s of 4 s wait: 5 %, named once it is 1 %; all of it for rank 2, more than twice a quarter
        ({"ranks": (rank(0, waiting_s=0.2), rank(1), rank(2, waited_for_s=0.2, last=7, host="n7"), rank(3))},
         ["5.00 % of device time is spent in collectives before the last rank has come (200.0 ms over 4 devices)",
          "rank 2 on n7 is waited for most: 100.00 % of all waiting, last to 7 of 10 collectives"]),
        ({"ranks": (rank(0, waiting_s=0.03, waited_for_s=0.03), *QUIET.ranks[1:])}, []),  # 0.75 %
        # waited for evenly: nobody is named
        ({"ranks": tuple(rank(k, waiting_s=0.1, waited_for_s=0.1) for k in range(4))},
         ["10.00 % of device time is spent in collectives before the last rank has come (400.0 ms over 4 devices)"]),
        ({"stragglers": (straggler(3, "step"),)},
         ["rank 3 computes 30.00 % longer than the ranks beside it in 4 of 5 steps (13.00 ms against 10.00 ms)"]),
        ({"stragglers": (straggler(3, "kernel"), straggler(3, "kernel", what="x"), straggler(1, "kernel"))},
         ["rank 3 takes 6.000 ms longer than others in 2 kernels that it runs as often",
          "rank 1 takes 3.000 ms longer than others in 1 kernel that it runs as often"]),
        ({"stages": (stage(0, 0.8), stage(1, 1.2))},
         ["stage 1 computes 20.00 % more than the mean of 2 stages: the others wait for it"]),
        ({"stages": (stage(0, 0.95), stage(1, 1.05))}, []),
        ({"stages": (stage(0, None), stage(1, None))}, []),
        ({"experts": (experts(0.5),)},
         ["rank 2 receives 50.00 % more than the mean of the 3 ranks it exchanges tokens with"]),
        ({"experts": (experts(0.05),)}, []),
        ({"experts": (experts(None),)}, []),
        ({"collectives": (collective(), collective(above_link=False), collective(above_link=None))},
         ["all-reduce on group 0 moves 600.0 GB/s, above the link of 450.0 GB/s: reduced in the network, or fewer "
          "bytes moved than the call names (rows like this: 1)"]),
        ({"lost": (LostRank(path="rank3.json", ranks="3", reason="cut"),
                   LostRank(path=None, ranks="5–7", reason="gone"))},
         ["rank3.json: cut", "ranks 5–7: gone"]),
        ({"ranks": (rank(0), rank(1), rank(2, clock=1), rank(3, clock=1))},
         ["ranks fall into 2 sets that share no collective: no time is compared across them"]),
        ({"ranks": (rank(0), rank(1), rank(2, clock=None, clock_residual_s=None))},
         ["no matched collective, so no aligned clock: rank 2"]),
        ({"ranks": (rank(0, clock_residual_s=387e-6), rank(1))},
         ["clocks are aligned to 387.0 µs only: shorter skews say nothing"]),
        ({"ranks": (rank(0, clock_residual_s=99e-6), rank(1))}, []),
        ({"ranks": (rank(0, clock=None, clock_residual_s=None),)}, []),  # one rank alone has nobody to be aligned with
    ],
)  # fmt: skip
def test_sentences(parts: dict[str, Any], sentences: list[str]) -> None:
    assert said(**parts) == sentences
