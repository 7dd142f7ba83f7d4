"""The roofline: products by hand, phases by `count`, and nothing measured above the roof."""

from __future__ import annotations

import pytest

import suanli
from suanli.catalog.devices import find_device
from suanli.learn import teach
from suanli.learn.roofline import BATCH, GPU, MODEL, SEQ, TOKENS, WIDTH, phase, product, rates
from suanli.nouns.lesson import Grid, Lesson, Plot
from suanli.nouns.workload import Workload


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("roofline", "en")


def tables(found: Lesson) -> list[Grid]:
    return [block for block in found.blocks if isinstance(block, Grid)]


@pytest.mark.parametrize("tokens", TOKENS)
def test_a_product_by_hand(tokens: int) -> None:
    flops, moved = product(tokens)
    assert flops == 2 * tokens * WIDTH * WIDTH
    assert moved == 2 * (WIDTH * WIDTH + tokens * WIDTH + tokens * WIDTH)  # weights, inputs, outputs in bf16


def test_the_ridge_of_h100(taught: Lesson) -> None:
    assert taught.values["ridge"] == pytest.approx(989.4e12 / 3.35e12)


def test_nothing_is_above_the_roof(taught: Lesson) -> None:
    peak, bandwidth = rates(find_device(GPU))
    for tokens, intensity, roof, attained, of_peak, bound in tables(taught)[0].rows:
        assert roof == pytest.approx(min(peak, intensity * bandwidth))
        assert attained < roof, tokens
        assert of_peak == attained / peak
        assert bound == ("memory" if intensity < taught.values["ridge"] else "arithmetic")


def test_the_drawing_is_the_table(taught: Lesson) -> None:
    roof, attained = next(block for block in taught.blocks if isinstance(block, Plot)).series
    assert attained.points == tuple((row[1], row[3]) for row in tables(taught)[0].rows) and not attained.line
    assert roof.points[1] == pytest.approx((taught.values["ridge"], 989.4e12))


@pytest.mark.parametrize(("workload", "asked"), [
    (Workload(phase="prefill", seq=SEQ), {"phase": "prefill", "seq": SEQ}),
    (Workload(phase="decode", seq=SEQ, kv_len=SEQ, batch=BATCH), {"phase": "decode", "kv_len": SEQ, "batch": BATCH}),
])  # fmt: skip
def test_phases_are_count_s(workload: Workload, asked: dict) -> None:
    flops, moved = phase(workload)
    found = suanli.count(MODEL, **asked)
    assert flops == found.flops.model
    assert moved == sum(row.read_bytes + row.write_bytes for row in found.ledger.rows)


def test_batching_helps_until_the_cache_is_all(taught: Lesson) -> None:
    assert taught.values["decode"] < taught.values["decode_many"] < BATCH * taught.values["decode"]
    assert taught.values["decode_many"] < taught.values["ridge"] < taught.values["prefill"]


def test_what_is_said_of_the_ridges(taught: Lesson) -> None:
    at = {row[0]: row[3] for row in tables(taught)[2].rows}
    assert at["a100-80gb-sxm"] < at["b200"] < at["h100-sxm"]
    assert at["h200-sxm"] < at["h100-sxm"]
