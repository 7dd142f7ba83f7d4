"""A stack calibrated to kernels: a made factor is found again, and what tells nothing moves nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import fabric
from suanli.catalog.profiles import find_profile
from suanli.errors import InputError
from suanli.nouns.calibrated import CalibratedKernels
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.plan import own_kernels as o

H100 = find_device("h100-sxm")
CURVES = find_curves(H100)
LINKS = fabric(name="made", gpus_per_node=8, link_bytes_per_s=450e9, nics_bytes_per_s=400e9, network="infiniband",
               sources=("made",))  # fmt: skip
SIZES = [(4096, 4096, 4096), (8192, 4096, 14336), (8192, 28672, 4096), (16384, 6144, 4096), (4096, 8192, 8192)]
SMALL = (128, 4096, 512)


def products(factor: float, sizes: Sequence[tuple[int, int, int]] = SIZES, **more: Any) -> list[MeasuredProduct]:
    kind = {"gpu": "h100-sxm", "dtype": "bf16", "runs": 10, **more}
    return [
        MeasuredProduct(m=m, n=n, k=k, seconds=factor * float(CURVES.matmul_s(m, n, k)), **kind) for m, n, k in sizes
    ]


def calls(factor: float, ranks: int, sizes: Sequence[int] = (2**22, 2**26, 2**30)) -> list[MeasuredCollective]:
    return [
        MeasuredCollective(gpu="h100-sxm", kind="all_reduce", bytes=size, ranks=ranks, runs=4,
                           seconds=factor * float(CURVES.collective_s("all_reduce", size, ranks, LINKS)))
        for size in sizes
    ]  # fmt: skip


def attentions(factor: float, lengths: Sequence[int] = (2048, 4096, 8192), **more: Any) -> list[MeasuredAttention]:
    kind = {"gpu": "h100-sxm", "dtype": "bf16", "causal": True, "backward": False, "runs": 10, **more}
    masks = kind["causal"], kind["backward"]
    return [
        MeasuredAttention(batch=2, heads=32, kv_heads=8, queries=n, keys=n, qk_dim=128, v_dim=128, **kind,
                          seconds=factor * float(CURVES.attention_s(2, 32, 8, n, n, 128, 128, *masks)))
        for n in lengths
    ]  # fmt: skip


def calibrated(
    made: list[MeasuredProduct],
    collectives: Sequence[MeasuredCollective] = (),
    links: Any = LINKS,
    attended: Sequence[MeasuredAttention] = (),
) -> CalibratedKernels:
    measured = MeasuredKernels(
        products=tuple(made), collectives=tuple(collectives), attentions=tuple(attended),
        left_out={"why": 2, "none": 0},
    )  # fmt: skip
    return o.calibrate_kernels(measured, H100, links, find_profile("nemo"), "mine")


def number(found: CalibratedKernels, name: str) -> Any:
    return next(each for each in found.numbers if each.name == name)


@pytest.mark.parametrize("factor", [0.95, 1.1, 1.3])
def test_the_factor_on_products_is_found(factor: float) -> None:
    found = calibrated(products(factor))
    matmul = number(found, "matmul")
    assert matmul.told
    low, high = sorted((matmul.before, factor))
    assert low <= matmul.after <= high
    assert abs(math.log(matmul.after / factor)) < 0.35 * abs(math.log(matmul.before / factor)) + 1e-9
    assert matmul.spread_after < matmul.spread_before
    assert found.profile.numbers.matmul == matmul.after
    (held,) = found.classes
    assert (held.ratio, held.spread) == (pytest.approx(factor), pytest.approx(0, abs=1e-6))
    assert (held.rows, held.runs, held.fitted) == (5, 50, True)
    assert held.peak_fraction == pytest.approx(held.rate / 989.4e12)


def test_all_else_stays_as_it_was() -> None:
    found = calibrated(products(1.3))
    before = find_profile("nemo").at("h100-sxm bf16")
    moved = {each.name for each in found.numbers if each.after != each.before}
    assert moved == {"matmul"}
    assert found.profile.numbers.attention == before.attention
    assert "matmul" not in found.profile.untold
    assert "network" in found.profile.untold
    assert (found.profile.name, found.profile.base, found.half_width) == (
        "mine",
        "nemo",
        find_profile("nemo").half_width,
    )
    assert found.left_out == {"why": 2}


def test_collectives_across_nodes_tell_the_network() -> None:
    found = calibrated(products(1.1), calls(1.6, 32))
    network = number(found, "network")
    assert network.told
    assert network.before < network.after < 1.6
    assert found.classes[-1].size == "32 across nodes"


def test_collectives_in_a_node_are_shown_and_tell_nothing() -> None:
    found = calibrated(products(1.1), calls(2.0, 8, (2**18, 2**26)))
    assert not number(found, "network").told
    assert [(each.size, each.fitted, round(each.ratio, 3)) for each in found.classes[1:]] == [
        ("8 in a node", False, 2.0),
        ("8 in a node, < 1 MiB", False, 2.0),
    ]
    assert found.warnings == (
        "groups of up to 8 ranks are taken to be inside a node; their ratios are shown, and no number is fitted to "
        "them: a step hides part of their time",
    )


def test_without_links_collectives_are_no_matter() -> None:
    assert len(calibrated(products(1.1), calls(2.0, 8), None).classes) == 1


@pytest.mark.parametrize("factor", [0.95, 1.6])
def test_attention_of_both_passes_tells_its_number(factor: float) -> None:
    both = [*attentions(factor), *attentions(factor, backward=True)]
    found = calibrated(products(1.1), attended=both)
    attention = number(found, "attention")
    assert attention.told
    low, high = sorted((attention.before, factor))
    assert low < attention.after < high
    assert abs(math.log(attention.after / factor)) < 0.35 * abs(math.log(attention.before / factor))
    assert found.profile.numbers.attention == attention.after
    assert "attention" not in found.profile.untold
    assert [(each.what, each.size, each.rows, each.fitted, round(each.ratio, 6)) for each in found.classes[1:]] == [
        ("attention bf16 backward", "≥ 1,024 positions", 3, True, factor),
        ("attention bf16", "≥ 1,024 positions", 3, True, factor),
    ]


def test_flops_of_attention_are_those_that_are_executed() -> None:
    """Forward two products, backward five; half the pairs and half the diagonal under a causal mask."""
    n, heads, width = 2048, 32, 128
    pair = 2 * 2 * heads * width  # of a product, batch 2
    for causal, pairs in ((True, n * (n + 1) // 2), (False, n * n)):
        for backward, times in ((False, 2), (True, 5)):
            (each,) = attentions(1.0, (n,), causal=causal, backward=backward)
            assert o._attention_flops(each) == pair * pairs * times


def test_fewer_than_three_sizes_of_attention_are_shown_and_tell_nothing() -> None:
    found = calibrated(products(1.1), attended=attentions(2.0, (2048, 4096)))
    assert not number(found, "attention").told
    assert [(each.what, each.fitted) for each in found.classes[1:]] == [("attention bf16", False)]


def test_short_sequences_and_other_dtypes_are_shown_and_tell_nothing() -> None:
    others = [*attentions(9.0, (256,)), *attentions(9.0, (2048,), dtype="fp8")]
    found = calibrated(products(1.1), attended=[*attentions(1.3), *others])
    alone = calibrated(products(1.1), attended=attentions(1.3))
    assert number(found, "attention").after == pytest.approx(number(alone, "attention").after)
    assert {(each.what, each.size): each.fitted for each in found.classes[1:]} == {
        ("attention bf16", "≥ 1,024 positions"): True,
        ("attention bf16", "< 1,024 positions"): False,
        ("attention fp8", "≥ 1,024 positions"): False,
    }


def test_attention_that_has_no_curve_is_left_out_and_counted() -> None:
    odd = [*attentions(1.0, dtype="int8"), *attentions(1.0, gpu="a100-80gb-sxm"),
           *(replace(each, keys=9) for each in attentions(1.0))]  # fmt: skip
    assert calibrated(products(1.1), attended=odd).left_out == {"why": 2, o.OTHER_DEVICE: 3, o.NO_CURVE: 6}


def test_small_products_are_shown_and_tell_nothing() -> None:
    found = calibrated([*products(1.1), *products(9.0, [SMALL])])
    assert [(each.size, each.fitted) for each in found.classes] == [
        ("sides ≥ 1,024", True),
        ("a side < 1,024", False),
    ]
    assert number(found, "matmul").after == pytest.approx(number(calibrated(products(1.1)), "matmul").after)


def test_sizes_that_differ_tell_less() -> None:
    apart = [*products(1.0, SIZES[:2]), *products(1.6, SIZES[2:])]
    assert number(calibrated(apart), "matmul").spread_after > number(calibrated(products(1.3)), "matmul").spread_after


def test_only_the_dtype_most_used_is_fitted_to() -> None:
    fp8 = products(3.0, SIZES[:1], dtype="fp8", runs=1)
    found = calibrated([*products(1.1), *fp8])
    assert found.device == "h100-sxm bf16"
    assert {each.what: each.fitted for each in found.classes} == {"product bf16": True, "product fp8": False}


def test_other_devices_and_dtypes_are_left_out_and_counted() -> None:
    others = [*products(1.0, SIZES[:1], gpu="a100-80gb-sxm"), *products(1.0, SIZES[:2], dtype="int8")]
    assert calibrated([*products(1.1), *others]).left_out == {"why": 2, o.OTHER_DEVICE: 1, o.NO_CURVE: 2}


def test_products_much_faster_than_any_benchmark_are_doubted() -> None:
    assert calibrated(products(0.5)).warnings == (
        "product bf16s are 50% faster than any that were benchmarked: are the device and dtype as written?",
    )


def test_attention_much_faster_than_any_benchmark_is_doubted() -> None:
    assert calibrated(products(1.1), attended=attentions(0.5)).warnings == (
        "kernels of attention bf16 are 50% faster than any that were benchmarked: are the device and dtype as written?",
    )


def test_too_few_sizes() -> None:
    with pytest.raises(InputError) as problem:
        calibrated(products(1.1, [*SIZES[:2], SMALL]))
    assert str(problem.value) == (
        "too few sizes of products of h100-sxm to fit to; got 2 with sides ≥ 1,024, 3 in all; expected 3 or more "
        "with sides ≥ 1,024. Give the kernels of a step of a large model, recorded with shapes; or --gpu, where the "
        "file names another device."
    )
