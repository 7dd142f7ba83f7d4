"""The benchmark of `layout`: what it draws is fixed, what it prices is legal, and both tools are asked the same."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from suanli.plan.advice import is_legal
from suanli.plan.limits import Space, cuts_of
from suanli.plan.pieces import parts_of
from suanli.readers.model import read_model

np = pytest.importorskip("numpy")
FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "layout.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_layout", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_layout"] = module
    spec.loader.exec_module(module)
    return module


def test_the_draw_is_fixed_and_the_short_one_begins_the_long_one(bench):
    few, many = bench.drawn(5), bench.drawn(50)
    assert few == many[:5]
    assert len({str(each) for each in many}) > 40
    assert all(each["tp"] * each["pp"] * each["dp"] == bench.GPUS for each in many)


def test_what_is_priced_is_what_the_search_calls_legal(bench):
    configs = bench.drawn(60)
    grid = bench.as_grid(bench.as_columns(configs))
    cuts = cuts_of(parts_of(read_model("gpt3-175b")))
    space = Space(cuts=cuts, gpus=(bench.GPUS,), global_batch=bench.BATCH, seq=bench.SEQ, per_node=8)
    assert 0 < len(grid) < len(configs)
    assert all(is_legal(space, grid.at(place)) for place in range(len(grid)))


def test_both_tools_are_asked_the_same(bench):
    (config,) = bench.drawn(1)
    asked = bench.as_execution(config)
    assert asked["num_procs"] == asked["tensor_par"] * asked["pipeline_par"] * asked["data_par"]
    assert asked["pipeline_interleaving"] == config["vpp"]
    assert (asked["tensor_par_comm_type"] == "rs_ag") == config["sp"]
    assert asked["optimizer_sharding"] == (config["zero"] == 1)


def test_prices_are_plain_figures(bench):
    found = bench.price_drawn(bench.books(), bench.as_columns(bench.drawn(40)))
    assert found["configurations"] == 40
    assert 0 < found["priced"] < 40
    assert found["fit"] <= found["priced"]


def test_both_named_searches_are_timed_with_every_option(bench):
    """The two problems that a bound is on, each with all ZeRO stages and schedules and with what the stack runs."""
    asked = {(each.model, each.device, each.gpus, each.batch, each.seq) for each in bench.PROBLEMS.values()}
    assert asked == {
        ("gpt3-175b", "a100-80gb-sxm", 1024, 1024, 2048), ("llama-3.1-405b", "h100-sxm", 16384, 2048, 8192)
    }  # fmt: skip
    problem = bench.PROBLEMS["GPT-3 175B on 1,024 A100"]
    priced = bench.books(problem)
    few = {"tp": (8,), "pp": (8,), "cp": (1,), "micro_batch": (1,)}
    everything, own = (bench.searched(priced, bench.space_of(priced, problem, own=own), few) for own in (False, True))
    assert everything["legal"] > own["legal"] > 0  # ZeRO 2 and 3 beside a pipeline
    assert set(everything) == {"configurations", "legal", "priced", "wall_s", "cpu_s", "best_s", "best"}
    assert everything["best_s"] <= own["best_s"]
