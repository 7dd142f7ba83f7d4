"""Linear speed-up in its forms, the laws, and projections to more GPUs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suanli
from suanli.catalog.scaling import projectable, published_series, usual
from suanli.errors import InputError
from suanli.formulas import scaling as formulas
from suanli.nouns.scaling import MIXED, STRONG, UNKNOWN, WEAK, Figure, Series, Size
from suanli.plan import laws
from suanli.plan.scale import analyse, kind_of
from suanli.plan.scale_check import agreement, projections, width_of
from suanli.readers.sizes import read_sizes

SLOPE = -0.016


def series(rows, name="step_time_s", batches=None) -> Series:
    return Series(
        name="t",
        sizes=tuple(
            Size(gpus=gpus, figures={name: Figure(value=value)}, global_batch=None if batches is None else batches[at])
            for at, (gpus, value) in enumerate(rows)
        ),
    )


# --- forms --------------------------------------------------------------------------------------------------------

MEGASCALE = """gpus,step_time_s,tokens_per_s,mfu_pct,global_batch
3072,23.66,531.9k,59.1,6144
12288,6.34,1984.0k,55.2,6144
"""


def test_megascale(tmp_path) -> None:
    """arXiv:2402.15627 Table 2: 23.66/6.34/4 = 0.93297; 1984.0/531.9/4 = 0.9325; 55.2/59.1 = 0.9340."""
    path = tmp_path / "megascale.csv"
    path.write_text(MEGASCALE)
    pair = suanli.scale(path).pairs[0]
    assert {form.by: round(100 * form.ratio, 2) for form in pair.forms} == {
        "step_time_s": 93.3, "tokens_per_s": 93.25, "mfu": 93.4,
    }  # fmt: skip
    step = next(form for form in pair.forms if form.by == "step_time_s")
    assert round(100 * step.ratio, 3) == 93.297
    assert pair.agree is True
    assert (pair.from_, pair.to) == (3072, 12288)  # not "a thousand to ten thousand"


MLPERF = """gpus,minutes,step_time_s,round,machine
3584,{},2.6005,v3.0,CoreWeave
10752,{},0.9296,v3.1,Eos
"""


@pytest.mark.parametrize(("minutes", "percent"), [(("10.9", "3.9"), 93.16), (("10.940", "3.916"), 93.12)])
def test_mlperf_h100(tmp_path, minutes, percent) -> None:
    path = tmp_path / "mlperf.csv"
    path.write_text(MLPERF.format(*minutes))
    found = suanli.scale(path, metric="minutes")
    assert {form.by: round(100 * form.ratio, 2) for form in found.pairs[0].forms} == {
        "minutes": percent, "step_time_s": 93.25,
    }  # fmt: skip
    assert found.warnings == (
        "times to train mix convergence in: a larger batch takes more samples, so they tell more than speed-up",
        "the global batch is not known: times are compared as if a step did the same work at every size",
        "round differs (v3.0, v3.1): the ratio compares those too",
        "machine differs (CoreWeave, Eos): the ratio compares those too",
    )


def test_forms_that_disagree_are_told(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("gpus,step_time_s,mfu,global_batch\n8,10.00,40.0%,64\n16,6.00,38.0%,64\n")
    found = suanli.scale(path)
    assert found.pairs[0].agree is False
    assert found.warnings[0].startswith(
        "8 → 16 GPUs: step_time_s says 83.3333 %, mfu 95.0000 %, further apart than their last digits allow"
    )


@given(
    base=st.integers(1, 1000), times=st.integers(2, 16), seconds=st.floats(0.1, 100), drop=st.floats(0.5, 1.0),
    batch=st.integers(1, 10_000), weak=st.booleans(),
)  # fmt: skip
def test_all_forms_are_one_where_the_work_is_known(base, times, seconds, drop, batch, weak) -> None:
    """From one efficiency, strong or weak: step time, tokens/s and tokens/s/GPU give the same ratio."""
    sizes = []
    for gpus, ratio in ((base, 1.0), (base * times, drop)):
        work = batch * gpus if weak else batch * base
        rate = batch / seconds * ratio  # sequences a second of one GPU
        figures = {
            "step_time_s": work / (rate * gpus),
            "tokens_per_s": rate * gpus * 2048,
            "tokens_per_s_per_gpu": rate * 2048,
        }
        sizes.append(Size(gpus=gpus, figures={name: Figure(value=value) for name, value in figures.items()},
                          global_batch=work))  # fmt: skip
    found = analyse(Series(name="t", sizes=tuple(sizes)), by=None, slope=SLOPE)
    assert found.kind == (WEAK if weak else STRONG)
    for form in found.pairs[0].forms:
        assert form.ratio == pytest.approx(drop, rel=1e-9)
    assert found.sizes[-1].speedup == pytest.approx(drop * times, rel=1e-9)


@pytest.mark.parametrize(
    ("batches", "kind"),
    [([64, 64, 64], STRONG), ([8, 16, 32], WEAK), ([8, 16, 16], MIXED), ([64, None, 64], UNKNOWN), (None, UNKNOWN)],
)
def test_kinds(batches, kind) -> None:
    assert kind_of(series([(1, 8.0), (2, 4.1), (4, 2.2)], batches=batches)) == kind


def test_the_finest_figure_is_compared(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("gpus,step_time_s,mfu_pct,minutes,gbs\n8,10.000,40,600.000,64\n16,5.100,39,301.000,64\n")
    assert suanli.scale(path).by == "step_time_s"
    assert suanli.scale(path, metric="mfu").by == "mfu"


# --- laws ---------------------------------------------------------------------------------------------------------

GPUS = (8, 16, 32, 64, 128, 256)
MADE = {
    "amdahl": ({"serial": 1e-3}, lambda n: formulas.amdahl(n, 1e-3)),
    "usl": ({"contention": 1e-3, "coherency": 2e-6}, lambda n: formulas.usl(n, 1e-3, 2e-6)),
    "power": ({"per_doubling": -0.04}, lambda n: formulas.power_law(n, -0.04, 8)),
}


@pytest.mark.parametrize("law", MADE)
def test_a_law_is_found_again(law) -> None:
    """Points made by a law: its parameters come back and its projection is exact (the power law leans on the usual)."""
    wanted, shape = MADE[law]
    points = [(gpus, 1000 * shape(gpus)) for gpus in GPUS]
    found = laws.fit_law(law, points, -0.04)
    for name, value in wanted.items():
        assert found.parameters[name] == pytest.approx(value, rel=0.02), name
    assert found.rate(1024) == pytest.approx(1000 * shape(1024), rel=5e-3)


def test_usl_has_a_peak() -> None:
    assert formulas.usl_peak(1e-3, 2e-6) == pytest.approx(math.sqrt((1 - 1e-3) / 2e-6))
    points = [(gpus, MADE["usl"][1](gpus)) for gpus in GPUS]
    assert laws.fit_law("usl", points, SLOPE).peak_gpus == pytest.approx(706.8, rel=0.05)
    whole = {gpus: gpus * formulas.usl(gpus, 1e-3, 2e-6) for gpus in (600, 707, 800)}
    assert max(whole, key=lambda gpus: whole[gpus]) == 707


def test_gustafson_by_hand() -> None:
    assert formulas.gustafson(4, 0.2) == pytest.approx(0.85)  # 1 − 0.2·3/4
    assert formulas.amdahl(4, 0.2) == pytest.approx(0.625)  # 1/(1 + 0.6)


def test_a_law_takes_the_place_of_the_power_law_only_where_it_is_better() -> None:
    straight = [(gpus, MADE["power"][1](gpus)) for gpus in GPUS]
    bent = [(gpus, MADE["amdahl"][1](gpus)) for gpus in GPUS]
    assert laws.choose(straight, -0.04)[0] == "power"
    assert laws.choose(bent, -0.04)[0] in ("amdahl", "usl")
    assert laws.choose(bent[:3], -0.04)[0] == "power"  # three sizes: nothing can be held out for the others


@given(st.lists(st.floats(0.2, 1.2), min_size=2, max_size=7), st.integers(1, 64))
def test_any_series_gives_a_finite_projection_inside_its_interval(rates, first) -> None:
    rows = [(first * 2**at, rate) for at, rate in enumerate(rates)]
    target = rows[-1][0] * 4
    found = analyse(series(rows, "tokens_per_s_per_gpu"), by=None, project=(target,), slope=SLOPE, width=4.0)
    one = found.projection[0]
    assert 0 < one.low < one.ratio < one.high < math.inf
    assert one.speedup == pytest.approx(one.ratio * target / first)
    assert found.fit is None or found.fit.chosen
    assert (found.fit is None) == (len(rates) < 3)


# --- against what was published -----------------------------------------------------------------------------------


def test_largest_sizes_of_published_series() -> None:
    """Each series' largest size from its smaller ones; slope and width from the other series."""
    found = projections(published_series())
    over = agreement(found)
    assert over.n == len(projectable(published_series())) == 37
    assert over.median <= 0.015
    assert over.median < over.constant_median
    assert over.constant_median == pytest.approx(0.024, abs=2e-3)
    assert over.ninetieth <= 0.10
    assert 0.85 <= over.coverage <= 0.95


