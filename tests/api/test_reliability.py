"""`suanli.goodput` as it is called: one failure rate, what is needed, what contradicts, what is assumed."""

from __future__ import annotations

import pytest

import suanli
from suanli.errors import InputError, SuanliError

BASE = {"restart": "10min", "checkpoint_save": "60s"}


@pytest.mark.parametrize(
    ("rate", "hours"),
    [
        ({"mtti": "3.09h"}, 3.09),
        ({"mtbf": "50677h", "gpus": 16384}, 50677 / 16384),
        ({"mtbf_node": "6400h", "gpus": 512}, 6400 / 64),  # 64 nodes of 8
        ({"mtbf_node": "6400h", "gpus": 512, "gpus_per_node": 4}, 6400 / 128),
        ({"failures": "llama-3-405b", "gpus": 16384}, 54 * 24 / 419),
        ({"failures": "llama-3-405b", "gpus": 1024}, 54 * 24 / 419 * 16),
        ({"failures": "opt-175b", "gpus": 992}, 7.5),
    ],
)
def test_each_way_to_give_a_rate(rate, hours) -> None:
    found = suanli.goodput(**BASE, **rate)
    assert found.mtti_s / 3600 == pytest.approx(hours)
    assert (found.goodput_interval is None) == (rate.get("failures") != "llama-3-405b")


def test_the_envelope() -> None:
    found = suanli.goodput(gpus=16384, failures="llama-3-405b", **BASE).to_dict()
    assert found["kind"] == "goodput"
    assert found["result"]["mtti_s"] == pytest.approx(54 * 86400 / 419)
    assert set(found["result"]["loss"]) == {"checkpoint", "replay", "restart"}
    assert found["result"]["goodput"] + sum(found["result"]["loss"].values()) == pytest.approx(1)
    assert len(found["result"]["causes"]) == 18
    assert found["sources"][0].startswith("failures llama-3-405b: arXiv:2407.21783")
    assert "detect and checkpoint load 0 s (part of --restart)" in found["notes"][0]


@pytest.mark.parametrize(
    ("request_", "messages"),
    [
        ({}, ["one failure rate is needed in --mtbf; expected one of --mtbf, --mtbf-node, --mtti, --failures.",
              "a plan needs the time to save a checkpoint in --checkpoint-save; expected --checkpoint-save 60s.",
              "a plan needs the time to restart after an interrupt in --restart; expected --restart 60s."]),
        ({**BASE, "mtbf": "50000h"}, ["a rate per GPU or node needs the number of GPUs in --gpus; expected --gpus N."]),
        ({**BASE, "mtti": "3"}, ["a number without its unit in --mtti; got '3'; expected a number like 54d."]),
        ({**BASE, "mtti": "0h"}, ["no time between failures in --mtti; got 0h; expected above 0."]),
        ({**BASE, "mtti": "3h", "interval": "0s"},
         ["no work between checkpoints in --interval; got 0; expected above 0."]),
        ({**BASE, "mtti": "3h", "days": 0}, ["no work to do in --days; got 0; expected above 0."]),
        ({**BASE, "mtti": "3h", "mfu": "120%"},
         ["mfu is not possible in --mfu; got 120%; expected above 0, at most 1."]),
        ({"events": "e.csv", "mtti": "3h"}, None),
    ],
)  # fmt: skip
def test_faults(request_, messages) -> None:
    with pytest.raises(SuanliError) as caught:
        suanli.goodput(**request_)
    if messages is None:
        assert "a log of events is measured, not planned in --mtti" in str(caught.value)
    else:
        assert [fault.sentence() for fault in caught.value.faults] == messages


@pytest.mark.parametrize("options", [{"days": "1e9"}, {"maintenance": "4h/0d"}])
def test_what_could_never_end_is_refused(options) -> None:
    with pytest.raises(InputError):
        suanli.goodput(gpus=1024, failures="llama-3-405b", **BASE, **options)


@pytest.mark.parametrize("events", [3, [], b"x"])
def test_a_log_is_a_path(events) -> None:
    with pytest.raises(InputError, match="not a file in --events"):
        suanli.goodput(events=events)


def test_saving_that_costs_nothing_is_said() -> None:
    found = suanli.goodput(mtti="3h", restart="10min", checkpoint_save="0s")
    assert [each.why for each in found.account if each.entry == "checkpoint"] == ["costs nothing: saved all the time"]


def test_options_that_change_nothing_are_said() -> None:
    notes = suanli.goodput(mtti="3h", gpus_per_node=4, seed=3, **BASE).notes
    assert "--gpus-per-node changes nothing without --mtbf-node" in notes
    assert "--seed changes nothing without --days" in notes


def test_unknown_table() -> None:
    with pytest.raises(InputError, match=r"unknown failure table 'lama-3' in --failures; .* nearest: llama-3-405b"):
        suanli.goodput(gpus=8, failures="lama-3", **BASE)


def test_train_takes_it() -> None:
    """15.6T tokens at 41 % of H100 and this goodput: the published 30.84M GPU-hours are 2.5 % less."""
    plan = suanli.goodput(gpus=16384, failures="llama-3-405b", **BASE)
    run = suanli.train("llama-3.1-405b", tokens="15.6T", gpu="h100-sxm", gpus=16384, seq=8192, mfu=0.41,
                       goodput=plan.goodput)  # fmt: skip
    assert run.gpu_hours_paid == pytest.approx(30.84e6, rel=0.03)
