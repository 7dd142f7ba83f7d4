"""Refusals: by how much weights do not fit, and what would hold them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from suanli.catalog.devices import find_device
from suanli.errors import InputError
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving import DoesNotFitError, check_fits, fits
from suanli.readers.preset import read_named_preset


def refusal(name: str, device: str, layout: ServingLayout, **options: str) -> DoesNotFitError:
    with pytest.raises(DoesNotFitError) as caught:
        check_fits(read_named_preset(name), find_device(device), layout=layout, **options)  # type: ignore[arg-type]
    return caught.value


def test_405b_on_one_h100() -> None:
    """aiconfigurator pull request 509: no latency, a refusal: 811 GB of weights."""
    problem = refusal("llama-3.1-405b", "h100-sxm", ServingLayout())
    assert str(problem).startswith(
        "the weights of llama-3.1-405b in bf16 do not fit in --gpu h100-sxm --gpus 1; got 811.7 GB, 811.7 GB on the "
        "fullest GPU of 80.0 GB: 731.7 GB more than it has; expected weights, activations and some cache within "
        "a GPU's "
        "memory. What would fit: 16 × h100-sxm (--tp 8 --pp 2)"
    )
    assert problem.faults[0].code == "does_not_fit"
    assert problem.remedy.layout == ServingLayout(tp=8, pp=2)
    assert problem.remedy.schemes == ()  # one byte a weight is 406 GB too


def test_175b_on_eight_of_40_gb() -> None:
    """The article's example: 349 GB of bf16 on 320 GB. fp8 does, and so do eight of 80 GB."""
    problem = refusal("gpt3-175b", "a100-40gb-sxm", ServingLayout(tp=8))
    assert "349.2 GB, 43.7 GB on the fullest GPU of 40.0 GB: 3.7 GB more than it has" in str(problem)
    assert problem.remedy.layout == ServingLayout(tp=8, pp=2)
    assert problem.remedy.schemes == ("fp8", "awq-4bit-128")
    assert ("a100-80gb-sxm", 8) in problem.remedy.devices
    assert fits(read_named_preset("gpt3-175b"), find_device("a100-80gb-sxm"), layout=ServingLayout(tp=8))


def test_what_is_named_does_fit() -> None:
    for name, device, layout in (
        ("gpt3-175b", "a100-40gb-sxm", ServingLayout(tp=8)), ("llama-3.1-70b", "h100-sxm", ServingLayout()),
        ("mixtral-8x22b", "a100-40gb-sxm", ServingLayout(tp=2)),
    ):  # fmt: skip
        arch, remedy = read_named_preset(name), refusal(name, device, layout).remedy
        assert remedy.layout is not None
        assert fits(arch, find_device(device), layout=remedy.layout)
        assert remedy.layout.gpus > layout.gpus
        for scheme in remedy.schemes:
            assert fits(arch, find_device(device), scheme=scheme, layout=layout)
        for other, gpus in remedy.devices:
            assert gpus == layout.gpus and fits(arch, find_device(other), layout=layout)


def test_no_smaller_number_would_do() -> None:
    arch, device = read_named_preset("llama-3.1-70b"), find_device("h100-sxm")
    assert refusal("llama-3.1-70b", "h100-sxm", ServingLayout()).remedy.layout == ServingLayout(tp=4)
    assert not fits(arch, device, layout=ServingLayout(tp=2))
    assert fits(arch, device, layout=ServingLayout(tp=2), fraction=1.0)  # 70.6 GB of 80, and 4.2 beside


def test_weights_that_fit_without_room() -> None:
    """Two of 70.6 GB on 0.9 · 80: 2.7 GB over with what a step needs."""
    problem = refusal("llama-3.1-70b", "h100-sxm", ServingLayout(tp=2))
    assert "GB too much beside activations and the engine's reserve" in str(problem)


def test_deepseek_fits_eight_of_141_gb() -> None:
    """Where a count that repeats the experts refuses: 721 GB on 8 · 141."""
    arch, device = read_named_preset("deepseek-v3"), find_device("h200-sxm")
    for layout in (ServingLayout(tp=8), ServingLayout(tp=8, ep=8), ServingLayout(dp_attention=8, ep=8)):
        check_fits(arch, device, scheme="fp8-block", layout=layout)


def test_a_gpu_of_unknown_memory() -> None:
    device = replace(find_device("h100-sxm"), memory_bytes=None)
    with pytest.raises(InputError, match="the catalogue does not know the memory of h100-sxm in --gpu"):
        check_fits(read_named_preset("llama-3.1-8b"), device)


def test_nothing_would_fit() -> None:
    """1.8 T parameters on one GPU: no GPU, no dtype; a pipeline would."""
    remedy = refusal("megatron-1t", "rtx-a6000", ServingLayout()).remedy
    assert (remedy.devices, remedy.schemes) == ((), ())
    assert replace(remedy, layout=None).sentence("x") == "Nothing in the catalogue would fit."


def test_the_error_survives_a_process() -> None:
    problem = refusal("gpt3-175b", "a100-40gb-sxm", ServingLayout(tp=8))
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem)