def test_verify_prints_them() -> None:
    (row,) = suanli.verify("scaling").summary
    assert (row.n, row.failed, row.mape_fitted) == (37, 0, None)
    assert row.median_held_out == pytest.approx(0.0140, abs=2e-4)
    assert row.ninetieth_held_out == pytest.approx(0.070, abs=2e-3)
    assert row.coverage == pytest.approx(34 / 37)


def test_what_ships_is_what_the_series_say() -> None:
    """scaling_usual.toml is what scripts/fit_scaling.py finds today."""
    from suanli.catalog.scaling import slope_of

    known, found = usual(), projections(published_series())
    assert known.slope_per_doubling == pytest.approx(slope_of(published_series()), abs=1e-6)
    assert known.interval_units == pytest.approx(width_of(found), abs=1e-6)
    assert known.series == len(found)


# --- what cannot be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("64:1.0", "one size alone says nothing of scaling in --points; got 1 point; expected two numbers of GPUs, or "
                   "more."),
        ("64:1.0,64:2.0", "a size is given twice in --points; got 64 GPUs; expected each number of GPUs once. Keep one "
                          "row of each, or their mean."),
        ("64:0,128:1", "step_time_s is not possible in --points; got '0'; expected a number above 0."),
        ("64:-1,128:1", "step_time_s is not possible in --points; got '-1'; expected a number above 0."),
         ("64:1.0,128", "a point has no figure in --points; got '128'; expected GPUS:FIGURE, like 64:1.0."),
         ("64:1.0s,128:500", "step_time_s is written with a unit and without in --points; got '1.0s' (64 GPUs) and "
                             "'500' (128 GPUs); expected all with their unit, or all without."),
         ("64:-1,64:2,64:3,8:1", "a size is given twice in --points; got 64 GPUs"),
         ("64:1.0,x:2", "gpus is not possible in --points; got 'x'; expected a whole number, 1 to 1,000,000,000."),
    ],
)  # fmt: skip
def test_faults_of_points(points, message) -> None:
    with pytest.raises(InputError) as caught:
        suanli.scale(points=points, metric="time")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "the columns are not there in {file}; got 'a', 'b'; expected a column gpus and one of "
                       "step_time_s"),
        ("gpus\n1\n", "the columns are not there in {file}; got 'gpus'; expected a column gpus and one of"),
        ("gpus,mfu\n", "no rows in {file}; expected a column gpus and one of step_time_s"),
        ("gpus,mfu\n8,0.4\n16,41\n", "mfu is above 100 % in {file}, line 3; got '41'; expected a part of 1, a "
                                     "percentage like 41%, or a column mfu_pct."),
        ("gpus,mfu\n8,40%\n16,0.4\n", "mfu is written with a unit and without in {file}; got '40%' (line 2) and '0.4' "
                                      "(line 3); expected all with their unit, or all without."),
        ("gpus,mfu\n8,0.4\n", "one size alone says nothing of scaling in sizes.csv; got 1 point; expected two numbers "
                               "of GPUs, or more."),
        ("gpus,mfu\n8,\n16,0.4\n", "no figure is there for every size in"),
        ("series,gpus,mfu\na,8,0.4\nb,16,0.4\n", "several series in --series of {file}; got 2 of them; expected the "
                                                 "name of one, or a part of it that no other has"),
    ],
)  # fmt: skip
def test_faults_of_files(tmp_path, text, message) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        suanli.scale(path)
    assert message.format(file=path) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "gpus,step_time_s\n8,1.0s\n16,600ms\n",
        "gpus,mfu_pct\n8,40%\n16,39\n",
        "gpus,tokens_per_s\n8,900\n16,1.7k\n",
    ],
    ids=["each its own unit", "the column is of percent", "a suffix of a count is no unit"],
)
def test_units_that_are_clear(tmp_path, text) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text(text)
    assert suanli.scale(path).sizes[-1].ratio > 0.8


