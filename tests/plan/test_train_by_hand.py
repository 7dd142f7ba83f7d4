"""A training run in small numbers: hours, GPUs, days, money and energy by hand, and every refusal word by word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.errors import InputError
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Conv
from suanli.nouns.measures import Peak, TrainPlan
from suanli.nouns.workload import Workload
from suanli.plan.train import Budget, run_flops, train
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_paper_decoder

DAY = 86_400
CAUSAL = find_convention("causal")
PEAK = Peak(flop_per_s=1000.0, dtype="bf16", device=None, source="--peak")
# h = 4, one layer of 2 heads, f = 8, V = 10; at s = 6: 3·(2·6·168 + 16·21)
NET = read_paper_decoder({"hidden": 4, "num_layers": 1, "heads": 2, "ffn": 8, "vocab": 10}, "net")
STEP = 3 * (2 * 6 * 168 + 16 * 21)
AGAIN = 2 * 6 * 128 + 16 * 21


def plan(params: int | None = 100, *, arch: Arch | None = None, peak: Peak | None = PEAK, recompute: str = "none",
         seq: int = 6, batch: int = 1, name: str = "", **budget: Any) -> TrainPlan:  # fmt: skip
    work = Workload(phase="train", seq=seq, batch=batch, recompute=recompute)
    return train(arch, work, CAUSAL, Budget(**budget), peak=peak, params=params, name=name)


# --- FLOPs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recompute", "model", "hardware"), [("none", 6, 6), ("selective", 6, 6), ("full", 6, 8)])
def test_flops_by_the_ideal_form(recompute: str, model: int, hardware: int) -> None:
    found = run_flops(NET, Workload(phase="train", seq=6, recompute=recompute), CAUSAL, 1000, 50)
    assert (found.model, found.hardware) == (model * 50 * 1000, hardware * 50 * 1000)


@pytest.mark.parametrize(("tokens", "batch"), [(6, 1), (600, 1), (600, 5), (7, 1), (1, 3)])
def test_flops_by_the_ledger(tokens: int, batch: int) -> None:
    """A step's FLOPs over its tokens, times the run's, to the nearest whole operation."""
    found = run_flops(NET, Workload(phase="train", seq=6, batch=batch, recompute="full"), CAUSAL, tokens, None)
    assert found.model == round(STEP * tokens / 6)
    assert found.hardware == round((STEP + AGAIN) * tokens / 6)


def test_flops_stay_exact_where_floats_do_not() -> None:
    found = run_flops(NET, Workload(phase="train", seq=6), CAUSAL, 6 * (10**20 + 1), None)
    assert found.model == STEP * (10**20 + 1)


def test_flops_of_pictures() -> None:
    """Tokens are the positions of the pictures, or the samples, whatever --seq says."""
    vit = read_hf_config(
        {
            "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 8, "image_size": 8, "patch_size": 4,
        },
        "vit",
    )  # fmt: skip
    one = run_flops(vit, Workload(phase="train", seq=999), CAUSAL, 5, None).model
    assert run_flops(vit, Workload(phase="train", seq=6, batch=4), CAUSAL, 10, None).model == 2 * one
    conv = Conv(name="c", in_channels=1, out_channels=1, kernel=(3,), in_size=(8,), out_size=(6,))
    net = Arch(name="c", root=Module(name="", stream="sample", children=(conv,)), main_stream="sample", streams=())
    assert run_flops(net, Workload(phase="train", batch=4), find_convention("megatron"), 10, None).model == 10 * 108


# --- time ---------------------------------------------------------------------------------------------------------

# 100 parameters, 6,000,000 tokens: 6·100·6e6 = 3.6e9 FLOPs, 4.8e9 with full recompute; at 1000 FLOP/s 1,000 hours
TOKENS = 6_000_000

# what is known: hours, MFU, HFU
HOURS = [
    ({"mfu": 0.5}, "none", 2000, 0.5, 0.5),
    ({"mfu": 0.5}, "full", 2000, 0.5, 0.5 * 4 / 3),
    ({"hfu": 0.5}, "none", 2000, 0.5, 0.5),
    ({"hfu": 0.5}, "full", 1000 * 4 / 3 / 0.5, 0.375, 0.5),
    ({"flop_per_s": 250.0}, "none", 4000, 0.25, 0.25),
    ({"flop_per_s": 250.0}, "full", 4000 * 4 / 3, 0.1875, 0.25),  # the rate is of what is executed
    ({"flop_per_s": 1000.0}, "none", 1000, 1.0, 1.0),  # at the peak
    ({"mfu": 1}, "none", 1000, 1.0, 1.0),
]


@pytest.mark.parametrize(("known", "recompute", "hours", "mfu", "hfu"), HOURS)
def test_hours(known: dict[str, float], recompute: str, hours: float, mfu: float, hfu: float) -> None:
    found = plan(tokens=TOKENS, recompute=recompute, **known)
    assert found.gpu_hours == pytest.approx(hours)
    assert found.gpu_days == pytest.approx(hours / 24)
    assert (found.mfu, found.hfu) == (pytest.approx(mfu), pytest.approx(hfu))
    assert found.tokens_per_second_per_gpu == pytest.approx(TOKENS / (hours * 3600))
    assert found.ideal == {"6n": 3_600_000_000, "8n": 4_800_000_000}


# 2,000 hours at an MFU of a half: GPUs or days, goodput; GPUs and days found
SPANS = [
    ({"gpus": 10}, 1.0, 10, 2000 / 240),
    ({"gpus": 10}, 0.5, 10, 2000 / 120),
    ({"gpus": 1}, 1.0, 1, 2000 / 24),
    ({"deadline_s": 10 * DAY}, 1.0, 9, 2000 / 24 / 9),  # 8.33 rounded up
    ({"deadline_s": 10 * DAY}, 0.5, 17, 2000 / 12 / 17),
    ({"deadline_s": 2000 / 24 / 8 * DAY}, 1.0, 8, 2000 / 24 / 8),  # met exactly: no GPU more
    ({"deadline_s": 1000 * DAY}, 1.0, 1, 2000 / 24),
]


@pytest.mark.parametrize(("known", "goodput", "gpus", "days"), SPANS)
def test_gpus_and_days(known: dict[str, Any], goodput: float, gpus: int, days: float) -> None:
    found = plan(tokens=TOKENS, mfu=0.5, goodput=goodput, **known)
    assert found.gpus == gpus
    assert found.days == pytest.approx(days)
    assert (found.gpu_hours, found.goodput) == (pytest.approx(2000), goodput)  # productive hours stay
    assert found.gpu_hours_paid == pytest.approx(2000 / goodput)


def test_money_energy_and_carbon() -> None:
    """4,000 hours paid for 2,000: at 3 USD; at 500 W and a PUE of 1.2; at 0.1 kg/kWh."""
    found = plan(tokens=TOKENS, mfu=0.5, goodput=0.5, price=3.0, power=500.0, pue=1.2, carbon=0.1)
    assert found.cost_usd == pytest.approx(12_000)
    assert found.energy_kwh == pytest.approx(4000 * 0.5 * 1.2)
    assert found.co2_kg == pytest.approx(240)
    assert set(found.reasons) == {"days", "gpu_hours_paid_interval"}


def test_a_facility_takes_nothing_and_nothing_is_lost_unless_said() -> None:
    assert plan(tokens=TOKENS, mfu=0.5, power=500.0).energy_kwh == pytest.approx(1000)


def test_nothing_is_free_that_costs_nothing() -> None:
    """A price or a carbon intensity of zero is a price: zero, not unknown."""
    found = plan(tokens=TOKENS, mfu=0.5, price=0, power=1.0, carbon=0)
    assert (found.cost_usd, found.co2_kg) == (0, 0)


# what is left out: figures that are None, and why
REASONS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"mfu": 0.5, "gpus": 8, "price": 1, "power": 1, "carbon": 1}, {}),
    (
        {"mfu": 0.5},
        {
            "days": "neither --gpus nor --deadline",
            "cost_usd": "no price (--price, or a GPU with one in the catalogue)",
            "energy_kwh": "no power (--power, or a GPU with one in the catalogue)",
            "co2_kg": "no energy",
        },
    ),
    (
        {"mfu": 0.5, "gpus": 8, "price": 1, "power": 1},
        {"co2_kg": "no carbon intensity (--carbon, as 0.4kg/kWh)"},
    ),
    (
        {"mfu": 0.5, "gpus": 8, "power": 1, "carbon": 1, "reasons": {"cost_usd": "sold by nobody"}},
        {"cost_usd": "sold by nobody"},  # the better reason stays
    ),
]


@pytest.mark.parametrize(("budget", "reasons"), REASONS)
def test_reasons(budget: dict[str, Any], reasons: dict[str, str]) -> None:
    found = plan(tokens=TOKENS, **budget)
    exact = {"gpu_hours_paid_interval": "as given: taken as exact"}  # a utilisation and a goodput without a spread
    assert dict(found.reasons) == reasons | exact
    for name in found.reasons:
        assert getattr(found, name) is None


def test_without_a_peak_a_rate_suffices() -> None:
    found = plan(tokens=TOKENS, flop_per_s=1e9, peak=None)
    assert (found.mfu, found.hfu, found.peak) == (None, None, None)
    assert found.gpu_hours == pytest.approx(0.001)
    assert found.reasons["mfu"] == found.reasons["hfu"]
    assert found.reasons["mfu"].startswith("no GPU, hence no peak")


def test_names() -> None:
    assert plan(tokens=TOKENS, mfu=0.5).model == "100 parameters"
    assert plan(tokens=TOKENS, mfu=0.5, arch=NET).model == "net"
    assert plan(tokens=TOKENS, mfu=0.5, arch=NET, name="mine").model == "mine"
    assert plan(None, tokens=TOKENS, mfu=0.5, arch=NET).params == NET.params_active
    assert plan(5000, tokens=TOKENS, mfu=0.5, arch=NET).params == 5000


# --- refusals -----------------------------------------------------------------------------------------------------

ABOVE = "expected above 0"
BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"tokens": 0, "mfu": 0.5}, [f"tokens is not possible in --tokens; got 0; {ABOVE}."]),
    ({"tokens": 1, "mfu": -0.1}, [f"mfu is not possible in --mfu; got -0.1; {ABOVE}, at most 1."]),
    ({"tokens": 1, "hfu": 1.01}, [f"hfu is not possible in --hfu; got 1.01; {ABOVE}, at most 1."]),
    ({"tokens": 1, "flop_per_s": 0}, [f"tflops per gpu is not possible in --tflops-per-gpu; got 0; {ABOVE}."]),
    ({"tokens": 1, "mfu": 1, "deadline_s": 0}, [f"deadline is not possible in --deadline; got 0; {ABOVE}."]),
    ({"tokens": 1, "mfu": 1, "gpus": -8}, [f"gpus is not possible in --gpus; got -8; {ABOVE}."]),
    ({"tokens": 1, "mfu": 1, "price": -1}, ["price is not possible in --price; got -1; expected at least 0."]),
    ({"tokens": 1, "mfu": 1, "power": 0}, [f"power is not possible in --power; got 0; {ABOVE}."]),
    ({"tokens": 1, "mfu": 1, "pue": 0.99}, ["pue is not possible in --pue; got 0.99; expected at least 1."]),
    ({"tokens": 1, "mfu": 1, "carbon": -1}, ["carbon is not possible in --carbon; got -1; expected at least 0."]),
    ({"tokens": 1, "mfu": 1, "goodput": 1.5}, [f"goodput is not possible in --goodput; got 1.5; {ABOVE}, at most 1."]),
    ({"tokens": 1, "mfu": 1, "power": float("inf")}, [f"power is not possible in --power; got inf; {ABOVE}."]),
    (
        {"tokens": 1, "mfu": 1, "gpus": 8, "deadline_s": 1},
        [
            "either the number of GPUs or the deadline is asked for in --gpus and --deadline; expected one of them.",
        ],
    ),
    (
        {"tokens": 1, "mfu": 1, "flop_per_s": 1},
        ["one utilisation is needed; got --mfu and --tflops-per-gpu; expected one of them."],
    ),
    (
        {"tokens": 1, "mfu": 1, "hfu": 1, "flop_per_s": 1},
        ["one utilisation is needed; got --mfu and --hfu and --tflops-per-gpu; expected one of them."],
    ),
    (
        {"tokens": 1},
        ["the time of a run needs a utilisation in --mfu; expected --mfu or --hfu with --gpu, or --tflops-per-gpu."],
    ),
    (
        {"tokens": 1, "flop_per_s": 1001.0},
        ["no machine exceeds its peak in --tflops-per-gpu; got 1,001 FLOP/s; expected at most 1,000 FLOP/s (--peak)."],
    ),
    (
        {"tokens": 0, "mfu": 2, "pue": 0},
        [
            f"mfu is not possible in --mfu; got 2; {ABOVE}, at most 1.",
            f"tokens is not possible in --tokens; got 0; {ABOVE}.",
            "pue is not possible in --pue; got 0; expected at least 1.",
        ],
    ),
]


@pytest.mark.parametrize(("budget", "sentences"), BAD, ids=[row[1][0][:50] for row in BAD])
def test_refusals(budget: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        plan(**budget)
    assert [fault.sentence() for fault in caught.value.faults] == sentences


def test_a_utilisation_without_a_peak_gives_no_time() -> None:
    for known in ({"mfu": 0.5}, {"hfu": 0.5}):
        with pytest.raises(InputError, match="a utilisation needs the peak it is of in --gpu"):
            plan(tokens=1, peak=None, **known)


EDGES = [{"mfu": 1}, {"hfu": 1}, {"mfu": 1, "pue": 1}, {"mfu": 1, "goodput": 1}, {"mfu": 1, "price": 0}]


@pytest.mark.parametrize("budget", EDGES)
def test_edges_that_are_allowed(budget: dict[str, Any]) -> None:
    assert plan(tokens=1, **budget).gpu_hours > 0


# --- laws ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**15), st.integers(1, 10**12), st.floats(0.01, 1), st.floats(0.1, 1), st.integers(1, 10**5))
def test_gpus_days_and_hours_agree(tokens: int, params: int, mfu: float, goodput: float, gpus: int) -> None:
    found = plan(params, tokens=tokens, mfu=mfu, goodput=goodput, gpus=gpus)
    assert found.days is not None
    assert found.days * 24 * gpus == pytest.approx(found.gpu_hours_paid)
    assert found.gpu_hours * 3600 * mfu * 1000 == pytest.approx(6 * params * tokens)
    assert found.tokens_per_second_per_gpu * 6 * params == pytest.approx(1000 * mfu)
