"""The spread of a utilisation taken from published runs: earned on publications left out, and checked on them."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.devices import find_device
from suanli.catalog.runs import published_runs
from suanli.measure import flops_per_token
from suanli.nouns.workload import Workload
from suanli.plan.typical import comparable_runs, nearest, typical_mfu
from suanli.plan.typical_spread import (
    FEWEST,
    JUDGED,
    HeldOut,
    half_width,
    held_out,
    typical_half_width,
    width_among,
)
from suanli.recount import arch_of, letters_of
from suanli.units import GIGA, HOUR

CAUSAL = find_convention("causal")
KINDS = (("h100-sxm", "bf16"), ("a100-80gb-sxm", "bf16"), ("h100-sxm", "fp8"))


def found(gpu: str, dtype: str) -> tuple[HeldOut, ...]:
    return held_out(find_device(gpu), dtype, CAUSAL)


@pytest.mark.parametrize(
    ("errors", "width"),
    [([0.1 * place for place in range(1, 20)], 1.8), ([-0.3, 0.1], 0.3), ([0.5] * 9 + [9.0], 9.0)],
    ids=["18th of 19: 20 · 0.9", "two: the larger", "ten: 11 · 0.9 is the 10th"],
)
def test_half_width(errors: list[float], width: float) -> None:
    assert half_width(errors) == pytest.approx(width)


@pytest.mark.parametrize(("gpu", "dtype"), KINDS)
def test_no_run_is_judged_by_its_own_publication(gpu: str, dtype: str) -> None:
    """The error is that of the median of the nine nearest runs of other publications."""
    rows, every = found(gpu, dtype), comparable_runs(find_device(gpu), dtype, CAUSAL)
    assert len(rows) >= 60
    for each in rows[::7]:
        size, mfu, run = each.row
        near = nearest([row for row in every if row[2].group != run.group], size, run.gpu_count, 9)
        assert each.error == math.log(median(row[1] for row in near) / mfu)


def test_the_best_of_a_publication_counts_once() -> None:
    keys = [(each.row[2].group, each.row[2].model, each.row[2].gpu_count) for each in found(*KINDS[0])]
    assert len(keys) == len(set(keys))


def inside(rows: tuple[HeldOut, ...]) -> list[bool]:
    """Each publication's runs against the interval that the others give."""
    hits = []
    for each in rows:
        size, _, run = each.row
        others = tuple(other for other in rows if other.row[2].group != run.group)
        width, _ = width_among(others, size, run.gpu_count)
        assert width is not None
        hits.append(abs(each.error) <= width)
    return hits


def test_the_interval_holds_nine_of_ten_runs_of_publications_left_out() -> None:
    """Neither the median nor the width knows the publication: 256 runs, 91 %; each kind by itself 87 to 94 %."""
    hits = [inside(found(*kind)) for kind in KINDS]
    together = [hit for each in hits for hit in each]
    assert 0.88 <= sum(together) / len(together) <= 0.94
    assert all(0.85 <= sum(each) / len(each) <= 0.96 for each in hits)


def test_the_width_of_the_largest_run() -> None:
    """405B on 16,384 H100: the 19th of the 20 nearest errors; nothing of that run is in the table of runs."""
    assert not [run for run in published_runs() if run.gpu_hours == 30_840_000]
    width, why = typical_half_width(405_853_388_800, find_device("h100-sxm"), "bf16", CAUSAL, 16384)
    rows = found(*KINDS[0])
    near = nearest([each.row for each in rows], 405_853_388_800, 16384, JUDGED)
    errors = {each.row[2].id: abs(each.error) for each in rows}
    assert width == sorted(errors[run.id] for *_, run in near)[18]
    assert why == (
        "20 published runs most like it, of 5 publications, each told from the runs of the others: nine of ten lie "
        f"within a factor of {math.exp(width):.2f}"
    )


def test_too_few_runs_say_nothing() -> None:
    width, why = width_among(found(*KINDS[0])[: FEWEST - 1], 1e9, 8)
    assert width is None
    assert why == "9 published runs that those of other publications can be held against: too few"


# --- hours of whole programmes ------------------------------------------------------------------------------------

DEVICES = {"H100": "h100-sxm", "A100-80GB": "a100-80gb-sxm", "A100-40GB": "a100-40gb-sxm"}


def programmes() -> dict[str, float]:
    """Hours published over hours planned (goodput 1: their failures are not known), in half-widths of the interval."""
    units = {}
    for run in published_runs():
        known: Any = run.gpu_hours and run.tokens_trained_b and run.tokens_trained_b >= 100
        if not known or run.gpu not in DEVICES or run.group in ("recalled", "estimate"):
            continue
        device, letters = find_device(DEVICES[run.gpu]), letters_of(run)
        n = (run.params_active_b or run.params_total_b or 0) * GIGA
        work = Workload(phase="train", seq=letters.seq) if letters else None
        per = flops_per_token(arch_of(letters), work, CAUSAL, "none").model if letters and work else 6 * n
        mfu = typical_mfu(int(n), device, "bf16", CAUSAL, run.gpu_count).mfu
        width, _ = typical_half_width(n, device, "bf16", CAUSAL, run.gpu_count)
        assert width is not None and run.gpu_hours and run.tokens_trained_b
        hours = per * run.tokens_trained_b * GIGA / (mfu * device.peak_flop_per_s("bf16") * HOUR)
        units[f"{run.model} {run.id}"] = math.log(run.gpu_hours / hours) / width
    return units


def test_hours_of_whole_programmes() -> None:
    """What the page says: of 15 programmes 11 lie inside without any goodput, and the four outside took longer, for
    hours of a programme hold what no step shows."""
    units = programmes()
    outside = {name: value for name, value in units.items() if abs(value) > 1}
    assert len(units) == 15
    names = [name.split()[0] for name in sorted(outside)]
    assert names == ["Llama-3-70B", "Llama-3.1-8B", "Llama-3.2-1B", "StarCoder-15.5B"]
    assert all(value > 1 for value in outside.values())