@pytest.mark.parametrize(("first", "told"), [("1.0", False), ("0.01", True)])
def test_a_jump_that_no_cluster_makes_is_doubted(first, told) -> None:
    """8 → 16 GPUs from 0.01 s to 0.55 s: a GPU does 110 times less."""
    warnings = suanli.scale(points=f"8:{first},16:0.55", metric="time", global_batch=8).result.warnings
    jump = "8 → 16 GPUs: the rate of one GPU changes by a factor of 110: is a figure in another unit?"
    assert (jump in warnings) is told


def test_a_series_is_chosen_by_a_part_of_its_name(tmp_path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("series,gpus,mfu\nBig A,8,0.4\nsmall,8,0.3\nBig A,16,0.39\nsmall,16,0.2\n")
    assert read_sizes(path, "big").name == "Big A"
    assert suanli.scale(path, series="small").sizes[-1].ratio == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "one series of sizes is needed in --points; expected FILE.csv, JSON files of `suanli mfu`, or "
             "--points 64:1.0,128:1.9 with --metric."),
        ({"points": "1:2,2:1"}, "points need to say what they are in --metric; expected one of step_time_s, minutes"),
        ({"points": "1:2,2:1", "metric": "sped"}, "unknown metric 'sped' in --metric"),
        ({"points": "1:2,2:1.1", "metric": "time", "project": "2"},
         "a projection is to more GPUs than were measured in --project; got '2'; expected above 2."),
        ({"points": "1:2,2:1.1", "metric": "time", "project": "x"}, "--project"),
    ],
)  # fmt: skip
def test_faults_of_requests(request_, message) -> None:
    with pytest.raises(InputError) as caught:
        suanli.scale(**request_)
    assert message in str(caught.value)


