"""Money and energy of tokens: the article's example, measured points, laws, and what is never told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.devices import find_device
from suanli.errors import InputError, UnknownNameError
from suanli.formulas.articles import unit_cost_change_by_points, unit_cost_change_by_ratio, usd_per_thousand_tokens
from suanli.formulas.serving import blended_usd
from suanli.plan.serving import Load, catalogue_price, energy_read, token_cost, token_energy, utilisation_for_cost

ARTICLE_PRICE = 19.22 / 8
PEAK_TOKENS = 8 * 312e12 / (2 * 175e9)  # 7,131 tokens/s of eight A100 at 2N FLOPs a token


def load(**fields: Any) -> Load:
    return Load(**{"concurrency": 8, "output_tokens_per_s": 1000.0, **fields})


# --- the article's example ----------------------------------------------------------------------------------------


def test_the_articles_cost_holds_at_one_utilisation() -> None:
    """0.0035 $/1k at 19.22 $/h is 1,525 tokens/s: 534 TFLOP/s of 2,496, 21.4 %; 21.3 with N = 174.6e9."""
    eight = load(gpus=8)
    assert utilisation_for_cost(eight, ARTICLE_PRICE, 3.5, PEAK_TOKENS) == pytest.approx(0.2139, abs=5e-5)
    assert utilisation_for_cost(eight, ARTICLE_PRICE, 3.5, 8 * 312e12 / (2 * 174.6e9)) == pytest.approx(
        0.2134, abs=5e-5
    )
    cost = token_cost(load(gpus=8, output_tokens_per_s=PEAK_TOKENS, utilisation=0.2139), ARTICLE_PRICE)
    assert cost.usd_per_million_output_only == pytest.approx(3.5, abs=5e-4)
    assert cost.usd_per_hour == pytest.approx(19.22)
    assert usd_per_thousand_tokens(2 * 175e9, 312e12, 0.2139, ARTICLE_PRICE) == pytest.approx(
        cost.usd_per_million_output_only / 1000
    )


def test_points_are_not_percent() -> None:
    """From 21.4 %: to 31.4 % costs 32 % less, to 23.5 % only 9 %."""
    base, points, ratio = (
        token_cost(
            load(gpus=8, output_tokens_per_s=PEAK_TOKENS, utilisation=u), ARTICLE_PRICE
        ).usd_per_million_output_only
        for u in (0.2139, 0.3139, 0.2139 * 1.1)
    )
    assert (
        points / base - 1 == pytest.approx(unit_cost_change_by_points(0.2139, 10)) == pytest.approx(-0.3186, abs=5e-5)
    )
    assert ratio / base - 1 == pytest.approx(unit_cost_change_by_ratio(0.1)) == pytest.approx(-0.0909, abs=5e-5)


def test_the_articles_margin_is_of_compute_alone() -> None:
    """(20 − 3.5) / 20 of a price of 0.02 $/1k."""
    found = token_cost(load(gpus=8, output_tokens_per_s=1525.4), ARTICLE_PRICE, sell=20)
    assert found.margin == pytest.approx(0.825, abs=1e-4)
    listed = token_cost(load(gpus=8, output_tokens_per_s=1525.4), 32.7726 / 8, sell=20)
    assert listed.usd_per_million_output_only == pytest.approx(5.97, abs=5e-3) and listed.margin == pytest.approx(
        0.70, abs=5e-3
    )


# --- measured points ----------------------------------------------------------------------------------------------

# J a token, power: rows of ML.ENERGY at the rates they imply; $ at Nebius prices as published
ENERGY = [
    ("8B bf16 1 × H100, c = 8", 1, 0.455),
    ("70B bf16 4 × H100", 4, 0.48),
    ("405B fp8 8 × H100, c = 256", 8, 2.06),
]


@pytest.mark.parametrize(("said", "gpus", "joules"), ENERGY, ids=[row[0] for row in ENERGY])
def test_energy_is_power_over_rate(said: str, gpus: int, joules: float) -> None:
    rate = gpus * 500 / joules
    found = token_energy(load(gpus=gpus, output_tokens_per_s=rate), 500.0)
    assert found.joules_per_output_token == pytest.approx(joules), said


def test_a_day_and_a_million() -> None:
    """8 GPUs of 600 W at PUE 1.2 for 24 h: 138.24 kWh, 55.3 kg at 0.4 kg/kWh; 5.76 J a token at 1,000 tokens/s, so a
    million are 1.6 kWh and 640 g."""
    found = token_energy(load(gpus=8), 600, pue=1.2, carbon=0.4)
    assert found.kwh_per_day == pytest.approx(138.24)
    assert found.co2_kg_per_day == pytest.approx(55.296)
    assert found.joules_per_output_token == pytest.approx(5.76)
    assert found.co2_g_per_million_tokens == pytest.approx(640)
    assert found.reasons == {}


def test_input_and_output_tokens_carry_their_time() -> None:
    """1,000 output and 4,000 input tokens/s at 3.6 $/h: 1 $ a million if only outputs pay, 0.2 if all do alike; with a
    quarter of the time in prefill 0.0625 and 0.75, which blend to 0.2 again."""
    found = token_cost(load(isl=400, osl=100, prefill_fraction=0.25), 3.6)
    assert found.usd_per_million_output_only == pytest.approx(1)
    assert found.usd_per_million_blended == pytest.approx(0.2)
    assert (found.usd_per_million_input, found.usd_per_million_output) == (pytest.approx(0.0625), pytest.approx(0.75))
    assert blended_usd(0.0625, 0.75, 400, 100) == pytest.approx(0.2)


def test_idle_time_is_paid() -> None:
    found = token_cost(load(gpus=2, utilisation=0.25), 3.0)
    assert found.usd_per_hour == 6 and found.idle_usd_per_hour == pytest.approx(4.5)
    assert found.usd_per_million_output_only == pytest.approx(4 * 6e6 / 3.6e6)


# --- prices -------------------------------------------------------------------------------------------------------


def test_prices_have_a_kind_and_a_date() -> None:
    price, said = catalogue_price(find_device("h200-sxm"), "spot")
    assert price == 1.45
    assert said.startswith("$1.45 per GPU-hour, spot, Nebius, 2026 (skypilot-nebius)")
    with pytest.raises(UnknownNameError, match="no reserved price for l4"):
        catalogue_price(find_device("l4"), "reserved")


def test_a_published_cost_at_those_prices() -> None:
    """8B bf16 on one H100 at 2.95 $/h: 0.09 $ a million is 9,100 tokens/s (c = 256), 0.77 is 1,064 (c = 8)."""
    for rate, usd in ((9105, 0.09), (1064, 0.77)):
        assert token_cost(load(output_tokens_per_s=rate), 2.95).usd_per_million_output_only == pytest.approx(
            usd, abs=5e-3
        )


# --- what is not told ---------------------------------------------------------------------------------------------


def test_what_was_not_given_is_none_with_a_reason() -> None:
    found = token_cost(load(), 2.0)
    missing = ("usd_per_million_blended", "usd_per_million_input", "usd_per_million_output", "margin")
    assert [getattr(found, name) for name in missing] == [None] * 4
    assert set(found.reasons) == set(missing)
    assert found.reasons["margin"] == "no selling price (sell)"
    shares = token_cost(load(isl=10, osl=10), 2.0)
    assert shares.usd_per_million_blended is not None and "prefill_fraction" in shares.reasons["usd_per_million_input"]


def test_no_reading_is_not_zero() -> None:
    """codecarbon issue 1316: GPUs without a counter reported 0 kWh."""
    found = token_energy(load(), None, carbon=0.4)
    assert (found.joules_per_output_token, found.kwh_per_day, found.co2_kg_per_day) == (None, None, None)
    assert found.reasons["kwh_per_day"].startswith("no reading of power: a data sheet's figure is no measurement")
    with pytest.raises(InputError, match="watts is missing or not possible in watts; got 0; expected above 0"):
        token_energy(load(), 0)


def test_power_draw_is_integrated() -> None:
    """400 W for 10 s, then a line to 600 W over 10 s: 4,000 + 5,000 J; readings that failed are left out."""
    assert energy_read([(0, 400), (10, 400), (15, None), (20, 600)]) == 9000
    assert energy_read([(0, None), (1, None)]) is None
    assert energy_read([(0, 400)]) is None
    assert energy_read([]) is None


IMPOSSIBLE: list[tuple[dict[str, Any], list[str]]] = [
    ({"concurrency": None}, ["concurrency"]),
    ({"concurrency": 0, "gpus": 0, "output_tokens_per_s": 0.0}, ["concurrency", "gpus", "output_tokens_per_s"]),
    ({"utilisation": 1.2}, ["utilisation"]),
    ({"utilisation": 0}, ["utilisation"]),
    ({"isl": 0, "osl": -1}, ["isl", "osl"]),
    ({"prefill_fraction": float("nan")}, ["prefill_fraction"]),
    ({"output_tokens_per_s": float("inf")}, ["output_tokens_per_s"]),
    ({"concurrency": True}, ["concurrency"]),
]


@pytest.mark.parametrize(("fields", "where"), IMPOSSIBLE, ids=[str(row[1]) for row in IMPOSSIBLE])
def test_impossible_loads(fields: dict[str, Any], where: list[str]) -> None:
    for call in (lambda each: token_cost(each, 2.0), lambda each: token_energy(each, 500.0)):
        with pytest.raises(InputError) as caught:
            call(load(**fields))
        assert [fault.where for fault in caught.value.faults] == where


def test_never_without_a_concurrency() -> None:
    with pytest.raises(InputError) as caught:
        token_cost(load(concurrency=None), 2.0)
    assert str(caught.value) == (
        "concurrency is missing or not possible in concurrency; got None; expected a whole number above 0. Cost and "
        "energy change six- to elevenfold with it: neither is told without."
    )


@pytest.mark.parametrize(("call", "words"), [
    (lambda: token_cost(load(), 0), "price is missing or not possible in price; got 0; expected above 0."),
    (lambda: token_cost(load(), 1, sell=-1), "sell is missing or not possible in sell; got -1"),
    (lambda: token_energy(load(), 500, pue=0.9), "pue is missing or not possible in pue; got 0.9; expected at "
     "least 1."),
    (lambda: token_energy(load(), 500, carbon=-1), "carbon is missing or not possible in carbon; got -1"),
])  # fmt: skip
def test_impossible_prices_and_powers(call: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(words)


# --- laws ---------------------------------------------------------------------------------------------------------

RATES, PRICES = st.floats(1, 1e6), st.floats(0.01, 100)


@given(RATES, PRICES, st.integers(1, 64), st.floats(0.01, 1))
def test_cost_times_throughput_is_the_bill(rate: float, price: float, gpus: int, utilisation: float) -> None:
    found = token_cost(load(output_tokens_per_s=rate, gpus=gpus, utilisation=utilisation), price)
    millions_an_hour = rate * utilisation * 3600 / 1e6
    assert found.usd_per_million_output_only * millions_an_hour == pytest.approx(found.usd_per_hour)
    used = found.usd_per_hour - found.idle_usd_per_hour
    assert used == pytest.approx(found.usd_per_hour * utilisation)


@given(RATES, PRICES, st.integers(1, 9999), st.integers(1, 9999), st.floats(0.01, 0.99))
def test_input_and_output_add_to_the_bill(rate: float, price: float, isl: int, osl: int, share: float) -> None:
    found = token_cost(load(output_tokens_per_s=rate, isl=isl, osl=osl, prefill_fraction=share), price)
    assert found.usd_per_million_input is not None and found.usd_per_million_output is not None
    both = blended_usd(found.usd_per_million_input, found.usd_per_million_output, isl, osl)
    assert both == pytest.approx(found.usd_per_million_blended)


@given(RATES, st.floats(1, 2000), st.integers(1, 64), st.floats(1, 2))
def test_energy_of_a_days_tokens_is_the_days(rate: float, watts: float, gpus: int, pue: float) -> None:
    found = token_energy(load(output_tokens_per_s=rate, gpus=gpus), watts, pue=pue, carbon=0.5)
    assert found.joules_per_output_token is not None and found.kwh_per_day is not None
    assert found.joules_per_output_token * rate * 86_400 / 3.6e6 == pytest.approx(found.kwh_per_day)
    assert found.co2_kg_per_day == pytest.approx(0.5 * found.kwh_per_day)
