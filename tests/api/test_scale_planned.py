"""The planner as a law of scaling: the step `layout` has, times one factor; when it wins, when it cannot be used."""

from __future__ import annotations

import math
from typing import Any

import pytest

import suanli
from suanli.errors import InputError
from suanli.nouns.scaling import Figure, PlannedSize, Planner, Series, Size
from suanli.plan import laws
from suanli.plan.scale import analyse, planned_rates

pytest.importorskip("numpy")
SLOPE = -0.016
GPUS = (64, 128, 256, 512)
MODEL: dict[str, Any] = {"model": "llama-3-8b", "gpu": "h100-sxm", "seq": 4096, "pin": "tp=2,pp=1"}


def step(gpus: int, batch: int) -> float:
    """What `suanli layout` says of the same size."""
    options = {"gpu": "h100-sxm", "seq": 4096, "pin": "tp=2,pp=1", "top": 1}
    return suanli.layout("llama-3-8b", gpus=gpus, global_batch=batch, **options).layouts[0].step_time_s


def points(batches: dict[int, int], factor: float = 1.25) -> str:
    return ",".join(f"{gpus}:{factor * step(gpus, batch)!r}" for gpus, batch in batches.items())


@pytest.fixture(scope="module")
def strong() -> Any:
    """Steps exactly a quarter longer than planned, one batch at every size."""
    return suanli.scale(
        points=points(dict.fromkeys(GPUS, 512)), metric="time", global_batch=512, project="1024", **MODEL
    )


def test_the_step_is_that_of_layout(strong: Any) -> None:
    assert [each.gpus for each in strong.planner.sizes] == [*GPUS, 1024]
    assert {each.global_batch for each in strong.planner.sizes} == {512}
    for each in strong.planner.sizes:
        assert each.step_time_s == step(each.gpus, 512)
        assert each.layout.startswith("tp2 ")


def test_one_factor_is_found_and_the_law_wins(strong: Any) -> None:
    """A quarter longer is a rate of 0.8; nothing is left over, so held out it is exact and projects."""
    fit = strong.fit
    assert (fit.law, fit.chosen) == ("planner", True)
    assert [(each.name, each.value) for each in fit.parameters] == [("factor", pytest.approx(0.8, rel=1e-9))]
    assert fit.parameters[0].low == pytest.approx(0.8) == fit.parameters[0].high
    assert fit.held_out == pytest.approx(0, abs=1e-9)
    rate = {gpus: 1 / (gpus * step(gpus, 512)) for gpus in (64, 1024)}
    assert strong.projection[0].ratio == pytest.approx(rate[1024] / rate[64])
    assert strong.notes[-1] == (
        "the planner's projection has the interval of the other laws: no published series judged its own"
    )


def test_weak_scaling_keeps_the_part_of_a_gpu(tmp_path: Any) -> None:
    """From a file, eight sequences a GPU: at 512 GPUs the planner is asked about 4,096."""
    batches = {gpus: 8 * gpus for gpus in GPUS[:3]}
    rows = [f"{gpus},{1.1 * step(gpus, batch)!r},{batch}" for gpus, batch in batches.items()]
    path = tmp_path / "weak.csv"
    path.write_text("\n".join(["gpus,step_time_s,global_batch", *rows]) + "\n")
    found = suanli.scale(path, project=512, **MODEL)
    assert found.result.kind == "weak"
    assert [each.global_batch for each in found.planner.sizes] == [512, 1024, 2048, 4096]
    factors = [each.parameters[0].value for each in found.fits if each.law == "planner"]
    assert factors == [pytest.approx(1 / 1.1)]
    assert found.fit.law == "planner"  # three sizes are enough for a law that needs none to be fitted on


def test_megascale_by_the_planner() -> None:
    """175B on A100 as arXiv:2402.15627 has it, layout pinned as printed: the plan of an untouched stack is 1 % off on
    the whole and 3 % at sizes held out; Amdahl, fitted to the sizes, is nearer and stays."""
    found = suanli.scale(
        points="3072:23.66,6144:12.21,8192:9.23,12288:6.34", metric="time", global_batch=6144,
        model="gpt3-175b-megatron", gpu="a100-80gb-sxm", pin="tp=8,pp=8,vpp=6", seq=2048,
    )  # fmt: skip
    planner = next(each for each in found.fits if each.law == "planner")
    assert planner.parameters[0].value == pytest.approx(1, abs=0.05)
    assert planner.held_out is not None and planner.held_out < 0.06
    assert found.fit.law == "amdahl"


# --- the law by itself --------------------------------------------------------------------------------------------