@pytest.mark.parametrize("points", [5, [1, 2], [(8, 1, 2)], object(), b"64:1,128:2", [], {}])
def test_points_of_other_kinds_are_errors_of_ours(points) -> None:
    with pytest.raises(InputError):
        suanli.scale(points=points, metric="time")


@pytest.mark.parametrize("file", [3, b"x", [], [3]])
def test_a_file_is_a_path(file) -> None:
    with pytest.raises(InputError, match=r"not a file in FILE\.csv"):
        suanli.scale(file)


def test_half_a_gpu_is_none() -> None:
    with pytest.raises(InputError, match="gpus is not possible"):
        suanli.scale(points="64.5:1,128:2", metric="time")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"series": "foo"}, "the file has one series, without a name"),
        ({"global_batch": 64}, "the sizes say their batch themselves in --global-batch; got 64 beside 64, 128"),
    ],
)
def test_options_that_a_file_does_not_take(tmp_path, options, message) -> None:
    path = tmp_path / "x.csv"
    path.write_text("gpus,mfu,gbs\n8,0.4,64\n16,0.39,128\n")
    with pytest.raises(InputError, match=message):
        suanli.scale(path, **options)


def test_a_batch_beside_a_file_that_says_none(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("gpus,step_time_s\n8,1.00\n16,0.52\n")
    assert suanli.scale(path).result.kind == UNKNOWN
    assert suanli.scale(path, global_batch=64).result.kind == STRONG


@pytest.mark.parametrize("text", ["gpus,mfu\n64,0.4,9,9\n128,0.3\n", 'gpus,mfu\n64,0.4\n128,"0.3\n'])
def test_a_torn_table_is_refused(tmp_path, text) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError):
        suanli.scale(path)


def test_results_of_mfu_are_sizes() -> None:
    runs = [suanli.mfu("llama-3-8b", gpu="h100-sxm", gpus=gpus, seq=8192, tokens_per_second=rate)
            for gpus, rate in ((8, 64_000), (16, 124_000), (32, 240_000))]  # fmt: skip
    found = suanli.scale(points=runs, project=64)
    assert [round(row.ratio, 4) for row in found.sizes] == [1.0, 0.9688, 0.9375]
    assert found.projection[0].gpus == 64


@given(st.text(alphabet="0123456789:,.eE-x%sm ", max_size=40))
def test_junk_points(text) -> None:
    try:
        suanli.scale(points=text, metric="time")
    except InputError as problem:
        assert "--points" in str(problem)
