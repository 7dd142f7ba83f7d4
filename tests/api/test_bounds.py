"""Figures that nothing real has: one clear error with the bound, not a figure made of them."""

from __future__ import annotations

from typing import Any

import pytest

import suanli
from suanli.errors import InputError

GOODPUT: dict[str, Any] = {"mtbf": "50000h", "restart": "10min", "checkpoint_save": "60s"}
BOUND = "1 to 1,000,000,000"

# request → the only line of its error
ABSURD = [
    (lambda: suanli.goodput(gpus="1e30", **GOODPUT),
     f"gpus is not possible in --gpus; got '1e30'; expected {BOUND}."),
    (lambda: suanli.goodput(gpus=10**9 + 1, **GOODPUT),
     f"gpus is not possible in --gpus; got 1000000001; expected {BOUND}."),
    (lambda: suanli.train("gpt2", tokens="1T", gpu="h100-sxm", gpus="1e20", mfu=0.4),
     f"gpus is not possible in --gpus; got '1e20'; expected {BOUND}."),
    (lambda: suanli.mfu("gpt2", gpu="h100-sxm", gpus="1e20", tokens_per_second=5),
     f"gpus is not possible in --gpus; got '1e20'; expected {BOUND}."),
    (lambda: suanli.scale(points="8:1e30,16:0.5", metric="time"),
     "step_time_s is not possible in --points; got '1e30'; expected at most 1,000,000,000 s."),
    (lambda: suanli.scale(points="8:1e30,16:2e15", metric="tokens_per_s"),
     "tokens_per_s is not possible in --points; got '1e30'; expected at most 1,000,000,000,000,000 tokens/s.\n"
     "tokens_per_s is not possible in --points; got '2e15'; expected at most 1,000,000,000,000,000 tokens/s."),
    (lambda: suanli.scale(points="8:1,1e30:0.5", metric="time"),
     f"gpus is not possible in --points; got '1e30'; expected a whole number, {BOUND}."),
    (lambda: suanli.scale(points="8:1,16:0.5", metric="time", project="1e30"),
     "not numbers of GPUs in --project; got '1e30'; expected like 8192,16384; at most 1,000,000,000."),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "line"), ABSURD, ids=range(len(ABSURD)))
def test_absurd_values_are_one_clear_error(asked: Any, line: str) -> None:
    with pytest.raises(InputError) as problem:
        asked()
    assert str(problem.value) == line


def test_what_is_within_the_bounds_is_answered() -> None:
    assert suanli.goodput(gpus=100_000, mtbf="500000h", restart="1min", checkpoint_save="5s").mtti_s == 18_000
    assert suanli.scale(points="8:1e9,16:5e8", metric="time").pairs[0].ratio == 1


# sweep → whether it is past GPT-2's 1,024 positions
SWEEPS = [
    ("seq=512:2048:512", "the sweep is past the model's 1,024 positions from seq 1,536 on; the arithmetic holds, the "
     "model may not"),
    ("seq=128:1024:128", None), ("batch=1,4096", None),
]  # fmt: skip


@pytest.mark.parametrize(("sweep", "note"), SWEEPS)
def test_a_sweep_past_the_positions_is_told(sweep: str, note: str | None) -> None:
    notes = suanli.count("gpt2", sweep=sweep).notes
    assert (note in notes) if note else not any("the sweep is past" in each for each in notes)
