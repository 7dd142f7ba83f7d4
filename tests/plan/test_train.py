"""Plans of runs: the articles' figures, deadlines, goodput, money, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.catalog.devices import find_device
from suanli.errors import InputError
from suanli.measure import find_peak
from suanli.nouns.measures import TrainPlan
from suanli.nouns.workload import Workload
from suanli.plan.train import Budget, train
from suanli.readers.model import read_model
from suanli.units import DAY

B, T = 10**9, 10**12


def plan(model: str | None, params: int | None = None, *, gpu: str | None = "a100-80gb-sxm", recompute: str = "none",
         seq: int = 2048, **budget: object) -> TrainPlan:  # fmt: skip
    arch = read_model(model) if model else None
    peak = find_peak(find_device(gpu), "bf16", None) if gpu else None
    work = Workload(phase="train", seq=seq, recompute=recompute)
    return train(arch, work, find_convention("causal"), Budget(**budget), peak=peak, params=params)  # type: ignore[arg-type]


def test_gpt3_on_a_thousand_a100() -> None:
    """6·175e9·300e9 = 3.15e23; / (312e12·0.462·3600) = 607,031.86 GPU-hours; /1000/24 = 25.29 days."""
    found = plan("gpt3-175b", 175 * B, tokens=300 * B, gpus=1000, mfu=0.462)
    assert found.flops == found.hardware_flops == 315_000_000_000_000_000_000_000
    assert round(found.gpu_hours) == 607_032
    assert round(found.gpu_days, 2) == 25_292.99
    assert found.days is not None
    assert round(found.days, 2) == 25.29


def test_exact_count_with_6n_beside_it() -> None:
    found = plan("gpt3-175b", tokens=300 * B, gpus=1000, mfu=0.462)
    assert found.ideal["6n"] == 6 * read_model("gpt3-175b").params_total * 300 * B
    assert found.flops == pytest.approx(3.1856550e23, rel=1e-7)


def test_gpt_4_estimate() -> None:
    """2·111 + 55 = 277e9 active; 6·277e9·13e12 = 2.1606e25; at 36 % of 312 TFLOP/s."""
    found = plan("gpt-4-estimate", 277 * B, tokens=13 * T, gpus=25_000, mfu=0.36)
    assert found.flops == 21_606_000_000_000_000_000_000_000
    assert round(found.gpu_hours) == 53_433_642
    assert found.days is not None
    assert round(found.days, 2) == 89.06
    assert plan("gpt-4-estimate", tokens=13 * T, gpus=25_000, mfu=0.36).flops == found.flops


@pytest.mark.parametrize(
    ("params", "tokens", "gpus", "rate", "days"),
    [(175 * B, 300 * B, 1024, 140e12, 33.91), (1008 * B, 450 * B, 3072, 163e12, 83.88)],
)
def test_the_rule_8tp_over_nx(params: int, tokens: int, gpus: int, rate: float, days: float) -> None:
    """arXiv:2104.04473 §5.1: 34 and 84 days."""
    found = plan(None, params, gpu=None, recompute="full", tokens=tokens, gpus=gpus, flop_per_s=rate)
    assert found.hardware_flops == 8 * params * tokens
    assert found.days is not None
    assert round(found.days, 2) == days
    assert found.mfu is None
    assert found.reasons["mfu"] == "no GPU, hence no peak (--gpu)"


def test_mixture_by_active_parameters() -> None:
    found = plan("mixtral-8x7b", tokens=T, gpus=8, mfu=0.4)
    assert found.params == 12_879_925_248
    assert found.flops < 6 * 20 * B * T


def test_full_recompute_is_hardware_time() -> None:
    """The same HFU takes 4/3 of the time where every layer runs again (less for the head)."""
    none, full = (plan("llama-3-8b", tokens=T, gpus=8, hfu=0.4, recompute=policy) for policy in ("none", "full"))
    assert full.flops == none.flops
    assert full.gpu_hours / none.gpu_hours == pytest.approx(full.hardware_flops / full.flops)
    assert full.mfu is not None and full.hfu is not None
    assert full.mfu < full.hfu == pytest.approx(0.4)


def test_goodput_is_a_factor_of_its_own() -> None:
    half = plan("gpt3-175b", 175 * B, tokens=300 * B, gpus=1000, mfu=0.462, goodput=0.5, price=2.0, power=400.0)
    whole = plan("gpt3-175b", 175 * B, tokens=300 * B, gpus=1000, mfu=0.462, price=2.0, power=400.0)
    assert half.gpu_hours == whole.gpu_hours
    assert half.days == pytest.approx(2 * (whole.days or 0))
    assert half.cost_usd == pytest.approx(2 * (whole.cost_usd or 0)) == pytest.approx(half.gpu_hours_paid * 2.0)
    assert half.energy_kwh == pytest.approx(2 * (whole.energy_kwh or 0))


def test_deadline_finds_the_gpus() -> None:
    found = plan("gpt3-175b", 175 * B, tokens=300 * B, deadline_s=30 * DAY, mfu=0.462)
    assert found.gpus == 844  # 25,292.99 / 30 = 843.1
    assert found.days is not None
    assert found.days <= 30


@given(days=st.integers(1, 400), goodput=st.floats(0.05, 1))
def test_a_deadline_is_met_by_no_more_gpus_than_needed(days: int, goodput: float) -> None:
    found = plan("gpt2", tokens=300 * B, deadline_s=days * DAY, mfu=0.3, goodput=goodput)
    assert found.gpus is not None and found.days is not None
    assert found.days <= days * (1 + 1e-9)
    if found.gpus > 1:
        assert found.days * found.gpus / (found.gpus - 1) >= days * (1 - 1e-9)


def test_energy_and_carbon() -> None:
    found = plan("gpt2", tokens=T, gpus=8, mfu=0.3, power=400.0, pue=1.25, carbon=0.4)
    assert found.energy_kwh == pytest.approx(found.gpu_hours * 0.5)  # 400 W × 1.25 = 500 W
    assert found.co2_kg == pytest.approx(found.gpu_hours * 0.2)


def test_what_cannot_be_known_is_none_with_a_reason() -> None:
    found = plan("gpt2", tokens=T, mfu=0.3)
    assert found.gpus is None and found.days is None and found.cost_usd is None and found.co2_kg is None
    assert found.reasons["days"] == "neither --gpus nor --deadline"
    assert found.reasons["cost_usd"].startswith("no price")


BAD = [
    ({"tokens": T, "gpus": 8, "deadline_s": 1.0, "mfu": 0.3}, "either the number of GPUs or the deadline is asked for"),
    ({"tokens": T, "mfu": 0.3, "hfu": 0.3}, "one utilisation is needed; got --mfu and --hfu" ),
    ({"tokens": T, "mfu": 41}, "mfu is not possible in --mfu; got 41; expected above 0, at most 1"),
    ({"tokens": T, "mfu": 0}, "mfu is not possible"),
    ({"tokens": 0, "mfu": 0.3}, "tokens is not possible in --tokens; got 0; expected above 0"),
    ({"tokens": T, "mfu": 0.3, "gpus": 0}, "gpus is not possible in --gpus; got 0"),
    ({"tokens": T, "mfu": 0.3, "goodput": 0}, "goodput is not possible in --goodput; got 0; expected above 0, at most"),
    ({"tokens": T, "mfu": 0.3, "pue": 0.5}, "pue is not possible in --pue; got 0.5; expected at least 1"),
    ({"tokens": T, "mfu": 0.3, "price": float("inf")}, "price is not possible"),
    ({"tokens": T}, "the time of a run needs a utilisation in --mfu"),
    ({"tokens": T, "flop_per_s": 400e12}, "no machine exceeds its peak in --tflops-per-gpu; got 4e+14 FLOP/s"),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "words"), BAD, ids=[row[1][:40] for row in BAD])
def test_budgets_that_cannot_be(budget: dict[str, float], words: str) -> None:
    with pytest.raises(InputError) as caught:
        plan("gpt2", **budget)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_all_faults_of_a_budget_together() -> None:
    with pytest.raises(InputError) as caught:
        plan("gpt2", tokens=0, mfu=2, goodput=3, gpus=-1)
    assert len(caught.value.faults) == 4
