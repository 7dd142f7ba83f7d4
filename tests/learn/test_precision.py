"""Precision: sums rounded at every step against numpy and torch, memory by `count`, peaks by the catalogue."""

from __future__ import annotations

import numpy as np
import pytest

import suanli
from suanli.catalog.curves import find_curves
from suanli.learn import teach
from suanli.learn.precision import FORMATS, GPUS, MODEL, SEQ, STEP, TIMES, summed
from suanli.nouns.lesson import Grid, Lesson

BY_NAME = {each.name: each for each in FORMATS}


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("precision", "en")


def tables(found: Lesson) -> list[Grid]:
    return [block for block in found.blocks if isinstance(block, Grid)]


@pytest.mark.parametrize(("name", "dtype"), [("fp32", np.float32), ("fp16", np.float16)])
def test_sums_are_numpy_s(taught: Lesson, name: str, dtype: type) -> None:
    value = dtype(1)
    for _ in range(TIMES):
        value = dtype(value + dtype(STEP))
    assert summed(BY_NAME[name], STEP, TIMES) == float(value) == taught.values[f"sum_{name}"]


@pytest.mark.torch
def test_a_sum_in_bf16_is_torch_s(taught: Lesson) -> None:
    import torch

    value = torch.tensor(1, dtype=torch.bfloat16)
    for _ in range(TIMES):
        value = value + torch.tensor(STEP, dtype=torch.bfloat16)
    assert taught.values["sum_bf16"] == value.item() == 1


def test_formats_are_numpy_s(taught: Lesson) -> None:
    rows = {row[0]: row for row in tables(taught)[0].rows}
    for name, dtype in (("fp32", np.float32), ("fp16", np.float16)):
        info = np.finfo(dtype)
        assert rows[name][1] == info.bits
        assert rows[name][4] == 1 + float(info.eps)
        assert rows[name][5] == float(info.max)
        assert rows[name][6] == float(info.smallest_subnormal)


def test_the_gradient_that_vanishes(taught: Lesson) -> None:
    said = next(block.values for block in taught.blocks if block.kind == "text" and "gradient" in block.values)
    assert said["fp16"] == 0 == float(np.float16(said["gradient"]))
    assert said["scaled"] == float(np.float16(said["gradient"] * said["scale"])) > 0
    assert said["bf16"] == pytest.approx(said["gradient"], rel=2**-8)


def test_memory_is_count_s(taught: Lesson) -> None:
    for row in tables(taught)[2].rows:
        found = suanli.count(MODEL, phase="train", seq=SEQ, dtype=row[0]).bytes
        states = found.weights + found.gradients + found.optimizer
        assert row[1:6] == tuple(
            each / 2**30 for each in (found.weights, found.gradients, found.optimizer, states, found.activations)
        )
    # fp32: weight 4, gradient 4, moments 8; bf16: 2, 2, moments 8 and a master copy of 4
    assert taught.values["bytes_per_param_fp32"] == taught.values["bytes_per_param_bf16"] == 16
    assert taught.values["bytes_per_param_fp8"] == 14


def test_peaks_are_the_catalogue_s(taught: Lesson) -> None:
    for row, name in zip(tables(taught)[3].rows, GPUS, strict=True):
        found = suanli.gpus(name).devices[0].peaks_flop_per_s
        assert row[1:6] == tuple(
            None if found.get(dtype) is None else found[dtype] / 1e12
            for dtype in ("fp32", "tf32", "fp16", "bf16", "fp8")
        )
        assert row[-1] is None or row[-1] == pytest.approx(found["fp8"] / found["bf16"])


def test_a_product_by_its_curve(taught: Lesson) -> None:
    said = taught.blocks[-1].values
    curves = find_curves(said["gpu"])
    assert said["bf16"] == curves.matmul_s(said["m"], said["n"], said["k"])
    assert said["fp8"] == curves.matmul_s(said["m"], said["n"], said["k"], 1, "fp8")
    assert 1 < said["times"] < said["promised"]