def series(name: str, rows: dict[int, float], batches: dict[int, int]) -> Series:
    return Series(name="t", sizes=tuple(Size(gpus=gpus, figures={name: Figure(value=value)}, global_batch=batches[gpus])
                                        for gpus, value in rows.items()))  # fmt: skip


def planned(rows: dict[int, float], batch: int) -> Planner:
    return Planner(sizes=tuple(
        PlannedSize(gpus=gpus, global_batch=batch, layout="l", step_time_s=seconds, mfu=1 / (seconds * gpus),
                    tokens_per_second_per_gpu=batch * 10 / (seconds * gpus))
        for gpus, seconds in rows.items()
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_time_s", 2.0),
        ("tokens_per_s", 40.0),
        ("samples_per_s", 4.0),
        ("tokens_per_s_per_gpu", 5.0),
        ("mfu", 1 / 16),
    ],
)  # a step of 2 s for 8 sequences of 10 tokens on 8 GPUs: 4 sequences/s, 40 tokens/s, 5 on each GPU
def test_the_planner_speaks_in_the_figure_compared(name: str, value: float) -> None:
    """A series equal to the plan has a factor of 1, whatever is compared."""
    rates = planned_rates(planned({8: 2.0}, 8), name, per_batch=False)
    own = series(name, {8: value, 16: value}, {8: 8, 16: 8})
    found = laws.fit_law("planner", [(8, _rate(own.sizes[0], name))], SLOPE, rates)
    assert found.parameters["factor"] == pytest.approx(1)


def _rate(size: Size, name: str) -> float:
    from suanli.plan.scale import rate_of

    return rate_of(size, name, per_batch=False)


def test_a_wrong_plan_loses() -> None:
    """The plan halves the rate with every doubling, the sizes keep it: the power law stays."""
    rows = {8: 8.0, 16: 4.0, 32: 2.0, 64: 1.0}
    wrong = planned({8: 8.0, 16: 8.0, 32: 8.0, 64: 8.0}, 8)
    found = analyse(series("step_time_s", rows, dict.fromkeys(rows, 8)), by=None, slope=SLOPE, planner=wrong)
    assert found.fit is not None and found.fit.law != "planner"
    losing = next(each for each in found.fits if each.law == "planner")
    assert losing.held_out is not None and losing.held_out > math.log(2)


def test_times_to_train_are_nothing_a_step_tells() -> None:
    rows = {8: 8.0, 16: 4.1, 32: 2.2}
    found = analyse(series("minutes", rows, dict.fromkeys(rows, 8)), by=None, slope=SLOPE, planner=planned(rows, 8))
    assert found.reasons["planner"] == ("times to train mix convergence in, which no step tells: --metric step_time_s")
    assert "planner" not in [each.law for each in found.fits]


# --- when it cannot be used ---------------------------------------------------------------------------------------

TIMES = {"points": "64:1,128:0.6,256:0.4", "metric": "time"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "the global batch of a size is not known: a column global_batch, or --global-batch"),
        ({"global_batch": 65, "pin": "tp=2,pp=1,cp=1"}, "at 64 GPUs: no layout"),
        ({"model": "resnet-50", "global_batch": 64, "seq": None, "pin": None}, "resnet-50 is no stack of blocks"),
    ],
)
def test_why_it_cannot_be_used(options: dict[str, Any], reason: str) -> None:
    found = suanli.scale(**(TIMES | MODEL | options))
    assert found.reasons["planner"].startswith(reason)
    assert "planner" not in [each.law for each in found.fits]
    assert found.fit is not None  # the other laws are there


def test_a_batch_that_does_what_it_likes_cannot_be_projected(tmp_path: Any) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("gpus,step_time_s,gbs\n64,1,64\n128,1.1,128\n256,0.7,128\n")
    found = suanli.scale(path, project=512, **MODEL)
    assert found.reasons["planner"].startswith("the global batch is neither fixed nor grows with the GPUs")


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"pin": "tp=2", "seq": 4096}, ["--pin and --seq without a model in --model; expected --model llama-3.1-70b."]),
        ({"model": "llama-3-8b"}, ["a planned step is of a device in --gpu; expected --gpu h100-sxm."]),
        ({"model": "lama-3-8b", "gpu": "h900", "dtype": "int3"},
         ["unknown model 'lama-3-8b'", "unknown device 'h900'", "unknown dtype 'int3' in --dtype"]),
        ({**MODEL, "stack": "megatrom"}, ["megatrom"]),
        ({**MODEL, "pin": "tp=3", "global_batch": 64},
         ["tp cannot be so in --pin tp; got 3: 32 heads cannot be cut into 3"]),
        ({**MODEL, "pin": "tq=3", "global_batch": 64}, ["unknown pin 'tq' in --pin"]),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        suanli.scale(**(TIMES | options))
    for message in messages:
        assert message in str(caught.value)
